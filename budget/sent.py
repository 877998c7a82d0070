"""Takes a request apart: what is counted as text, as overhead, by a formula, and what is not.

Whatever is not exact leaves a note. Bytes and base64 of images, sound and files are never text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from plangate.budget.image_size import Size, size_of, size_of_base64
from plangate.budget.images import image_tokens

NESTED, SCHEMA, IMAGE = "nested schema", "response schema", "image"

_IMAGES = frozenset({"image", "image_url", "input_image"})
_NOT_COUNTED = ("audio", "file", "video", "document", "media")


@dataclass(slots=True)
class Parts:
    """What a request is made of, for one model."""

    model: str
    is_older: bool
    """True for models of cl100k_base, which spend more on a tool."""

    texts: list[str] = field(default_factory=list)
    tokens: int = 3
    """Not of texts; from the start 3 for the beginning of the reply."""

    estimated: set[str] = field(default_factory=set)
    left_out: set[str] = field(default_factory=set)

    def add_message(self, message: Mapping[str, Any]) -> None:
        """Take 3 for the message, 1 for a name, and all that it says."""
        self.tokens += 4 if message.get("name") else 3
        for key, value in message.items():
            if key == "content" and isinstance(value, Sequence) and not isinstance(value, str):
                self._add_content(value)
            elif isinstance(value, str):
                self.texts.append(value)
            elif value is not None:
                self._add_json(value, key)

    def add_tool(self, tool: Mapping[str, Any]) -> None:
        """Take a function tool, in OpenAI's form; what is nested in it as JSON."""
        function = tool.get("function", tool)
        if "name" not in function:  # a tool of the provider's own
            self._add_json(tool, NESTED)
            return
        self.tokens += 10 if self.is_older else 7
        self.texts.append(f"{function['name']}:{_plain(function)}")
        params = function.get("parameters") or {}
        props = params.get("properties") or {}
        self.tokens += 3 if props else 0
        for name, prop in props.items():
            self._add_property(name, prop if isinstance(prop, Mapping) else {})
        self._add_rest(params, {"type", "properties", "required", "additionalProperties", "title"})

    def add_schema(self, schema: Mapping[str, Any]) -> None:
        """Take the response schema; how a provider writes it into its prompt is not published."""
        self._add_json(schema, SCHEMA)

    def _add_property(self, name: str, prop: Mapping[str, Any]) -> None:
        options = prop.get("enum", ())
        self.tokens += 3 + (3 * len(options) - 3 if "enum" in prop else 0)
        kind = prop.get("type", "")
        self.texts.append(f"{name}:{kind if isinstance(kind, str) else _json(kind)}:{_plain(prop)}")
        self.texts += [str(option) for option in options]
        self._add_rest(prop, {"type", "description", "enum"})

    def _add_rest(self, schema: Mapping[str, Any], known: set[str]) -> None:
        if rest := {key: value for key, value in schema.items() if key not in known}:
            self._add_json(rest, NESTED)

    def _add_json(self, value: object, what: str) -> None:
        self.texts.append(_json(value))
        self.estimated.add(what)

    def _add_content(self, parts: Sequence[Any]) -> None:
        for part in [parts] if isinstance(parts, (bytes, bytearray)) else parts:
            if isinstance(part, str):
                self.texts.append(part)
            elif not isinstance(part, Mapping):
                self.left_out.add("binary")
            else:
                self._add_part(part)

    def _add_part(self, part: Mapping[str, Any]) -> None:
        kind = str(part.get("type", ""))
        if kind in _IMAGES:
            self._add_image(part)
        elif isinstance(part.get("text"), str):
            self.texts.append(part["text"])
        elif named := [word for word in _NOT_COUNTED if word in kind]:
            self.left_out.add(named[0])
        else:
            self._add_json(part, kind or "part")

    def _add_image(self, part: Mapping[str, Any]) -> None:
        nested = part.get("image_url")
        detail = nested.get("detail") if isinstance(nested, Mapping) else part.get("detail")
        cost = image_tokens(self.model, _size(part), low=detail == "low")
        self.tokens += cost.tokens
        if not cost.is_known:
            self.estimated.add(IMAGE)


def _size(part: Mapping[str, Any]) -> Size | None:
    data = _data(part)
    if isinstance(data, (bytes, bytearray)):
        return size_of(bytes(data))
    return size_of_base64(data) if data else None


def _data(part: Mapping[str, Any]) -> str | bytes | bytearray | None:
    """Return what an image part carries, in the forms of OpenAI, LangChain and Anthropic."""
    for key in ("image_url", "source", "url", "base64", "data"):
        said = part.get(key)
        if isinstance(said, Mapping):
            said = said.get("url") or said.get("data")
        if isinstance(said, (bytes, bytearray)):
            return said
        if isinstance(said, str) and said.startswith("data:"):
            return said.partition(",")[2]
        if isinstance(said, str) and key not in ("image_url", "url"):
            return said
    return None


def _plain(described: Mapping[str, Any]) -> str:
    return str(described.get("description", "")).removesuffix(".")


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=_opened)


def _opened(value: object) -> object:
    """Frozen mappings and tuples are JSON too; anything else has no text that could be sent."""
    if isinstance(value, Mapping):
        return dict(value)
    return "" if isinstance(value, (bytes, bytearray)) else str(value)
