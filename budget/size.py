"""How many tokens an answer will have, read off the JSON Schema that it must fit.

Output is the dear side of a call, and its schema says how much of it there can be: items, times
what one item takes. Where a schema sets no bound, only the limit of the call does; the size says so
and names the place.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from plangate.plan.forecast import Range
from plangate.plan.value.frozen import thaw

if TYPE_CHECKING:
    from collections.abc import Iterable

Schema: TypeAlias = Mapping[str, Any]

CALL_LIMIT = 8_000
"""Tokens of one answer at most, where the model has no limit of its own."""

LETTERS_P50, LETTERS_P95 = 4.0, 3.0
"""Letters of a token: English prose has 4 to 5, ids and numbers about 3."""

TEXT_P50 = 60.0
"""Tokens of a text that may have any length: two sentences. Its high end is the limit of the call.
"""

ITEMS_P50 = 5.0
"""Items of a list that may have any number."""

_FORMATS = {"date": 10, "time": 12, "date-time": 25, "uuid": 36, "email": 30, "uri": 60}
_MARKS = 2.0
"""Tokens of the brackets of an object or a list; a comma is counted with what stands before it."""


@dataclass(frozen=True, slots=True)
class Size:
    """Tokens of a value that fits a schema."""

    range: Range
    unbounded: tuple[str, ...] = ()
    """Dotted paths that the schema sets no bound for, as `sections[].text`."""


def output_tokens(schema: Schema | None, limit: int = CALL_LIMIT) -> Range:
    """Return the tokens of an answer: in the middle of what its schema allows, and at its end.

    Args:
        schema: JSON Schema; None: a text of any length.
        limit: Tokens of an answer at most, whatever its schema allows.

    Example:
        >>> text = {"type": "string", "maxLength": 4800}
        >>> six = {"type": "array", "items": text, "minItems": 6, "maxItems": 6}
        >>> output_tokens(six)
        Range(p50=3620.0, p95=8000.0)
    """
    return size_of(schema, limit).range


def size_of(schema: Schema | None, limit: int = CALL_LIMIT) -> Size:
    """Return the same, and what the schema sets no bound for."""
    root: Schema = schema if schema is not None else {"type": "string"}
    try:
        found = _Reader(root).read(root, "", ())
        low, high = min(found.p50, float(limit)), min(found.p95, float(limit))
    except (AttributeError, KeyError, TypeError, ValueError, ArithmeticError, RecursionError):
        found, low, high = _open(""), TEXT_P50, float(limit)  # it is no schema at all
    if math.isnan(low + high):
        found, low, high = _open(""), TEXT_P50, float(limit)
    high = max(high, 0.0)
    unbounded = tuple(dict.fromkeys(found.unbounded))
    return Size(Range(p50=min(max(low, 0.0), high), p95=high), unbounded)


@dataclass(frozen=True, slots=True)
class _Found:
    p50: float
    p95: float
    unbounded: tuple[str, ...] = ()


_FIXED = {
    "integer": _Found(2.0, 6.0),
    "number": _Found(2.0, 6.0),
    "boolean": _Found(1.0, 1.0),
    "null": _Found(1.0, 1.0),
}


def _open(path: str) -> _Found:
    return _Found(TEXT_P50, math.inf, (path or "the answer",))


@dataclass(frozen=True, slots=True)
class _Reader:
    root: Schema
    seen: dict[str, _Found] = field(default_factory=dict)
    """By reference: definitions that name each other twice would else double at each level."""

    def read(self, schema: Schema, path: str, refs: tuple[str, ...]) -> _Found:
        """Return the size of what fits a part of the schema.

        Args:
            schema: The part.
            path: Where its value is.
            refs: What was followed to come here; a schema inside itself has no bound.
        """
        name = schema.get("$ref")
        if isinstance(name, str):
            return self._referred(name, path, refs)
        if "const" in schema or "enum" in schema:
            return _one_of([_literal(each) for each in schema.get("enum", [schema.get("const")])])
        either = schema.get("anyOf", schema.get("oneOf"))
        kind = schema.get("type")
        if either is None and isinstance(kind, Sequence) and not isinstance(kind, str):
            either = [{**schema, "type": each} for each in kind]
        if either is not None:
            return _one_of([self.read(each, path, refs) for each in either])
        return self._typed(schema, kind, path, refs)

    def _referred(self, name: str, path: str, refs: tuple[str, ...]) -> _Found:
        if name in refs:
            return _open(path)
        if name not in self.seen:
            self.seen[name] = self.read(self._followed(name), path, (*refs, name))
        return self.seen[name]

    def _typed(self, schema: Schema, kind: Any, path: str, refs: tuple[str, ...]) -> _Found:
        if kind == "object" or (kind is None and "properties" in schema):
            return self._object(schema, path, refs)
        if kind == "array":
            return self._array(schema, path, refs)
        if kind == "string":
            return _text(schema, path)
        return _FIXED.get(str(kind)) or _open(path)

    def _object(self, schema: Schema, path: str, refs: tuple[str, ...]) -> _Found:
        required = frozenset(schema.get("required", ()))
        low, high, unbounded = _MARKS, _MARKS, list[str]()
        for name, each in schema.get("properties", {}).items():
            found = self.read(each, f"{path}.{name}" if path else name, refs)
            key = _letters(len(name))
            share = 1.0 if name in required else 0.5
            low += share * (key.p50 + found.p50)
            high += key.p95 + found.p95
            unbounded += found.unbounded
        if not schema.get("properties") and schema.get("additionalProperties") is not False:
            return _open(path)
        return _Found(low, high, tuple(unbounded))

    def _array(self, schema: Schema, path: str, refs: tuple[str, ...]) -> _Found:
        item = self.read(schema.get("items", {}), f"{path}[]", refs)
        least, most = float(schema.get("minItems", 0)), schema.get("maxItems")
        if most is None:
            here = path or "the answer"
            count = max(least, ITEMS_P50)
            return _Found(_MARKS + count * (item.p50 + 1), math.inf, (here, *item.unbounded))
        middle = (least + max(least, float(most))) / 2
        high = most * (item.p95 + 1) if most else 0.0
        return _Found(_MARKS + middle * (item.p50 + 1), _MARKS + high, item.unbounded)

    def _followed(self, name: str) -> Schema:
        here: Any = self.root
        for part in name.removeprefix("#").strip("/").split("/"):
            here = here.get(part, {}) if isinstance(here, Mapping) else {}
        return here if isinstance(here, Mapping) else {}


def _text(schema: Schema, path: str) -> _Found:
    fixed = _FORMATS.get(str(schema.get("format")))
    least, most = schema.get("minLength", 0), schema.get("maxLength", fixed)
    if most is None:
        return _Found(max(TEXT_P50, least / LETTERS_P50), math.inf, (path or "the answer",))
    middle = (most if fixed == most else (least + max(least, most)) / 2) / LETTERS_P50
    return _Found(_MARKS + middle, _MARKS + most / LETTERS_P95)


def _letters(count: int) -> _Found:
    return _Found(_MARKS + count / LETTERS_P50, _MARKS + count / LETTERS_P95)


def _literal(value: Any) -> _Found:
    text = value if isinstance(value, str) else json.dumps(thaw(value))
    return _letters(len(text))


def _one_of(found: Iterable[_Found]) -> _Found:
    every = list(found) or [_Found(1.0, 1.0)]
    return _Found(
        sum(each.p50 for each in every) / len(every),
        max(each.p95 for each in every),
        tuple(path for each in every for path in each.unbounded),
    )
