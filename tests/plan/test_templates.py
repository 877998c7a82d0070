from __future__ import annotations

import textwrap

import pytest

from plangate.plan import templates as templates_module
from plangate.plan.errors import ConfigError
from plangate.plan.templates import Template
from plangate.plan.value.frozen import parse
from plangate.plan.value.plan import Plan

DOC = templates_module.__doc__ or ""
TEXT = textwrap.dedent(DOC[DOC.index("    template: refund") : DOC.index("A parameter's")])
REFUND = Template.from_yaml(TEXT)


def test_the_file_in_the_docstring_fills_into_a_plan():
    plan = REFUND.fill(None, {"order_id": "ORD-1"}, "goal-1", catalog_hash="c", policy_hash="p")

    assert (plan.goal, plan.task_type, plan.goal_id) == ("Refund order ORD-1", "refund", "goal-1")
    assert plan.author.kind == "template"
    assert plan.author.name == "refund@3"
    assert dict(plan.inputs) == {"order_id": "ORD-1", "limit_cents": 10000, "channel": "chat"}
    assert plan.steps == REFUND.steps
    assert plan.constraints == REFUND.constraints


def test_filling_is_deterministic_and_survives_json():
    plans = [REFUND.fill("g", {"order_id": "ORD-1"}, f"goal-{at}") for at in range(2)]

    assert plans[0].content_hash == plans[1].content_hash
    assert parse(Plan, plans[0].model_dump_json()).content_hash == plans[0].content_hash


def test_the_goal_of_the_user_goes_before_that_of_the_template():
    assert REFUND.fill("My own words", {"order_id": "ORD-1"}, "g").goal == "My own words"


def test_yaml_words_stay_words():
    assert REFUND.steps[0].routes[0].on == "order_not_found"


@pytest.mark.parametrize(
    ("inputs", "says"),
    [
        ({}, ["'order_id' is missing"]),
        ({"order_id": 7, "channel": "fax"}, ["order_id' is not of type", "none of chat, mail"]),
        ({"order_id": "ORD-1", "limit_cents": True}, ["'limit_cents' is not of type integer"]),
        ({"order_id": "ORD-1", "limit_cents": 0}, ["'limit_cents' is below 1"]),
        ({"order_id": "X"}, ["'order_id' does not match ^ORD-"]),
        ({"order_id": "ORD-" + "1" * 99}, ["longer than 40"]),
        ({"order": "ORD-1"}, ["'order' is not a parameter", "'order_id' is missing"]),
    ],
)
def test_every_bad_input_is_named_at_once(inputs, says):
    with pytest.raises(ConfigError) as caught:
        REFUND.fill(None, inputs, "g")

    assert all(each in str(caught.value) for each in says)
    assert "limit_cents: integer = 10000" in caught.value.hint


def test_the_plan_says_what_its_inputs_may_be():
    plan = REFUND.fill(None, {"order_id": "ORD-1"}, "g")

    assert plan.input_schema is not None
    assert plan.input_schema["required"] == ("order_id", "limit_cents", "channel")
    assert plan.input_schema["properties"]["limit_cents"]["maximum"] == 100000  # type: ignore[index]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("level: L1", "level: L9", r"line 19: steps.0.success.0.level"),
        ("tool: query_order", "tol: query_order", "unknown key"),
        ("version: 3", "version: 3\nversion: 4", "line 3: key 'version' occurs twice"),
        ("${inputs.order_id}", "${inputs.odrer_id}", "without a parameter: odrer_id"),
        ("default: 10000", "default: many", "'many' is not of type integer"),
        ("default: chat", "default: fax", "'fax' is none of chat, mail"),
        ("name: channel", "name: order_id", "two parameters of one name"),
        ("goal: Refund", "goal: {Refund", "line"),
    ],
)
def test_a_bad_template_is_refused_with_its_reason(old, new, says):
    with pytest.raises(ConfigError, match=says):
        Template.from_yaml(TEXT.replace(old, new, 1))


def test_a_template_that_fixes_little_is_taken_and_says_so():
    text = TEXT.replace('day: "${S1.order.day}"', 'day: "${inputs.order_id}"')

    open_template = Template.from_yaml(text)

    assert "parameters in 3 of 4 argument values" in open_template.fixes_little
    assert open_template.fill(None, {"order_id": "ORD-1"}, "g").steps
    assert REFUND.fixes_little == ""


def test_a_default_of_null_makes_a_parameter_nullable():
    text = TEXT.replace("default: 10000, min", "default: null, min")

    plan = Template.from_yaml(text).fill(None, {"order_id": "ORD-1"}, "g")

    assert plan.inputs["limit_cents"] is None


def test_a_tag_cannot_build_an_object():
    with pytest.raises(ConfigError):
        Template.from_yaml("template: !!python/object/apply:os.getcwd []")


def test_a_file_that_is_nested_without_end_is_one_clear_error():
    with pytest.raises(ConfigError, match="nested too deeply"):
        Template.from_yaml("template: " + "[" * 5000 + "]" * 5000)
