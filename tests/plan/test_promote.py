"""A proved plan becomes a template: the same inputs make the same plan, and nothing is guessed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plangate.agent import load_agent
from plangate.plan.errors import ConfigError
from plangate.plan.promote import promoted
from plangate.plan.templates import Template
from plangate.plan.value.plan import Assumption, Author, Plan
from plangate.plan.value.step import Step

INPUTS = {"who": "Ann Lee", "cents": 500, "urgent": True, "rate": 0.5}


def plan_of(args, inputs=INPUTS, goal="Pay Ann Lee {soon}", **more):
    steps = (
        Step(id="S1", objective="Look", tool="look", tool_version="3", args=args),
        Step(id="S2", objective="Pay", tool="pay", args={"to": "${S1.who}", "by": "wire"}),
    )
    said = {"goal_id": "g", "task_type": "tools-1", "inputs": inputs, "goal": goal}
    return Plan(**said, steps=steps, author=Author(kind="planner"), **more)


FIXED = {"who": "${inputs.who}", "cents": 500, "mode": "fast", "note": "on time"}


def test_the_same_inputs_make_the_same_steps_again_whatever_was_planned_for():
    made = promoted(plan_of(FIXED), "pay_somebody")

    read = Template.from_yaml(made.text)
    again = read.fill(None, INPUTS, "g2")

    assert read == made.template
    assert [step.args for step in again.steps] == [step.args for step in plan_of(FIXED).steps]
    assert again.steps[0].tool_version is None
    assert (again.task_type, again.goal, read.goal) == (
        "pay_somebody", "Pay Ann Lee (soon)", "Pay {who} (soon)",
    )  # fmt: skip
    assert read.fill(None, {**INPUTS, "who": "Bob"}, "g3").goal == "Pay Bob (soon)"


def test_a_value_that_only_equals_an_input_stays_fixed_and_is_named():
    made = promoted(plan_of(FIXED), "pay")

    assert made.remarks == ("S1.cents is 500, as input 'cents': it stays fixed",)
    assert made.template.steps[0].args["cents"] == 500


def test_what_a_run_found_out_of_an_assumption_is_open_again():
    assumed = Assumption(
        id="a", statement="So", source="tool", status="invalidated", evidence=("e",)
    )

    made = promoted(plan_of(FIXED, assumptions=(assumed,)), "pay").template

    assert (made.assumptions[0].status, made.assumptions[0].evidence) == ("unverified", ())


@pytest.mark.parametrize(
    ("plan", "says"),
    [
        (plan_of(FIXED, inputs={"many": [1, 2]}), "input 'many' is no single value"),
        (plan_of(dict.fromkeys("abcdef", "${inputs.who}")), "more a form than a plan"),
    ],
)
def test_what_is_no_template_is_refused(plan, says):
    with pytest.raises(ConfigError, match=says):
        promoted(plan, "pay")


def test_a_name_that_is_none_is_refused():
    with pytest.raises(ConfigError, match="template"):
        promoted(plan_of(FIXED), "a name with spaces")


def test_bounds_of_a_template_are_bounds_of_the_one_that_is_made_of_its_plan():
    template = Template.from_yaml(load_agent("refund").templates[0])
    inputs = {"order_id": "ORD-A1B2C3D4", "line": 1, "amount_cents": 100}

    made = promoted(template.fill(None, inputs, "g"), "again").template

    ours = {each.name: each.json_schema for each in made.parameters}
    theirs = {each.name: each.json_schema for each in template.parameters}
    for name, schema in theirs.items():
        schema.pop("description", None)
        assert ours[name] == schema
    assert made.steps == template.steps


@given(st.text(min_size=1, max_size=80), st.text(max_size=30), st.text(max_size=30))
def test_any_goal_and_any_text_of_an_input_give_a_template_that_can_be_read(goal, one, other):
    inputs = {"who": one, "order": other}

    made = promoted(plan_of(FIXED, inputs={**inputs, "cents": 1}, goal=goal), "pay")

    again = Template.from_yaml(made.text).fill(None, {**inputs, "cents": 1}, "g")
    assert again.goal == goal.replace("{", "(").replace("}", ")")
