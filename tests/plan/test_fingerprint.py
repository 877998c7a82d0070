from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plangate.plan.catalog import Effect, ToolSpec
from plangate.plan.fingerprint import Fingerprint, Rest, compare
from plangate.plan.value.frozen import parse


def spec(**said: Any) -> ToolSpec:
    base = {"name": "pay", "summary": "Pay.", "effect": Effect.READ, "params": {}, "output": {}}
    return ToolSpec(**{**base, **said})


def made(**said: Any) -> Fingerprint:
    base = {"plangate": "1", "plan_schema": "s", "graph": "g", "policy": "p", "repairs": "r"}
    tools = {"pay": spec().fingerprint}
    return Fingerprint(
        **{**base, "prompts": {"planner": "a"}, "templates": {"t": "a"}, "tools": tools, **said}
    )


USED = Rest(tools={"pay"})
CASES = [
    ("nothing", {}, USED, "same", ()),
    ("policy", {"policy": "q"}, USED, "revalidate", ("the policy changed",)),
    ("prompt", {"prompts": {"planner": "b"}}, USED, "compatible", ("prompt planner changed",)),
    ("prompt gone", {"prompts": {}}, USED, "compatible", ("prompt planner is gone",)),
    ("template", {"templates": {"t": "b"}}, USED, "compatible", ("template t changed",)),
    ("repairs", {"repairs": "s"}, USED, "compatible", ("the repair rules changed",)),
    ("version", {"plangate": "2"}, USED, "compatible", ("plangate is 2, was 1",)),
    (
        "wiring",
        {"graph": "h"},
        USED,
        "compatible",
        ("the wiring changed; the journal says where the run stands",),
    ),
    (
        "form of plans",
        {"plan_schema": "z"},
        USED,
        "revalidate",
        ("the form of plans changed; this one can be read",),
    ),
    (
        "unreadable plan",
        {"plan_schema": "z"},
        Rest(readable=False),
        "replan",
        ("the plan is written in a form that this version cannot read",),
    ),
]


def tool(**said: Any) -> dict[str, Any]:
    return {"tools": {"pay": spec(**said).fingerprint}}


OF_TOOLS = [
    ({"summary": "Pay it."}, USED, "compatible"),
    ({"seconds": 9.0}, USED, "compatible"),
    ({"params": {"type": "object"}}, USED, "revalidate"),
    ({"output": {"type": "object"}}, USED, "revalidate"),
    ({"effect": Effect.NONE}, USED, "revalidate"),
    ({"version": "2"}, USED, "revalidate"),
    ({"scopes": ("pay",)}, USED, "revalidate"),
    ({"timeout_s": 1.0}, USED, "revalidate"),
    ({"params": {"type": "object"}}, Rest(), "compatible"),
    ({"version": "2"}, Rest(), "compatible"),
]


@pytest.mark.parametrize(("name", "now", "rest", "word", "says"), CASES, ids=lambda x: str(x)[:20])
def test_each_part_asks_for_what_relies_on_it(name, now, rest, word, says):
    found = compare(made(), made(**now), rest)

    assert (found.word, found.reasons) == (word, says), name


@pytest.mark.parametrize(("said", "rest", "word"), OF_TOOLS)
def test_a_tool_matters_where_the_rest_of_the_plan_uses_it_and_only_what_binds(said, rest, word):
    assert compare(made(), made(**tool(**said)), rest).word == word


@pytest.mark.parametrize(
    ("rest", "word"),
    [
        (USED, "replan"),
        (Rest(), "compatible"),
        (Rest(tools={"pay"}, refused={"pay"}), "compatible"),
    ],
    ids=["used", "unused", "refused"],
)
def test_a_tool_that_is_gone_needs_a_new_plan_and_one_that_is_refused_does_not(rest, word):
    assert compare(made(), made(tools={}), rest).word == word


def test_the_gravest_change_decides_and_stands_first():
    now = made(plangate="2", policy="q", tools={})

    found = compare(made(), now, USED)

    assert [each.asks for each in found.changes] == ["replan", "revalidate", "compatible"]
    assert found.word == "replan"


@given(st.sets(st.sampled_from(["pay", "look"])), st.booleans())
def test_equal_prints_are_the_same_whatever_the_rest_is(used, readable):
    assert compare(made(), made(), Rest(tools=used)).word == "same"
    assert (compare(made(), made(), Rest(readable=readable)).word == "same") is readable


def test_a_fingerprint_comes_back_from_json_as_it_was():
    assert parse(Fingerprint, made().model_dump(mode="json")) == made()
