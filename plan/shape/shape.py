"""Schemas to shapes. It never raises: what cannot be read is an unchecked shape that says why.

Supported: object, array, scalars, enum, const, nullable, local `$ref`, bounds. Everything else is
marked unchecked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, cast

from pydantic_core import SchemaError, SchemaValidator, core_schema

from plangate.plan.shape.identity import Identity
from plangate.plan.shape.value import (
    ANY,
    Bounds,
    Kind,
    Pattern,
    Shape,
    object_of,
    scalar_kind,
)
from plangate.plan.value.frozen import canonical, load_json

if TYPE_CHECKING:
    from plangate.plan.value.frozen import Json

_KINDS = frozenset({"object", "array", "string", "integer", "number", "boolean", "null"})
_SAID_ELSEWHERE = frozenset(
    {"title", "description", "examples", "deprecated", "readOnly", "writeOnly", "$schema", "$id"}
    | {"$comment", "$defs", "definitions", "default", "type", "enum", "const", "format", "$ref"}
    | {"anyOf", "oneOf", "allOf"}
)
_WORDS: Mapping[str, frozenset[str]] = {
    "object": frozenset({"properties", "required", "additionalProperties"}),
    "array": frozenset({"items", "minItems", "maxItems"}),
    "string": frozenset({"minLength", "maxLength", "pattern"}),
    "integer": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}),
    "number": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}),
}
_MAX_DEPTH = 24
_MAX_NODES = 5_000


def compile_shape(schema: Mapping[str, Json]) -> Shape:
    """Return the shape of a JSON Schema; equal schemas give the same object."""
    return _of_object(Identity(schema))


@lru_cache(maxsize=4096)
def _of_object(schema: Identity[Mapping[str, Json]]) -> Shape:
    try:
        return _of_text(canonical(schema.value))
    except (ValueError, RecursionError) as exc:  # not JSON that two readers agree on
        return unchecked(f"its schema has no canonical form: {exc}")


@lru_cache(maxsize=4096)
def _of_text(text: bytes) -> Shape:
    root = load_json(text)
    return _Reader(root).read(root, ())


def unchecked(why: str) -> Shape:
    """Return the shape of a value that cannot be checked."""
    return replace(ANY, unchecked=(why,))


class _Reader:
    """Reads one schema; `$ref` is looked up in its root."""

    def __init__(self, root: Json) -> None:
        self.root = root
        self.left = _MAX_NODES

    def read(self, schema: Json, trail: tuple[str, ...]) -> Shape:
        """Return the shape of a part; `trail` holds the references that led here."""
        self.left -= 1
        if schema is True or schema == {}:
            return ANY
        if not isinstance(schema, Mapping):
            return unchecked(f"a schema is an object, not {type(schema).__name__}")
        if len(trail) > _MAX_DEPTH or self.left < 0:
            return unchecked("its schema is too deep or too large")
        shape = self._shape(schema, trail)
        if "default" in schema:
            shape = replace(shape, default=(schema["default"],))
        if "format" in schema:
            shape = replace(shape, notes=(*shape.notes, f"format: {schema['format']}"))
        return shape

    def _shape(self, schema: Mapping[str, Json], trail: tuple[str, ...]) -> Shape:
        if "$ref" in schema:
            return self._referred(schema["$ref"], trail)
        for word in ("anyOf", "oneOf", "allOf"):
            if word in schema:
                return self._choice(word, schema[word], trail)
        kind, nullable, fault = _kind(schema)
        if fault:
            return unchecked(fault)
        if kind == "object":
            shape = self._object(schema, trail)
        elif kind == "array":
            shape = self._array(schema, trail)
        else:
            shape = _scalar(kind, schema)
        nullable = nullable or None in _listed(schema)
        spare = tuple(_spare(kind, schema))
        return replace(shape, nullable=nullable, unchecked=(*shape.unchecked, *spare))

    def _referred(self, target: Json, trail: tuple[str, ...]) -> Shape:
        if not isinstance(target, str) or not target.startswith("#"):
            return unchecked(f"only local references are read, not {target!r}")
        if target in trail:
            return unchecked(f"{target} refers to itself")
        here = self.root
        for part in target.lstrip("#").strip("/").split("/"):
            name = part.replace("~1", "/").replace("~0", "~")
            if name and isinstance(here, Mapping):
                here = here.get(name)
        if here is None:
            return unchecked(f"{target} is not in the schema")
        return self.read(here, (*trail, target))

    def _choice(self, word: str, options: Json, trail: tuple[str, ...]) -> Shape:
        if not isinstance(options, Sequence) or isinstance(options, str):
            return unchecked(f"{word} is not a list")
        real = [each for each in options if not _is_null(each)]
        nullable = len(real) < len(options)
        if len(real) != 1 or (word == "allOf" and nullable):
            return unchecked(f"{word} over several types is not checked")
        shape = self.read(real[0], (*trail, word))
        return replace(shape, nullable=shape.nullable or nullable)

    def _object(self, schema: Mapping[str, Json], trail: tuple[str, ...]) -> Shape:
        properties = schema.get("properties", {})
        if not isinstance(properties, Mapping):
            return unchecked("properties is not an object")
        deeper = (*trail, "")
        fields = {name: self.read(part, deeper) for name, part in properties.items()}
        required = schema.get("required", ())
        names = [str(name) for name in required] if isinstance(required, Sequence) else []
        more = schema.get("additionalProperties")
        if more is False:
            return object_of(fields, required=names, closed=True)
        if more is None and fields:
            return object_of(fields, required=names)
        extra = ANY if more is None or more is True else self.read(more, deeper)
        return object_of(fields, required=names, extra=extra)

    def _array(self, schema: Mapping[str, Json], trail: tuple[str, ...]) -> Shape:
        items = self.read(schema.get("items", True), (*trail, ""))
        bounds = Bounds(
            shortest=_count(schema, "minItems") or 0, longest=_count(schema, "maxItems")
        )
        inside = tuple(f"elements: {text}" for text in items.unchecked)
        return Shape(kind="array", items=items, bounds=bounds, unchecked=inside)


def _kind(schema: Mapping[str, Json]) -> tuple[Kind, bool, str]:
    said = schema.get("type")
    names = [said] if isinstance(said, str) else list(said) if isinstance(said, Sequence) else []
    real = [name for name in names if name != "null"]
    if said is None:
        return _kind_of_values(schema)
    if not names or not all(isinstance(name, str) and name in _KINDS for name in names):
        return "any", False, f"type {said!r} is not a JSON type"
    if len(real) > 1:
        return "any", False, f"several types ({', '.join(map(str, real))}) are not checked"
    return cast("Kind", real[0]) if real else "null", len(real) < len(names), ""


def _kind_of_values(schema: Mapping[str, Json]) -> tuple[Kind, bool, str]:
    values = [value for value in _listed(schema) if value is not None]
    if not values:
        if _listed(schema):
            return "null", True, ""
        if "properties" in schema:
            return "object", False, ""
        return "any", False, "its schema says nothing about its type"
    kinds = {scalar_kind(value) for value in values}
    return (kinds.pop() if len(kinds) == 1 else "enum"), False, ""


def _listed(schema: Mapping[str, Json]) -> tuple[Json, ...]:
    if "const" in schema:
        return (schema["const"],)
    values = schema.get("enum", ())
    is_list = isinstance(values, Sequence) and not isinstance(values, str)
    return tuple(values) if is_list else ()  # type: ignore[arg-type]


def _is_null(schema: Json) -> bool:
    return isinstance(schema, Mapping) and schema.get("type") == "null"


def _scalar(kind: Kind, schema: Mapping[str, Json]) -> Shape:
    enum = tuple(value for value in _listed(schema) if value is not None)
    shape = Shape(kind=kind, nullable=kind == "null", enum=enum)
    if kind in ("integer", "number"):
        return replace(shape, bounds=_number_bounds(schema))
    if kind == "string":
        bounds = Bounds(
            shortest=_count(schema, "minLength") or 0, longest=_count(schema, "maxLength")
        )
        return _with_pattern(replace(shape, bounds=bounds), schema)
    return shape


def _number_bounds(schema: Mapping[str, Json]) -> Bounds:
    low, above = _number(schema, "minimum"), _number(schema, "exclusiveMinimum")
    high, under = _number(schema, "maximum"), _number(schema, "exclusiveMaximum")
    low_open = above is not None and (low is None or above >= low)
    high_open = under is not None and (high is None or under <= high)
    return Bounds(
        low=above if low_open else low,
        low_open=low_open,
        high=under if high_open else high,
        high_open=high_open,
    )


def _with_pattern(shape: Shape, schema: Mapping[str, Json]) -> Shape:
    text = schema.get("pattern")
    if text is None:
        return shape
    search = _search(text) if isinstance(text, str) else None
    if search is None:
        return replace(shape, unchecked=(f"pattern {text!r} is not checked",))
    return replace(shape, bounds=replace(shape.bounds, pattern=Pattern(str(text), search)))


def _search(pattern: str) -> Callable[[str], bool] | None:
    # pydantic's regular expressions run in linear time: a pattern from a plan cannot hang us
    try:
        checker = SchemaValidator(core_schema.str_schema(pattern=pattern))
    except SchemaError:
        return None
    return checker.isinstance_python


def _spare(kind: Kind, schema: Mapping[str, Json]) -> Iterator[str]:
    known = _WORDS.get(kind, frozenset())
    for word in schema:
        if word not in known and word not in _SAID_ELSEWHERE and not word.startswith("x-"):
            yield f"{word} is not checked"
    if kind in ("object", "array") and _listed(schema):
        yield "enum of objects or lists is not checked"


def _count(schema: Mapping[str, Json], word: str) -> int | None:
    value = schema.get(word)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(schema: Mapping[str, Json], word: str) -> float | None:
    value = schema.get(word)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if is_number else None  # type: ignore[return-value]
