from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plangate.budget.size import CALL_LIMIT, TEXT_P50, output_tokens, size_of

TEXT = {"type": "string", "maxLength": 400}


def listed(least: int, most: int | None, items=TEXT):
    return {"type": "array", "items": items, "minItems": least, "maxItems": most}


def fields(*required: str, **said):
    return {"type": "object", "properties": said, "required": list(required)}


@pytest.mark.parametrize(
    ("schema", "low", "high"),
    [
        ({"type": "boolean"}, 1, 1),
        ({"type": "integer"}, 2, 6),
        ({"type": "string", "minLength": 400, "maxLength": 400}, 102, 135.33),
        ({"type": "string", "maxLength": 400}, 52, 135.33),
        ({"enum": ["low", "high"]}, 2.875, 3.33),
        ({"const": "yes"}, 2.75, 3),
        ({"type": ["string", "null"], "maxLength": 400}, 26.5, 135.33),
        ({"anyOf": [{"type": "null"}, {"type": "boolean"}]}, 1, 1),
        ({"type": "string", "format": "date"}, 4.5, 5.33),
        (listed(6, 6), 2 + 6 * 53, 2 + 6 * 136.33),
        (listed(0, 6), 2 + 3 * 53, 2 + 6 * 136.33),
        (listed(0, 0), 2, 2),
        (fields("a", a={"type": "boolean"}), 2 + 2.25 + 1, 2 + 2.33 + 1),
        (fields(a={"type": "boolean"}), 2 + (2.25 + 1) / 2, 2 + 2.33 + 1),
        ({"$ref": "#/$defs/t", "$defs": {"t": TEXT}}, 52, 135.33),
    ],
    ids=str,
)
def test_a_bounded_schema_gives_a_middle_and_an_end(schema, low, high):
    size = size_of(schema)

    assert (size.range.p50, size.range.p95) == pytest.approx((low, high), abs=0.03)
    assert size.unbounded == ()


@pytest.mark.parametrize(
    ("schema", "named"),
    [
        (None, "the answer"),
        ({"type": "string"}, "the answer"),
        (fields(text={"type": "string"}), "text"),
        (fields(parts={"type": "array", "items": TEXT}), "parts"),
        (fields(parts=listed(1, 3, fields(text={"type": "string"}))), "parts[].text"),
        ({"type": "object"}, "the answer"),
        ({}, "the answer"),
        (
            {
                "$ref": "#/$defs/node",
                "$defs": {"node": fields(next={"$ref": "#/$defs/node"})},
            },
            "next",
        ),
    ],
    ids=str,
)
def test_what_has_no_bound_is_named_and_ends_at_the_limit_of_the_call(schema, named):
    size = size_of(schema)

    assert size.unbounded == (named,)
    assert size.range.p95 == CALL_LIMIT
    assert 0 < size.range.p50 < CALL_LIMIT
    assert size_of(schema, limit=100).range.p95 == 100


def test_a_text_of_any_length_is_taken_for_two_sentences():
    assert output_tokens({"type": "string"}).p50 == TEXT_P50


def test_definitions_that_double_at_each_level_are_read_once():
    defs = {
        f"d{n}": fields(a={"$ref": f"#/$defs/d{n + 1}"}, b={"$ref": f"#/$defs/d{n + 1}"})
        for n in range(60)
    }

    assert size_of({"$ref": "#/$defs/d0", "$defs": {**defs, "d60": TEXT}}).range.p95 == CALL_LIMIT


LEAVES = st.sampled_from([TEXT, {"type": "string"}, {"type": "integer"}, {"enum": ["a", "bcd"]}])
SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: (
        st.tuples(inner, st.integers(0, 4), st.integers(0, 4)).map(
            lambda it: listed(min(it[1:]), max(it[1:]), it[0])
        )
        | st.dictionaries(st.sampled_from("abc"), inner, min_size=1).map(
            lambda it: fields(*list(it)[:1], **it)
        )
        | st.lists(inner, min_size=1, max_size=3).map(lambda it: {"anyOf": it})
    ),
    max_leaves=8,
)


@settings(max_examples=25)
@given(SCHEMAS)
def test_the_middle_is_never_above_the_end(schema):
    assert 0 <= output_tokens(schema).p50 <= output_tokens(schema).p95 <= CALL_LIMIT


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "items",
                    "properties",
                    "maxItems",
                    "maxLength",
                    "anyOf",
                    "$ref",
                    "enum",
                    "a",
                ]
            ),
            inner | st.sampled_from(["array", "string", "object"]),
            max_size=3,
        )
    ),
    max_leaves=6,
)


@settings(max_examples=100)
@given(st.dictionaries(st.sampled_from(["type", "items", "properties", "anyOf", "$ref"]), JSON))
def test_what_is_no_schema_has_a_size_all_the_same(schema):
    span = output_tokens(schema)

    assert 0 <= span.p50 <= span.p95 <= CALL_LIMIT


@settings(max_examples=25)
@given(SCHEMAS, st.integers(1, 5))
def test_one_more_item_never_makes_it_smaller(schema, count):
    small, large = (
        output_tokens(listed(0, count, schema)),
        output_tokens(listed(0, count + 1, schema)),
    )

    assert small.p50 <= large.p50
    assert small.p95 <= large.p95
