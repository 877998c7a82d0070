from __future__ import annotations

import textwrap

import pytest

from plangate.plan import repair as repair_module
from plangate.plan.errors import ConfigError, PlanRejected
from plangate.plan.repair import find, load_repairs
from plangate.plan.revise.operations import Keep, Replace, Update
from plangate.plan.revise.patch import apply
from plangate.plan.value.plan import Author, Plan
from plangate.plan.value.step import Step

DOC = repair_module.__doc__ or ""
TEXT = textwrap.dedent(DOC[DOC.index("    repairs:") : DOC.index("A replacement starts")])
RULES = load_repairs(TEXT)
RULE = RULES[0]


def step(id_: str, tool: str, **more: object) -> Step:
    return Step(**{"id": id_, "objective": "o", "tool": tool, **more})


PLAN = Plan(
    goal_id="g",
    goal="g",
    task_type="refund",
    inputs={"order_id": "ORD-1"},
    steps=(
        step("S1", "query_order", args={"order_id": "${inputs.order_id}"}),
        step(
            "S2",
            "query_logistics",
            args={"order_id": "${S1.order_id}"},
            after=("S1",),
            when="inputs.order_id != ''",
        ),
        step("S3", "search_policy", args={"shipped": "${S2.shipped}"}, after=("S1", "S2")),
        step("S4", "verify_eligibility", args={"shipped": "${S2.shipped}"}, after=("S3",)),
    ),
    author=Author(kind="template"),
)
AUTHOR = Author(kind="replanner", name="rule:logistics_record_not_found")


def test_the_file_in_the_docstring_repairs_the_refund():
    patched = apply(PLAN, RULE.patch_for(PLAN, "S2"), AUTHOR, done=frozenset({"S1"}))

    assert [each.id for each in patched.plan.steps] == ["S1", "S2a", "S2b", "S3", "S4"]
    assert patched.diff.kept == ("S1", "S3", "S4")
    assert dict(patched.diff.replaced) == {"S2": ("S2a", "S2b")}
    assert patched.diff.invalidated == ("S2",)
    assert patched.diff.reason_refs == ("error://logistics_record_not_found",)
    assert patched.carried == ("S1",)
    assert patched.plan.by_id["S3"].required_facts == ("order", "fulfilment class")


def test_a_replacement_gets_the_arguments_and_the_conditions_of_the_failed_step():
    patched = apply(PLAN, RULE.patch_for(PLAN, "S2"), AUTHOR, done=frozenset({"S1"})).plan
    first, second = patched.by_id["S2a"], patched.by_id["S2b"]

    assert dict(first.args) == {"order_id": "${S1.order_id}"}
    assert dict(second.args) == {
        "order_id": "${S1.order_id}",
        "fulfillment_type": "${S2a.fulfillment_type}",
    }
    assert (first.after, first.when) == (("S1",), "inputs.order_id != ''")
    assert second.when is None


def test_readers_of_the_failed_step_read_the_last_replacement():
    patched = apply(PLAN, RULE.patch_for(PLAN, "S2"), AUTHOR, done=frozenset({"S1"})).plan

    assert dict(patched.by_id["S4"].args) == {"shipped": "${S2b.shipped}"}
    assert patched.by_id["S3"].after == ("S1", "S2b")


def test_a_patch_says_of_every_step_what_becomes_of_it():
    said = {op.step: type(op) for op in RULE.patch_for(PLAN, "S2").operations}  # type: ignore[union-attr]

    assert said == {"S1": Keep, "S2": Replace, "S3": Update, "S4": Keep}


def test_a_step_that_the_plan_lacks_needs_no_update():
    steps = (PLAN.steps[0], PLAN.steps[1], PLAN.steps[3])
    plan = Plan(**{**PLAN.model_dump(exclude={"steps"}), "steps": steps})

    said = [op.op for op in RULE.patch_for(plan, "S2").operations]

    assert said == ["keep", "keep", "replace"]


def test_a_repair_that_needs_an_argument_the_step_lacks_does_not_fit():
    bare = step("S2", "query_logistics")
    plan = Plan(**{**PLAN.model_dump(exclude={"steps"}), "steps": (bare,)})

    with pytest.raises(PlanRejected) as caught:
        RULE.patch_for(plan, "S2")

    assert caught.value.issues[0].code == "repair_does_not_fit"


def test_a_repair_for_one_tool_goes_before_one_for_any():
    any_tool = RULE.model_copy(update={"tool": "*"})
    rules = (any_tool, RULE)

    assert find(rules, RULE.code, "query_logistics") is RULE
    assert find(rules, RULE.code, "other") is any_tool
    assert find(RULES, RULE.code, "other") is None
    assert find(RULES, "other", "query_logistics") is None


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("scope: local", "scope: global", "scope"),
        ("confidence: 0.8", "confidence: 8", "confidence"),
        ("category: missing", "kategory: missing", "category|unknown key"),
        ("tool: query_fulfillment_details", "tol: x", "step '{step}a'"),
        ('id: "{step}a"', 'id: "{step}-a"', "step '{step}-a': id"),
        ("repairs:", "repair:", "repairs"),
    ],
)
def test_a_bad_file_is_refused(old, new, says):
    with pytest.raises(ConfigError, match=says):
        load_repairs(TEXT.replace(old, new, 1))


def test_two_repairs_for_one_failure_are_refused():
    with pytest.raises(ConfigError, match="two for code"):
        load_repairs(TEXT + TEXT.split("repairs:")[1])


def test_a_local_repair_must_change_something():
    text = "repairs: [{code: a, category: b, scope: local}]"

    with pytest.raises(ConfigError, match="changes nothing"):
        load_repairs(text)


def test_a_repair_without_a_patch_only_says_what_the_failure_means():
    rule = load_repairs("repairs: [{code: a, category: b, needs_person: true}]")[0]

    with pytest.raises(PlanRejected):
        rule.patch_for(PLAN, "S2")


def test_a_check_that_fails_can_have_a_repair_of_its_own():
    text = TEXT.replace("code: logistics_record_not_found", 'code: "check_failed:parcel_of_order"')

    [rule] = load_repairs(text)

    assert find((rule,), "check_failed:parcel_of_order", "query_logistics") is rule
    assert find((rule,), "parcel_of_order", "query_logistics") is None
