"""How many tokens a text or a request has, counted offline and safe on hostile text.

Every count says where it comes from. Text is data: the name of a control token inside it is
counted as the letters it is made of. Call it from a thread where an event loop runs: a million
characters take about 0.3 s.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from plangate.budget.vocabulary import encoding, encoding_name

EXACT_LIMIT = 2_000_000
"""Characters that are counted; what lies beyond is estimated."""

_BLOCK = 16_384
# A longer run of white space overflows the stack of tiktoken's regular expressions (tried: a panic
# at a million spaces). Cut before a space that follows a non-space, where both vocabularies begin
# a new piece anyway, so that the sum over blocks is exact for all but unbroken text.
_CUT = re.compile(r"(?<=\S) ")
_BYTES_PER_TOKEN = 3
_DEFAULT = "o200k_base"
_ESTIMATE = "estimate (3 bytes a token)"

Message: TypeAlias = Mapping[str, Any]
"""One chat message as OpenAI writes it: `role`, `content`, perhaps `name`."""


@dataclass(frozen=True, slots=True)
class Counted:
    """A number of tokens, and what counted them."""

    tokens: int
    source: str
    """`o200k_base`, `o200k_base (unlisted model)`, or an estimate that says so."""

    @property
    def estimated(self) -> bool:
        """True where part of the text was not counted by a vocabulary."""
        return _ESTIMATE in self.source


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
    return _count((text,), model, extra=0)


def count_messages(
    messages: Sequence[Message],
    model: str,
    *,
    tools: Sequence[Mapping[str, Any]] = (),
    schema: Mapping[str, Any] | None = None,
) -> Counted:
    """Count the tokens of a whole request.

    Args:
        messages: What is sent. Parts of a content that are not text (images) are not counted.
        model: As for `count_text`.
        tools: Function tools, in OpenAI's form.
        schema: The response schema. How a provider writes it into its prompt is not published; its
            compact JSON is counted.

    Source:
        OpenAI cookbook, "How to count tokens with tiktoken", `num_tokens_from_messages` and
        `num_tokens_for_tools`: 3 a message, 1 a name, 3 for the start of the reply.
    """
    texts = [text for message in messages for text in _texts_of(message)]
    extra = 3 + sum(4 if message.get("name") else 3 for message in messages)
    for tool in tools:
        function = tool.get("function", tool)
        texts += _tool_texts(function)
        extra += _tool_overhead(function, model)
    if tools:
        extra += 12
    if schema is not None:
        texts.append(json.dumps(schema, separators=(",", ":"), ensure_ascii=False))
    return _count(texts, model, extra=extra)


def _count(texts: Iterable[str], model: str, *, extra: int) -> Counted:
    listed = encoding_name(model)
    found = encoding(listed or _DEFAULT)
    if found is None:
        return Counted(extra + sum(_guess(text) for text in texts), _ESTIMATE)
    tokens, beyond = extra, 0
    for text in texts:
        beyond += _guess(text[EXACT_LIMIT:])
        for block in _blocks(text[:EXACT_LIMIT]):
            tokens += len(found.encode_ordinary(block))
    source = found.name if listed else f"{found.name} (unlisted model)"
    return Counted(tokens + beyond, f"{source} + {_ESTIMATE}" if beyond else source)


def _blocks(text: str, size: int = _BLOCK) -> Iterator[str]:
    start = 0
    while len(text) - start > size:
        cuts = [match.start() for match in _CUT.finditer(text, start + 1, start + size)]
        end = cuts[-1] if cuts else start + size
        yield text[start:end]
        start = end
    yield text[start:]


def _guess(text: str) -> int:
    return -(-len(text.encode("utf-8", "replace")) // _BYTES_PER_TOKEN)


def _texts_of(message: Message) -> Iterator[str]:
    for key, value in message.items():
        if isinstance(value, str):
            yield value
        elif key == "content" and isinstance(value, Sequence):
            yield from (
                str(part["text"])
                for part in value
                if isinstance(part, Mapping) and isinstance(part.get("text"), str)
            )


def _tool_texts(function: Mapping[str, Any]) -> list[str]:
    texts = [f"{function['name']}:{_plain(function)}"]
    for name, prop in _properties(function).items():
        texts.append(f"{name}:{prop.get('type', '')}:{_plain(prop)}")
        texts += [str(item) for item in prop.get("enum", ())]
    return texts


def _tool_overhead(function: Mapping[str, Any], model: str) -> int:
    props = _properties(function).values()
    enums = [prop["enum"] for prop in props if "enum" in prop]
    start = 10 if encoding_name(model) == "cl100k_base" else 7
    inside = 3 + 3 * len(props) if props else 0
    return start + inside + sum(3 * len(items) - 3 for items in enums)


def _properties(function: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    found: Mapping[str, Mapping[str, Any]] = function.get("parameters", {}).get("properties", {})
    return found


def _plain(described: Mapping[str, Any]) -> str:
    return str(described.get("description", "")).removesuffix(".")
