from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plangate.plan.shape.shape import compile_shape
from plangate.plan.shape.value import Missing, Shape, infer
from plangate.plan.value.frozen import freeze

SMALL = st.integers(-5, 5)
WORDS = st.sampled_from(["", "a", "ab", "abc", "zz"])
SCALARS = st.one_of(st.none(), st.booleans(), SMALL, st.sampled_from([0.5, 2.0, -3.5]), WORDS)
NAMES = st.sampled_from(["a", "b", "c"])
JSON = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=8,
)


def said(**words: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=words)


def numbers(kind: str) -> st.SearchStrategy[dict[str, Any]]:
    limits = said(minimum=SMALL, maximum=SMALL, exclusiveMinimum=SMALL, exclusiveMaximum=SMALL)
    return limits.map(lambda words: {"type": kind, **words})


TEXTS = said(
    minLength=st.integers(0, 2), maxLength=st.integers(0, 3), pattern=st.sampled_from(["^a", "b"])
).map(lambda words: {"type": "string", **words})
LEAVES = st.one_of(
    numbers("integer"),
    numbers("number"),
    TEXTS,
    st.just({"type": "boolean"}),
    st.just({"type": "null"}),
    st.lists(SCALARS, min_size=1, max_size=3).map(lambda values: {"enum": values}),
)


def objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.builds(
        lambda fields, required, more: {
            "type": "object",
            "properties": fields,
            "required": sorted(required & fields.keys()),
            **more,
        },
        st.dictionaries(NAMES, inner, max_size=3),
        st.sets(NAMES),
        said(additionalProperties=st.one_of(st.just(False), inner)),
    )


def lists(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    limits = said(minItems=st.integers(0, 2), maxItems=st.integers(0, 3))
    return st.builds(lambda items, more: {"type": "array", "items": items, **more}, inner, limits)


def nullables(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return inner.map(lambda schema: {"anyOf": [schema, {"type": "null"}]})


SCHEMAS = st.recursive(
    LEAVES, lambda inner: st.one_of(objects(inner), lists(inner), nullables(inner)), max_leaves=4
)


@given(JSON)
def test_a_value_fits_the_shape_inferred_from_it(value: Any):
    assert infer(value).accepts(value) == ()
    assert infer(value).accepts(freeze(value)) == ()


LIMITS = ["minimum", "maximum", "minLength", "maxLength", "pattern", "required", "minItems"]


def without(schema: Any, words: set[str]) -> Any:
    if isinstance(schema, list):
        return [without(each, words) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {name: without(each, words) for name, each in schema.items() if name not in words}


def fitting(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    if "anyOf" in schema:
        return st.one_of(st.none(), fitting(schema["anyOf"][0]))
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if schema["type"] == "array":
        return st.lists(fitting(schema["items"]), max_size=3)
    if schema["type"] == "object":
        fields = {name: fitting(each) for name, each in schema["properties"].items()}
        needed = {name: each for name, each in fields.items() if name in schema["required"]}
        spare = {"c": SCALARS, **fields}
        rest = {name: each for name, each in spare.items() if name not in needed}
        return st.fixed_dictionaries(needed, optional=rest)
    kinds = {
        "integer": SMALL,
        "number": st.floats(-5, 5),
        "string": WORDS,
        "boolean": st.booleans(),
    }
    return kinds.get(schema["type"], st.none())


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Shape, Shape, list[Any]]:
    other = draw(SCHEMAS)
    looser = without(other, draw(st.sets(st.sampled_from(LIMITS))))
    here = draw(st.one_of(st.just(looser), SCHEMAS))
    values = draw(st.lists(fitting(other), min_size=1, max_size=5))
    return compile_shape(here), compile_shape(other), values


@given(pairs())
def test_what_one_shape_admits_it_accepts(pair: tuple[Shape, Shape, list[Any]]):
    here, other, values = pair

    if not here.unchecked and not other.unchecked and here.admits(other) is None:
        assert [value for value in values if not other.accepts(value) and here.accepts(value)] == []


@given(SCHEMAS, JSON)
def test_the_shape_of_a_value_is_admitted_only_if_the_value_is(schema: Any, value: Any):
    shape, seen = compile_shape(schema), infer(value)

    if not seen.unchecked and not shape.unchecked and shape.admits(seen) is None:
        assert shape.accepts(value) == ()


@given(SCHEMAS)
def test_a_checked_shape_admits_itself(schema: dict[str, Any]):
    shape = compile_shape(schema)

    assert shape.unchecked or shape.admits(shape) is None


SCHEMA_WORDS = ["type", "properties", "items", "enum", "$ref", "anyOf", "required", "pattern"]


@given(st.one_of(JSON, st.dictionaries(st.sampled_from(SCHEMA_WORDS), JSON)), JSON)
def test_any_data_at_all_can_stand_where_a_schema_should(schema: Any, value: Any):
    shape = compile_shape(schema)

    shape.accepts(value)
    shape.at(("a", "0"))
    assert infer(value).admits(shape) is None or shape.kind != "any"


def test_equal_schemas_are_compiled_once():
    assert compile_shape({"type": "string"}) is compile_shape({"type": "string"})


TREE = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "format": "email"},
        "next": {"$ref": "#/$defs/Leaf"},
        "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1},
        "more": {"type": "object", "additionalProperties": {"type": "integer"}},
        "free": {},
    },
    "required": ["name", "tags"],
    "$defs": {"Leaf": {"type": ["object", "null"], "properties": {"n": {"type": "integer"}}}},
}


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("", "object"),
        ("name", "string"),
        ("next.n", "integer"),
        ("tags.7", "string"),
        ("more.anything", "integer"),
        ("free.anything.3", "any"),
    ],
)
def test_the_type_at_the_end_of_a_path_is_known(path: str, kind: str):
    found = compile_shape(TREE).at(path.split(".") if path else [])

    assert isinstance(found, Shape)
    assert found.kind == kind


@pytest.mark.parametrize(
    ("path", "missing"),
    [
        ("nme", Missing("", "nme", ("free", "more", "name", "next", "tags"))),
        ("next.m", Missing("next", "m", ("n",))),
        ("tags.first", Missing("tags", "first", ())),
        ("name.0", Missing("name", "0", ())),
    ],
)
def test_a_path_that_leads_nowhere_says_where_it_ends(path: str, missing: Missing):
    assert compile_shape(TREE).at(path.split(".")) == missing


def test_a_path_says_where_its_value_may_be_absent():
    shape = compile_shape(TREE)

    assert shape.gaps(("name",)) == ()
    assert shape.gaps(("tags", "0")) == ()
    assert shape.gaps(("tags", "1")) == ("tags may be shorter",)
    assert shape.gaps(("next", "n")) == (
        "next may be absent",
        "next may be null",
        "next.n may be absent",
    )


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"type": "strng"}, "not a JSON type"),
        ({"type": ["string", "integer"]}, "several types"),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "several types"),
        ({"$ref": "https://x/y"}, "only local references"),
        ({"$ref": "#/$defs/Gone"}, "not in the schema"),
        ({"$ref": "#"}, "refers to itself"),
        ({"type": "array", "items": {"not": {}}}, "elements: its schema says nothing"),
        ({"type": "integer", "multipleOf": 3}, "multipleOf is not checked"),
        ({"type": "string", "pattern": "(?=x)"}, "pattern '(?=x)' is not checked"),
        ({}, "says nothing"),
    ],
)
def test_what_is_not_read_is_marked_unchecked_and_says_why(schema: dict[str, Any], why: str):
    shape = compile_shape(schema)

    assert shape.unchecked
    assert why in " ".join(shape.unchecked)


def test_a_format_is_a_note_and_does_not_make_a_shape_unchecked():
    shape = compile_shape({"type": "string", "format": "date"})

    assert not shape.unchecked
    assert shape.notes == ("format: date",)


@pytest.mark.parametrize(
    ("here", "other", "certain"),
    [
        ({"type": "string"}, {"type": "integer"}, True),
        ({"type": "integer"}, {"type": "number"}, True),
        ({"type": "string"}, {"type": ["string", "null"]}, False),
        ({"enum": ["a", "b"]}, {"type": "string"}, False),
        ({"enum": ["a", "b"]}, {"enum": ["c"]}, True),
        ({"enum": ["a", "b"]}, {"enum": ["a", "c"]}, False),
        ({"type": "integer", "minimum": 1}, {"type": "integer"}, False),
    ],
)
def test_never_and_not_always_are_told_apart(here: Any, other: Any, certain: bool):
    wanted, found = compile_shape(here), compile_shape(other)

    assert wanted.admits(found) is not None
    assert (wanted.clash(found) is not None) == certain


def test_a_pattern_of_a_hostile_plan_cannot_hang_us():
    shape = compile_shape({"type": "string", "pattern": "^(a+)+$"})

    assert shape.accepts("a" * 5000 + "!")
