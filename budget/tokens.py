"""How many tokens a text or a request has, counted offline and safe on hostile text.

Every count says where it comes from. Text is data: the name of a control token inside it is
counted as the letters it is made of. Call it from a thread where an event loop runs: a million
characters take about 0.3 s. What no vocabulary counts is estimated from above, since a token has
at least one byte.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from plangate.budget.sent import Parts
from plangate.budget.vocabulary import encoding, encoding_name

EXACT_LIMIT = 2_000_000
"""Characters that are counted; what lies beyond is estimated."""

_BLOCK = 16_384
# A longer run of white space overflows the stack of tiktoken's regular expressions (tried: a panic
# at a million spaces). Cut before a space that follows a non-space, where both vocabularies begin
# a new piece anyway, so that the sum over blocks is exact for all but unbroken text.
_CUT = re.compile(r"(?<=\S) ")
_DEFAULT = "o200k_base"
_ESTIMATE = "estimate"
_LEFT_OUT = "without"
_BYTES = f"{_ESTIMATE} (a token a byte)"

Message: TypeAlias = Mapping[str, Any]
"""One chat message as OpenAI writes it: `role`, `content`, perhaps `name`, `tool_calls`."""


@dataclass(frozen=True, slots=True)
class Counted:
    """A number of tokens, and what counted them."""

    tokens: int
    source: str
    """`o200k_base`, `o200k_base (unlisted model)`, an estimate of what, or what is left out."""

    @property
    def estimated(self) -> bool:
        """True where a part is estimated from above, or could not be counted at all."""
        return f"{_ESTIMATE} (" in self.source or f"{_LEFT_OUT} " in self.source


def count_text(text: str, model: str) -> Counted:
    """Count the tokens of a text.

    Args:
        text: Any text: lone surrogates, a million repeated characters and names of control tokens
            are all counted.
        model: Name of the model, with or without its provider (`openai:gpt-5-mini`).

    Example:
        >>> count_text("antidisestablishmentarianism", "gpt-4o")
        Counted(tokens=6, source='o200k_base')
    """
    return _count((text,), model)


def count_messages(
    messages: Sequence[Message],
    model: str,
    *,
    tools: Sequence[Mapping[str, Any]] = (),
    schema: Mapping[str, Any] | None = None,
) -> Counted:
    """Count the tokens of a whole request.

    Args:
        messages: What is sent. An image costs what its size and its model say; an estimate from
            above where one of them is not known. Sound and files are left out, and that is said.
        model: As for `count_text`.
        tools: Function tools, in OpenAI's form.
        schema: The response schema, as compact JSON: an estimate, as its form is not published.

    Source:
        OpenAI cookbook, "How to count tokens with tiktoken", `num_tokens_from_messages` and
        `num_tokens_for_tools`: 3 a message, 1 a name, 3 for the start of the reply. Its figures
        are met exactly; what its formula does not cover (nested tool schemas) is an estimate.
    """
    parts = Parts(model, encoding_name(model) == "cl100k_base")
    for message in messages:
        parts.add_message(message)
    for tool in tools:
        parts.add_tool(tool)
    if tools:
        parts.tokens += 12
    if schema is not None:
        parts.add_schema(schema)
    notes = [f"{_ESTIMATE} ({what})" for what in sorted(parts.estimated)]
    notes += [f"{_LEFT_OUT} {what}" for what in sorted(parts.left_out)]
    return _count(parts.texts, model, parts.tokens, notes)


def _count(texts: Iterable[str], model: str, extra: int = 0, notes: Sequence[str] = ()) -> Counted:
    listed = encoding_name(model)
    found = encoding(listed or _DEFAULT)
    if found is None:
        tokens = extra + sum(_most(text) for text in texts)
        return Counted(tokens, " + ".join((_BYTES, *notes)))
    tokens, beyond = extra, 0
    for text in texts:
        beyond += _most(text[EXACT_LIMIT:])
        for block in _blocks(text[:EXACT_LIMIT]):
            tokens += len(found.encode_ordinary(block))
    source = found.name if listed else f"{found.name} (unlisted model)"
    bytes_too = (_BYTES,) if beyond else ()
    return Counted(tokens + beyond, " + ".join((source, *bytes_too, *notes)))


def _blocks(text: str, size: int = _BLOCK) -> Iterator[str]:
    start = 0
    while len(text) - start > size:
        cuts = [match.start() for match in _CUT.finditer(text, start + 1, start + size)]
        end = cuts[-1] if cuts else start + size
        yield text[start:end]
        start = end
    yield text[start:]


def _most(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
