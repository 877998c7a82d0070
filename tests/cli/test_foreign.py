"""The plans of the source texts, checked as files: what they are read as is said, then judged."""

from __future__ import annotations

import json
import sys

import pytest

from tests.samples.test_foreign import FOLDER, data

AGENT = """
from plangate import Agent
from tests.samples.test_compare import TOOLS
POLICY = 'schema = 1\\n[[allow]]\\ntool = "*"\\n'
agent = Agent(name="compare", tools=tuple(TOOLS), policy=POLICY)
"""
DOCUMENTS = ("--input", "document_a=a.pdf", "--input", "document_b=b.pdf")
NUMBERS = {"1": "S1", "1.5": "S1_5", "2": "S2", "3": "S3", "4": "S4", "5": "S5"}


@pytest.fixture
def check(call, here, monkeypatch):
    monkeypatch.setattr("sys.path", list(sys.path))
    (here / "compare_agent.py").write_text(AGENT)

    def run(name, *flags, code=3):
        where = name if name == "-" else str(FOLDER / f"{name}.json")
        return call("plan", "check", where, "--agent", "compare_agent:agent", *flags, code=code)

    return run


@pytest.mark.parametrize(
    ("name", "form", "ids"),
    [
        ("migration-revised", "ActionPlan", NUMBERS),
        ("migration-revised-zh", "ActionPlan", NUMBERS),
        ("refund", "CapabilityPlan", {}),
        ("compare", "ToolPlan", {}),
        ("compare-as-printed-zh", "ToolPlan", {}),
    ],
)
def test_a_plan_of_another_form_is_read_and_it_is_said_how(check, name, form, ids):
    read = json.loads(check(name, "--json").stdout)["read_as"]

    assert (read["form"], read["ids"]) == (form, ids)
    assert (
        read["fields"].items()
        >= {
            "ActionPlan": {"fallback": "constraints[].text", "estimated_cost": "declared"},
            "CapabilityPlan": {"capability": "tool", "depends_on": "after"},
            "ToolPlan": {"args_from": "args", "risk": "declared.side_effect"},
        }[form].items()
    )


def test_a_person_is_told_in_one_line(check):
    first = check("migration-revised").stdout.splitlines()[0]

    assert first.startswith("read as ActionPlan. Ids: 1 is S1, 1.5 is S1_5, 2 is S2,")
    assert "fallback is constraints[].text" in first


def test_it_is_then_checked_like_any_plan(check):
    report = json.loads(check("compare", "--json", *DOCUMENTS).stdout)

    assert {each["layer"] for each in report["issues"]} == {7}, "only words are left to write out"
    assert "uncheckable" in {each["code"] for each in report["issues"]}
    assert report["not_evaluated"] == []


def test_what_it_refers_to_and_nobody_gave_is_found(check):
    report = json.loads(check("compare", "--json").stdout)

    assert {each["step"] for each in report["issues"] if each["layer"] == 3} == {
        "extract_a",
        "extract_b",
    }


def test_the_same_plan_in_another_language_has_the_same_faults(check):
    def faults(name):
        issues = json.loads(check(name, "--json").stdout)["issues"]
        return [(each["code"], each["step"], each["field"]) for each in issues]

    assert faults("migration-revised-zh") == faults("migration-revised")
    assert faults("compare-as-printed-zh") == faults("compare-as-printed")


def test_a_misspelt_field_is_named_and_the_form_still_told(call, check):
    said = data("refund")
    said["steps"][1]["depend_on"] = said["steps"][1].pop("depends_on")
    flags = ("--agent", "compare_agent:agent", "--json")

    report = json.loads(call("plan", "check", "-", *flags, stdin=json.dumps(said), code=3).stdout)

    assert [each["field"] for each in report["issues"]] == ["steps[1].depend_on"]
    assert report["read_as"]["form"] == "CapabilityPlan"


def test_our_own_form_with_a_field_of_another_stays_ours(call, plan):
    plan["steps"][1]["depends_on"] = ["S1"]

    flags = ("--agent", "refund", "--json")
    report = json.loads(call("plan", "check", "-", *flags, stdin=json.dumps(plan), code=3).stdout)

    assert report["read_as"] is None
    assert [each["field"] for each in report["issues"]] == ["depends_on"]


def test_inputs_are_for_plans_that_have_none(call, plan):
    said = call(
        *("plan", "check", "-", "--agent", "refund", "--input", "x=1"),
        stdin=json.dumps(plan),
        code=2,
    )

    assert "has its own inputs" in said.stderr
