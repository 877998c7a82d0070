from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plangate.plan.issue import Report
from plangate.plan.layers.run import read_plan, validate
from plangate.plan.value.plan import Plan
from tests.plan.workshop import facts, found, read, sound


def unread(source: object) -> list[tuple[str, str | None, str, str, str]]:
    report = read_plan(source)
    assert isinstance(report, Report), "it was read as a plan"
    assert not report.valid
    assert report.not_evaluated == (2, 3, 4, 5, 6, 7)
    return [(each.code, each.step, each.field, each.says, each.hint) for each in report.issues]


def changed(**fields: Any) -> dict[str, Any]:
    return {**sound(), **fields}


def test_a_plan_is_read_from_text_bytes_and_data_alike():
    data = sound()
    text = json.dumps(data)

    assert read_plan(text) == read_plan(text.encode()) == read_plan(data)


@pytest.mark.parametrize("source", ["", "{", "[1, 2", '{"a": NaN', b"\xff", "steps:\n- id: S1"])
def test_text_that_is_not_json_says_where_it_breaks(source: str | bytes):
    [(code, _, _, says, hint)] = unread(source)

    assert code == "unparsable"
    assert "not a plan: " in says
    assert "JSON object" in hint


@pytest.mark.parametrize("source", ["[]", "3", "null", [], None, 3, object()])
def test_data_that_is_no_object_is_refused(source: object):
    assert unread(source)[0][0] in ("bad_value", "unparsable")


def test_an_invented_field_is_named_with_its_step_and_its_nearest_neighbour():
    data = changed(stepz=[], budget={"max_dollars": 3})
    data["steps"][0]["tol"] = "x"

    said = unread(data)

    assert ("unknown_field", None, "stepz") in [each[:3] for each in said]
    [tol] = [each for each in said if each[1] == "S1"]
    assert tol[0] == "unknown_field"
    assert tol[3] == "step 'S1' has a field `tol`, which plans do not have"
    assert "Did you mean tool" in tol[4]
    [dollars] = [each for each in said if each[2] == "budget.max_dollars"]
    assert "max_usd" in dollars[4]


def test_a_missing_field_and_a_bad_value_are_named():
    data = sound()
    del data["steps"][0]["objective"]
    data["steps"][1]["kind"] = "humna"
    data["goal"] = ""

    said = [(code, step, field) for code, step, field, _, _ in unread(data)]

    assert ("missing_field", "S1", "objective") in said
    assert ("bad_value", "S2", "kind") in said
    assert ("bad_value", None, "goal") in said


def test_an_invented_tool_is_named_and_its_nearest_are_offered():
    data = sound()
    data["steps"][0]["tool"] = "query_orders"

    report = validate(read(data), facts())

    issue = report.errors[0]
    assert (issue.layer, issue.code, issue.step, issue.field) == (3, "unknown_tool", "S1", "tool")
    assert issue.says == "there is no tool named 'query_orders'"
    assert issue.hint.startswith("Did you mean query_order")


def test_a_cycle_is_named_step_by_step_and_stops_what_needs_an_order():
    data = sound()
    data["steps"][0]["after"] = ["S4"]

    report = validate(read(data), facts())

    [cycle] = [issue for issue in report.issues if issue.code == "cycle"]
    assert cycle.says == "S1 waits for S4, which waits for S1"
    assert report.not_evaluated == (4, 5, 6)
    assert report.unreachable_steps == ("S1", "S2", "S3", "S4")
    assert not report.valid


def test_one_fault_does_not_hide_those_of_other_layers():
    data = changed(success_criteria=[], budget={"max_tool_calls": 1})
    data["steps"][0].update(tool="gone", objective="")
    data["steps"][3]["after"] = ["S33"]

    report = validate(read(data), facts())

    assert {issue.layer for issue in report.errors} == {1, 2, 3, 4, 6, 7}
    assert [issue.layer for issue in report.issues] == sorted(i.layer for i in report.issues)
    assert report.not_evaluated == ()


def test_an_unknown_tool_silences_only_what_would_be_a_guess():
    data = sound()
    data["steps"][0]["tool"] = "gone"

    assert {code for code, _, _ in found(data)} == {"unknown_tool", "missing_ancestor"}


def test_a_literal_of_a_template_or_of_an_accepted_version_has_a_source():
    data = sound()
    data["steps"][2]["args"]["account"] = "DE1"
    plan = read(data)
    of_template = read({**data, "author": {"kind": "template", "name": "refund"}})

    assert not validate(plan, facts()).valid
    assert validate(plan, facts(), sourced=["DE1"]).valid
    assert validate(of_template, facts()).valid


def test_true_is_not_a_source_for_one():
    data = changed(inputs={"order": "ORD-1", "cents": 500, "flag": True})
    data["steps"][2]["args"]["cents"] = 1

    assert ("unsourced_argument", "S3", "args.cents") in found(data)


def test_a_pure_tool_hands_labels_on_and_the_path_is_shown():
    data = sound()
    data["steps"] += [
        {"id": "M", "objective": "m", "tool": "read_mail", "args": {"id": "ORD-1"}},
        {"id": "T", "objective": "t", "tool": "tidy", "args": {"text": "${M.body}"}},
    ]
    data["steps"][2]["args"]["account"] = "${T.text}"

    report = validate(read(data), facts())

    [flow] = [issue for issue in report.issues if issue.code == "untrusted_flow"]
    assert "read_mail.body → tidy.text → pay.account (M → T → S3)" in flow.says


def test_the_report_names_what_it_was_made_against():
    plan, known = read(sound()), facts()

    report = validate(plan, known)

    assert report.content_hash == plan.content_hash
    assert report.catalog_hash == known.catalog.content_hash
    assert report.policy_hash == known.policy.content_hash


NAMES = st.sampled_from(["steps", "id", "goal", "tool", "author"])
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=3)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=4)),
)


@given(JSON)
def test_any_data_at_all_gives_a_plan_or_a_report(data: Any):
    assert isinstance(read_plan(data), (Plan, Report))


TOOLS = st.sampled_from(["query_order", "pay", "gone", "tidy", "read_mail", None])
IDS = st.sampled_from(["S1", "S2", "S3", "S4", "in"])
REFS = st.sampled_from(
    ["${S1.id}", "${S2.x}", "${inputs.order}", "x${S1.id}", "ORD-1", 7, None, []]
)
RULES = st.sampled_from(
    ["steps.S1.output.id == 'x'", "result.ok", "nonsense ((", "steps.in.status"]
)
STEPS = st.fixed_dictionaries(
    {"id": IDS, "objective": st.just("o")},
    optional={
        "tool": TOOLS,
        "after": st.lists(IDS, max_size=2),
        "args": st.dictionaries(st.sampled_from(["id", "text", "cents"]), REFS, max_size=3),
        "when": RULES,
        "for_each": REFS.filter(lambda value: isinstance(value, str)),
        "max_items": st.integers(-1, 3),
        "compensation": IDS,
    },
)


@settings(max_examples=50)
@given(st.lists(STEPS, max_size=5))
def test_validation_never_raises_whatever_a_plan_says(steps: list[dict[str, Any]]):
    report = validate(read(changed(steps=steps)), facts())

    assert report.valid == (not report.errors and not report.not_evaluated)
