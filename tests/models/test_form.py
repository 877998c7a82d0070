from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.language_models import FakeListChatModel
from langchain_openai import ChatOpenAI

from plangate.budget.prices import PriceBook
from plangate.models.chat import prepared
from plangate.models.form import form_of_schema
from plangate.models.strict import narrowed, unsafe
from plangate.models.working import Work, work_question

TEXT = {"type": "string"}


def record(required: list[str] | None = None, **fields: Any) -> dict[str, Any]:
    names = list(fields) if required is None else required
    return {"type": "object", "properties": fields, "required": names}


def test_an_open_object_is_closed_for_the_provider_and_bounds_of_texts_are_left_out():
    schema = record(who={**TEXT, "maxLength": 9, "title": "Who"}, of=record(n={"type": "integer"}))

    form = form_of_schema(schema, name="step")

    closed = {"additionalProperties": False}
    assert form.strict == record(who=TEXT, of=record(n={"type": "integer"}) | closed) | closed
    assert form.told == schema


@pytest.mark.parametrize(
    "schema",
    [
        record([], who=TEXT),
        record(who={"type": "object"}),
        record(who={"type": "object", "additionalProperties": True}),
        record(who={}),
        record(who={"oneOf": [TEXT, {"type": "integer"}]}),
        record(who={**TEXT, "format": "date"}),
        record(who={"type": ["object", "null"], "properties": {"n": TEXT}}),
        {"type": "object", "properties": ["no"]},
        {"type": "object", "properties": {"who": "no"}},
        TEXT,
    ],
    ids=[
        "an optional field", "any object", "an open one", "anything", "one of several",
        "a word nobody knows", "an object among types", "no schema",
        "no schema inside", "no object",
    ],
)  # fmt: skip
def test_what_strict_mode_cannot_say_is_told_in_words(schema):
    form = form_of_schema(schema, name="step")
    chat = ChatOpenAI(model="gpt-5-mini", base_url="http://127.0.0.1:9/v1", api_key="none")

    model = prepared(chat, form)

    assert form.strict is None
    assert model.schema is None
    assert json.dumps(schema, separators=(",", ":")) in model.spoken


def test_a_model_without_a_strict_mode_is_told_all_bounds():
    form = form_of_schema(record(who={**TEXT, "maxLength": 9}), name="step")

    model = prepared(FakeListChatModel(responses=["{}"]), form)

    assert '"maxLength":9' in model.spoken


SCHEMAS = st.recursive(
    st.sampled_from([TEXT, {"type": "integer"}, {"enum": ["a", "b"]}, {}, {"type": "object"}]),
    lambda inner: st.one_of(
        st.dictionaries(st.sampled_from(["a", "b", "type", "items"]), inner, max_size=3).map(
            lambda fields: record(**fields)
        ),
        st.builds(lambda items: {"type": "array", "items": items}, inner),
        st.builds(lambda fields: record([], a=fields), inner),
    ),
    max_leaves=8,
)


@given(SCHEMAS)
def test_a_schema_is_held_to_exactly_or_not_at_all(schema):
    held = narrowed(schema)

    assert held is None or list(unsafe(held)) == []


FORM = form_of_schema(record(who=TEXT, n={"type": "integer", "minimum": 1}), name="step")


@pytest.mark.parametrize(
    ("text", "flaws"),
    [
        ('Sure: ```json\n{"who": "Ann", "n": 1}\n```', []),
        ('{"who": "Ann"}', [("missing_field", ("n",))]),
        ('{"who": "Ann", "n": 0}', [("bad_value", ("n",))]),
        ('{"who": 1, "n": "x"}', [("bad_value", ("who",)), ("bad_value", ("n",))]),
        ('{"who": "Ann", "n": 1, "n": 2}', [("unparsable", ())]),
        ('["Ann"]', [("unparsable", ())]),
        ("", [("unparsable", ())]),
    ],
)
def test_an_answer_fits_or_says_where_it_does_not(text, flaws):
    read = FORM.read(text)

    found = [(each.code, each.path) for each in read] if isinstance(read, tuple) else []
    assert found == flaws
    assert flaws or read == {"who": "Ann", "n": 1}


async def test_what_never_changes_comes_first_so_that_providers_can_cache_it():
    async def system(task: str) -> str:
        chat = FakeListChatModel(responses=["{}"])
        work = Work(task=task, data={"x": task}, output=record(who=TEXT))
        asking = await work_question(chat, work, book=PriceBook(), on_call=lambda _: None)
        return asking.messages[0]["content"]

    assert await system("Read it") == await system("Sum it up")
