from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from plangate.plan.value.frozen import canonical, digest, freeze, parse, thaw
from plangate.plan.value.plan import Author, Plan
from plangate.plan.value.step import Step

data = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
arguments = st.dictionaries(st.text(max_size=5), data, max_size=3)


def plan_of(args: object) -> Plan:
    step = Step(id="A", objective="o", tool="t", args=args)
    return Plan(
        goal_id="g",
        goal="goal",
        task_type="t",
        steps=(step,),
        inputs=args,
        author=Author(kind="template"),
    )


@given(arguments)
def test_a_plan_survives_the_way_through_json_with_its_hash(args):
    plan = plan_of(args)

    assert parse(Plan, plan.model_dump_json()) == plan
    assert parse(Plan, plan.model_dump(mode="json")).content_hash == plan.content_hash


@given(arguments)
def test_what_is_frozen_can_stand_where_plain_data_can(args):
    frozen = plan_of(args)

    again = plan_of(frozen.inputs)

    assert again == frozen
    assert thaw(freeze(args)) == args


def test_nothing_in_a_plan_can_be_changed_at_any_depth():
    plan = plan_of({"a": [{"b": 1}]})

    with pytest.raises(ValidationError, match="frozen"):
        plan.goal = "other"
    with pytest.raises(TypeError, match="does not support item assignment"):
        plan.steps[0].args["a"] = 2
    with pytest.raises(TypeError, match="does not support item assignment"):
        plan.steps[0].args["a"][0]["b"] = 2


@given(arguments)
def test_the_hash_does_not_depend_on_the_order_of_keys(args):
    assert digest(dict(reversed(args.items()))) == digest(args)


@pytest.mark.parametrize("number", [2**53, math.nan, math.inf])
def test_a_number_that_readers_would_disagree_on_has_no_canonical_form(number):
    with pytest.raises(ValueError, match=r".*"):
        canonical({"n": number})


def test_steps_by_id_stand_in_order_of_the_plan_and_the_first_of_a_doubled_id_counts():
    steps = [Step(id=name, objective=str(n), tool="t") for n, name in enumerate("BABC")]

    found = plan_of({}).model_copy(update={"steps": tuple(steps)}).by_id

    assert list(found.items()) == [("B", steps[0]), ("A", steps[1]), ("C", steps[3])]


def test_a_changed_copy_has_a_hash_of_its_own():
    before = plan_of({})
    hashed, known = before.content_hash, before.by_id

    after = before.model_copy(update={"goal": "another", "steps": ()})

    assert after.content_hash not in ("", hashed)
    assert (after.by_id, list(known)) == ({}, ["A"])
