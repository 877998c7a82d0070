from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from plangate.agent import load_agent
from plangate.examples.refund.world import SWITCHES
from plangate.plan.errors import ConfigError
from plangate.plan.facts import Facts
from plangate.plan.layers.run import validate
from plangate.plan.policy import Policy
from plangate.plan.repair import find, load_repairs
from plangate.plan.revise.patch import Patched, apply
from plangate.plan.templates import Template
from plangate.plan.tier import tier_of
from plangate.plan.value.frozen import parse
from plangate.plan.value.plan import Author, Plan
from plangate.tools.registry import Registry

AGENT = load_agent("refund")
TEMPLATE = Template.from_yaml(AGENT.templates[0])
FACTS = Facts(
    catalog=Registry(AGENT.tools).catalog(AGENT.rights.scopes),
    rights=AGENT.rights,
    policy=Policy.from_toml(AGENT.policy),
    now=datetime(2026, 11, 30, tzinfo=UTC),
)
INPUTS = {"order_id": "ORD-A1B2C3D4", "line": 1, "amount_cents": 8900}


def plan(**inputs: Any) -> Plan:
    return TEMPLATE.fill(None, {**INPUTS, **inputs}, "g")


def repaired() -> Patched:
    rule = find(load_repairs(AGENT.repairs), "logistics_record_not_found", "query_logistics")
    assert rule is not None
    author = Author(kind="replanner", name=f"rule:{rule.code}")
    old = plan()
    done = frozenset({"S1"})
    return apply(old, rule.patch_for(old, "S2"), author, done=done, catalog=FACTS.catalog)


def test_the_template_fills_to_the_seven_steps():
    assert [step.id for step in plan().steps] == ["S1", "S2", "S3", "S4", "S5", "S6", "S7"]
    assert plan().goal == "Refund 8900 cents for line 1 of order ORD-A1B2C3D4"
    assert (
        TEMPLATE.fill(None, {"order_id": "ORD-A1B2C3D4", "amount_cents": 1}, "g").inputs["line"]
        == 1
    )


@pytest.mark.parametrize(
    ("inputs", "says"),
    [
        ({"order_id": "17"}, "'order_id' does not match"),
        ({"amount_cents": 0}, "'amount_cents' is below 1"),
        ({"amount_cents": "8900"}, "'amount_cents' is not of type integer"),
        ({"note": "x"}, "'note' is not a parameter"),
    ],
)
def test_a_wrong_input_is_named(inputs: dict[str, Any], says: str):
    with pytest.raises(ConfigError, match=says):
        plan(**inputs)


def test_the_plan_passes_every_layer():
    report = validate(plan(), FACTS)

    assert [(issue.code, issue.step, issue.says) for issue in report.issues] == []
    assert report.valid
    assert report.missing_verifiers == ()


def test_the_repaired_plan_passes_every_layer_too():
    report = validate(repaired().plan, FACTS)

    assert [(issue.code, issue.step, issue.says) for issue in report.errors] == []
    assert report.valid


def test_a_missing_record_replaces_one_step_and_keeps_the_rest():
    made = repaired()

    assert [step.id for step in made.plan.steps][:4] == ["S1", "S2a", "S2b", "S3"]
    assert made.diff.replaced == {"S2": ("S2a", "S2b")}
    assert made.diff.kept == ("S1", "S3", "S4", "S5", "S6", "S7")
    assert made.carried == ("S1",)
    assert made.plan.by_id["S4"].args["shipping_state"] == "${S2b.shipping_state}"
    assert made.plan.by_id["S3"].required_facts != plan().by_id["S3"].required_facts
    assert made.diff.boundary == ()
    assert made.diff.reason_refs == ("error://logistics_record_not_found",)


@pytest.mark.parametrize(("amount_cents", "tier"), [(8900, "selective"), (12900, "full")])
def test_the_amount_decides_how_much_a_person_sees(amount_cents: int, tier: str):
    tiering = tier_of(plan(amount_cents=amount_cents), FACTS)

    assert tiering.tier == tier
    assert "S6" in tiering.confirm


@pytest.mark.parametrize(
    ("missing", "code"),
    [("S5", "missing_ancestor"), ("S7", "missing_follow_up")],
)
def test_the_policy_misses_a_step_that_guards_the_payment(missing: str, code: str):
    said = plan().model_dump(mode="json")
    said["steps"] = [step for step in said["steps"] if step["id"] != missing]
    for step in said["steps"]:
        step["after"] = [each for each in step["after"] if each != missing]
        step["preconditions"] = []

    report = validate(parse(Plan, said), FACTS)

    assert [issue.code for issue in report.errors if issue.layer == 4] == [code]


def test_whoever_is_not_in_support_may_not_pay():
    spec = FACTS.catalog.tools["create_refund"]

    assert FACTS.policy.permits(spec, AGENT.rights) is None
    assert FACTS.policy.permits(spec, AGENT.rights.model_copy(update={"roles": ("guest",)}))


def test_every_repair_names_a_code_that_its_tool_declares():
    for rule in load_repairs(AGENT.repairs):
        assert rule.code in FACTS.catalog.tools[rule.tool].errors


def test_every_scenario_loads_fills_and_validates():
    assert list(AGENT.scenarios) == [
        "straightforward",
        "no-logistics-record",
        "over-automatic-limit",
        "accepted-then-timeout",
        "already-refunded",
        "policy-refuses",
        "partial-refund",
        "presale-conflict",
    ]
    for scenario in AGENT.scenarios.values():
        assert set(scenario.world) <= set(SWITCHES)
        assert set(scenario.expect) == {"ending", "verdict", "payments", "plan_versions"}
        assert validate(TEMPLATE.fill(scenario.goal, scenario.inputs, "g"), FACTS).errors == ()
