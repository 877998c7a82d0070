"""Secrets travel as references, `secret://name`; their values are never stored.

What a person hands in (goal, inputs, plans, answers) is refused if it holds one, since what is
approved and run has to be stored exactly. What comes from outside (results, errors, a model's text)
is masked before anything is kept. A secret is known by the name of its field or by its shape, never
by the name of a vendor alone; ordinary text stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from plangate.plan.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plangate.plan.value.frozen import Json

MASK = "***"
REFERENCE = r"^secret://[A-Za-z0-9][A-Za-z0-9._/-]{0,199}$"
"""What stands for a secret in a plan, in arguments and in the journal."""

_NAMES = r"pass(?:word|wd|phrase)|pwd|secret(?:[_-]?key)?|(?:api|private|access)[_-]?key|token"
_HINTS = ("pass", "pwd", "secret", "key", "token")
_QUOTE = r"\\{0,3}[\"']"
_SHAPES: tuple[tuple[tuple[str, ...], re.Pattern[str]], ...] = (
    # `Authorization: Basic dXNlcjpwdw==`, also in JSON
    (
        ("uthorization",),
        re.compile(
            rf"(?i)(authorization(?:{_QUOTE})?\s{{0,3}}[:=]\s{{0,3}}(?:{_QUOTE})?"
            r"(?:(?:bearer|basic|digest|token|apikey|negotiate)\s{1,3}|(?=[^\s\"'\\,;]{0,99}[0-9])))"
            r"([^\s\"'\\,;]{3,})"
        ),
    ),
    # a bearer token outside a header: it has a digit or a dot, unlike "bearer shares"
    (
        ("bearer",),
        re.compile(r"([Bb]earer\s{1,3})((?=[A-Za-z_~+/=-]{0,200}[0-9.])[A-Za-z0-9._~+/=-]{8,})"),
    ),
    # https://user:password@host
    (("://",), re.compile(r"(://[^\s/:@\"']{0,200}:)([^\s/@\"']{1,500})(?=@)")),
    # password=x in a query or a DSN; "password": "x" in JSON within a text
    (
        _HINTS,
        re.compile(
            rf"(?i)((?:{_NAMES})"
            rf"(?:={_QUOTE}?|{_QUOTE}\s{{0,3}}[:=]\s{{0,3}}{_QUOTE}|\s{{0,3}}[:=]\s{{0,3}}{_QUOTE}))"
            r"([^\s\"'\\&,;}]{1,1000})"
        ),
    ),
    # password: hunter2, where the value can hardly be a word
    (
        _HINTS,
        re.compile(
            rf"(?i)((?:{_NAMES}):\s{{0,3}})((?=[^\s\"'\\,;]{{0,40}}[0-9])[^\s\"'\\,;]{{6,}})"
        ),
    ),
    (
        ("-----begin",),
        re.compile(
            r"(-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----)"
            r"((?!\*\*\*)(?:[^-]|-(?!----))+)"
        ),
    ),
    # a signed token: header.payload.signature
    (
        ("eyj",),
        re.compile(r"(\b)(eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*)"),
    ),
    # any vendor's key: a word, then a long tail that mixes cases and digits
    (
        ("_", "-"),
        re.compile(
            r"((?<=[A-Za-z0-9]{2}[_-]))((?=[a-z0-9]{0,60}[A-Z])(?=[A-Z0-9]{0,60}[a-z])"
            r"(?=[A-Za-z]{0,60}[0-9])[A-Za-z0-9]{20,})"
        ),
    ),
    (
        ("sk-", "akia", "asia"),
        re.compile(r"(\bsk-|\bAKIA|\bASIA)((?<=sk-)[A-Za-z0-9_-]{6,}|(?<=IA)[0-9A-Z]{16}\b)"),
    ),
)
"""What a text has to hold at all, and the shape: what is shown, then what is masked."""

_MAYBE = re.compile(
    r"(?i)uthorization|bearer|://|pass|pwd|secret|key|token|-----begin|eyj|[_-][a-z0-9]{20}"
    r"|sk-|akia|asia"
)
"""What any of them has to hold; most texts end here."""

_FIELD = re.compile(rf"(?i)(?:.*[_-])?(?:{_NAMES}|authorization|cookie|set-cookie)")
_PAGING = re.compile(r"(?i)(?:page|next|continuation|cursor)[_-]?token$")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_WHOLE_REFERENCE = re.compile(REFERENCE)


def masked(text: str) -> str:
    """Return a text with what looks like a secret taken out.

    Example:
        >>> masked("GET https://ann:hunter2@host/x failed, Authorization: Bearer abc.def")
        'GET https://ann:***@host/x failed, Authorization: Bearer ***'
        >>> masked('sent {"password": "hunter2"}; the token was refused')
        'sent {"password": "***"}; the token was refused'
    """
    if _MAYBE.search(text) is None:
        return text
    lower = text.lower()
    for hints, shape in _SHAPES:
        if any(hint in lower for hint in hints):
            text = shape.sub(_mask, text)
    return text


def masked_json(value: Json) -> Json:
    """Return JSON with what looks like a secret taken out, by field name and by shape.

    Example:
        >>> masked_json({"user": "ann", "apiKey": "hunter2", "note": "pwd=x"})
        {'user': 'ann', 'apiKey': '***', 'note': 'pwd=***'}
    """
    if isinstance(value, str):
        return masked(value)
    if isinstance(value, Mapping):
        return {
            key: MASK if _is_kept_secret(key, each) else masked_json(each)
            for key, each in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [masked_json(each) for each in value]
    return value


def secret_in(value: Json, path: str = "") -> str | None:
    """Return where the first thing that looks like a secret stands; None: nowhere.

    Example:
        >>> secret_in({"lines": [{"note": "password=hunter2"}]})
        'lines.0.note'
        >>> secret_in({"password": "secret://crm/password", "note": "I forgot my password"})
    """
    if isinstance(value, str):
        return (path or "text") if masked(value) != value else None
    for key, each in _children(value):
        here = f"{path}.{key}" if path else key
        found = here if _is_kept_secret(key, each) else secret_in(each, here)
        if found is not None:
            return found
    return None


def mask_in(value: Json, path: str = "") -> str | None:
    """Return where a value stands of which nothing but the mask is left; None: nowhere."""
    if isinstance(value, str):
        return (path or "text") if value == MASK else None
    for key, each in _children(value):
        if found := mask_in(each, f"{path}.{key}" if path else key):
            return found
    return None


def refuse_secrets(what: str, value: Json) -> None:
    """Refuse what a person hands in if it holds a secret; the message does not repeat it.

    Raises:
        ConfigError: It names where.
    """
    if where := secret_in(value):
        raise ConfigError(
            f"{what}: {where} holds what looks like a secret, and it would be stored",
            hint="Take it out, or write a reference, secret://name; see docs/howto/secrets.md.",
        )


def _children(value: Json) -> Iterator[tuple[str, Json]]:
    if isinstance(value, Mapping):
        yield from ((str(key), each) for key, each in value.items())
    elif isinstance(value, (list, tuple)):
        yield from ((str(at), each) for at, each in enumerate(value))


def _is_kept_secret(name: object, value: Json) -> bool:
    if not isinstance(value, str) or not _is_secret_name(str(name)):
        return False
    return value not in ("", MASK) and not _is_reference(value)


@lru_cache(maxsize=4096)
def _is_secret_name(name: str) -> bool:
    words = _CAMEL.sub("_", name)
    return _FIELD.fullmatch(words) is not None and _PAGING.search(words) is None


def _is_reference(text: str) -> bool:
    # `${inputs.key}` in a plan stands for a value that is looked at where it comes from.
    return _WHOLE_REFERENCE.match(text) is not None or (text[:2] == "${" and text[-1:] == "}")


def _mask(match: re.Match[str]) -> str:
    shown, hidden = match.groups()
    return match[0] if _is_reference(hidden) else f"{shown}{MASK}"
