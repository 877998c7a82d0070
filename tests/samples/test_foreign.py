from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plangate.plan.catalog import Catalog
from plangate.plan.foreign import ActionPlan, CapabilityPlan, ToolPlan, form_of, import_plan, our_id
from plangate.plan.issue import Report
from plangate.plan.layers.run import validate
from plangate.plan.policy import Policy
from plangate.plan.value.frozen import parse
from plangate.plan.value.plan import Plan
from tests.samples.cases import base
from tests.samples.catalogs import desk, record, spec

FOLDER = Path(__file__).parent / "foreign"
TEXT = {"type": "string"}
LIST = {"type": "array", "items": TEXT}
READ = spec("read_document", "read", record(document=TEXT), record(conditions=LIST))
COMPARE = spec("compare_evidence", "read", record(a=LIST, b=LIST), record(same=LIST, differs=LIST))
FACTS = replace(
    desk("refund").facts(),
    catalog=Catalog.of([READ, COMPARE]),
    policy=Policy.from_toml('schema = 1\n[[allow]]\ntool = "*"\n'),
)
DOCUMENTS = {"document_a": "a.pdf", "document_b": "b.pdf"}


def data(name: str) -> Any:
    return json.loads((FOLDER / f"{name}.json").read_text("utf-8"))


def read(name: str, on: str = "refund", **more: Any) -> Plan:
    catalog = desk(on).facts().catalog
    plan = import_plan(data(name), catalog, goal_id="g", **more)
    assert isinstance(plan, Plan), plan
    return plan


def compared(said: Any) -> Plan:
    plan = import_plan(said, FACTS.catalog, goal_id="g", inputs=DOCUMENTS)
    assert isinstance(plan, Plan), plan
    return plan


def with_checks(plan: Plan) -> Plan:
    """What a person has to add before an imported comparison can be approved."""
    said = plan.model_dump(mode="json")
    for step in said["steps"]:
        field = "same" if step["id"] == "compare" else "conditions"
        step["success"][0]["rule"] = f"size(result.{field}) > 0"
    said["success_criteria"] = [
        {"id": "g", "level": "L1", "claim": "Compared", "rule": "steps.compare.status == 'done'"}
    ]
    return parse(Plan, said)


def errors(plan: Plan, on: str = "refund") -> set[tuple[int, str, str | None]]:
    report = validate(plan, desk(on).facts(plan))
    assert not report.valid
    return {(each.layer, each.code, each.step) for each in report.errors}


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("migration", ActionPlan),
        ("migration-revised", ActionPlan),
        ("refund", CapabilityPlan),
        ("compare", ToolPlan),
        ("compare-as-printed", ToolPlan),
    ],
)
def test_each_form_is_told_by_its_shape(name: str, form: type):
    assert form_of(data(name)) is form


def test_a_plan_of_our_own_is_no_foreign_form_and_is_read_as_it_is():
    ours = base("aml")

    plan = import_plan(ours, desk("aml").facts().catalog, goal_id="other")

    assert form_of(ours) is None
    assert isinstance(plan, Plan)
    assert plan.goal_id == ours["goal_id"]


@pytest.mark.parametrize("said", [None, [], "x", {}, {"steps": []}, {"steps": "x"}, {"steps": [1]}])
def test_what_has_no_known_form_is_refused_as_any_text_is(said: Any):
    assert isinstance(import_plan(said, desk("aml").facts().catalog, goal_id="g"), Report)


def test_numbered_actions_become_steps_in_order_with_ids_of_ours():
    plan = read("migration-revised", "migration")

    assert [step.id for step in plan.steps] == ["S1", "S1_5", "S2", "S3", "S4", "S5"]
    assert [step.after for step in plan.steps[:3]] == [(), ("S1",), ("S1_5",)]
    told = [note.selected_capability for note in plan.notes if note.decision_code == "id_mapped"]
    assert "'1.5' is S1_5" in told
    assert len(told) == 6


def test_a_new_step_in_the_middle_leaves_the_others_alone():
    before, after = read("migration", "migration"), read("migration-revised", "migration")

    assert {step.id for step in after.steps} - {step.id for step in before.steps} == {"S1_5"}
    assert after.by_id["S3"] == before.by_id["S3"]


def test_words_stay_words_and_layer_7_says_which_nobody_can_check():
    plan = read("migration", "migration")

    assert all(check.rule is None for check in plan.success_criteria)
    assert plan.abort_conditions == ()
    report = validate(plan, desk("migration").facts(plan))
    vague = [each.says for each in report.errors if each.layer == 7]
    assert vague == [
        f"check {name!r} of level L1 has no rule"
        for name in ("goal_1", "abort_1", "abort_2", "abort_3")
    ]
    claims = [check.claim for check in plan.success_criteria]
    assert claims[2] == "It never came to: QPS falls by more than 20 % during the migration"
    assert "no_abort" in {each.code for each in report.warnings}


def test_an_action_in_words_is_a_milestone_and_not_a_guess_at_a_tool():
    plan = read("migration", "migration")

    assert {step.kind for step in plan.steps} == {"milestone"}
    refused = {(3, "not_supported", step.id) for step in plan.steps}
    assert refused <= errors(plan, "migration")


def test_an_action_that_is_a_tool_of_the_catalog_is_that_tool():
    said = data("migration")
    said["steps"][0]["action"] = "scan_column"

    plan = import_plan(said, desk("migration").facts().catalog, goal_id="g")

    assert isinstance(plan, Plan)
    assert plan.by_id["S1"].tool == "scan_column"


def test_fallbacks_and_costs_are_kept_as_what_somebody_said():
    plan = read("migration", "migration")

    declared = plan.by_id["S3"].declared
    assert declared is not None
    assert (declared.tokens, declared.seconds) == (400, 2400)
    assert [each.id for each in plan.constraints] == [f"fallback_S{n}" for n in range(1, 6)]
    assert plan.constraints[0].text.startswith("If S1 fails: If more than 1 % is anomalous, pause")
    assert all(step.routes == () for step in plan.steps)


def test_the_refund_reads_as_seven_steps_and_a_capability_without_a_tool_is_named():
    plan = read("refund")

    assert [step.tool for step in plan.steps][4:] == [
        "request_confirmation",
        "create_refund",
        "verify_final_state",
    ]
    assert plan.by_id["S3"].after == ("S1", "S2")
    found = errors(plan)
    assert (3, "unknown_tool", "S5") in found
    assert {step for _, code, step in found if code == "missing_argument"} == {
        "S1",
        "S2",
        "S3",
        "S4",
        "S6",
        "S7",
    }
    assert (5, "unproved_effect", "S6") in found
    assert (7, "no_criteria", None) in found


def test_a_caller_may_say_what_a_capability_means():
    plan = read("refund", capabilities={"request_confirmation": "human:customer"})

    assert plan.by_id["S5"].capability == "human:customer"
    assert not {code for _, code, _ in errors(plan)} & {"unknown_tool", "missing_ancestor"}


def test_the_printed_comparison_lacks_the_reading_of_b():
    plan = compared(data("compare-as-printed"))

    report = validate(plan, FACTS)
    first = report.errors[0]
    assert (first.layer, first.code, first.step) == (2, "unknown_step", "compare")
    assert "'extract_b'" in first.says


def test_the_comparison_is_sound_once_somebody_wrote_its_checks():
    checked = with_checks(compared(data("compare")))

    assert validate(compared(data("compare")), FACTS).errors != ()
    assert validate(checked, FACTS).errors == ()
    assert dict(checked.by_id["extract_b"].args) == {"document": "${inputs.document_b}"}
    assert dict(checked.by_id["compare"].args)["b"] == "${extract_b.conditions}"
    risk = checked.by_id["compare"].declared
    assert risk is not None
    assert risk.side_effect == "read"


def test_a_risk_that_is_played_down_is_found():
    said = data("compare")
    said["steps"] = [{**said["steps"][0], "tool": "create_refund"}]

    plan = import_plan(said, desk("refund").facts().catalog, goal_id="g")

    assert isinstance(plan, Plan)
    assert (5, "effect_understated", "extract_a") in errors(plan)


def test_a_source_that_fits_no_argument_is_told_and_not_put_anywhere():
    said = data("compare")
    said["steps"][2]["args_from"] = ["extract_a.conditions", "extract_b.conditions"]

    plan = compared(said)
    found = {(each.code, each.field) for each in validate(plan, FACTS).errors if each.layer == 3}

    assert found == {
        ("surplus_argument", "args.extract_a_conditions"),
        ("surplus_argument", "args.extract_b_conditions"),
        ("missing_argument", "args.a"),
        ("missing_argument", "args.b"),
    }


@pytest.mark.parametrize(
    ("name", "change", "code", "field"),
    [
        ("refund", {"goal": None}, "bad_value", "goal"),
        ("refund", {"owner": "x"}, "unknown_field", "owner"),
        ("migration", {"success_criteria": 3}, "bad_value", "success_criteria"),
    ],
)
def test_a_foreign_plan_that_cannot_be_read_says_where(name, change, code, field):
    report = import_plan({**data(name), **change}, desk("refund").facts().catalog, goal_id="g")

    assert isinstance(report, Report)
    assert not report.valid
    assert (report.issues[0].code, report.issues[0].field.partition(".")[0]) == (code, field)
    assert all(each.hint for each in report.issues)


def test_a_misspelt_field_of_a_step_is_named_with_those_there_are():
    said = data("refund")
    said["steps"][1]["depend_on"] = said["steps"][1].pop("depends_on")

    report = import_plan(said, desk("refund").facts().catalog, goal_id="g")

    assert isinstance(report, Report)
    assert (report.issues[0].code, report.issues[0].field) == (
        "unknown_field",
        "steps[1].depend_on",
    )
    assert "depends_on" in report.issues[0].hint


@pytest.mark.parametrize(
    ("given", "ours"),
    [
        (1, "S1"),
        ("1.5", "S1_5"),
        (1.5, "S1_5"),
        ("S1", "S1"),
        ("step 2b", "Sstep_2b"),
        ("result", "Sresult"),
        ("第一步", "S"),
    ],
)
def test_an_id_is_always_read_as_the_same_one(given, ours):
    assert our_id(given) == ours


def test_two_ids_that_become_one_are_refused():
    said = data("migration")
    said["steps"][1]["id"] = "1"

    plan = import_plan(said, desk("migration").facts().catalog, goal_id="g")

    assert isinstance(plan, Plan)
    assert (1, "duplicate_id", "S1") in errors(plan, "migration")


WORDS = st.sampled_from(["S1", "extract_a", "1.5", "user.x", "S1.x", "read_document", "human:", ""])
VALUES = st.one_of(WORDS, st.integers(), st.floats(), st.none(), st.just(object()))
FIELDS = ("id", "action", "capability", "tool", "depends_on", "args_from", "success", "risk")
STEPS = st.dictionaries(st.sampled_from(FIELDS), VALUES | st.lists(WORDS, max_size=3))


@settings(max_examples=100)
@given(st.lists(STEPS, max_size=3), VALUES)
def test_whatever_a_foreign_plan_says_there_is_a_plan_or_a_report(steps: list[Any], goal: Any):
    got = import_plan({"goal": goal, "steps": steps}, FACTS.catalog, goal_id="g")

    assert isinstance(got, (Plan, Report))
    if isinstance(got, Plan):
        assert not validate(got, FACTS).valid
