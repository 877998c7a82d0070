"""The labelled set: what a verifier says of claims whose truth is known, and two versions."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from click.testing import CliRunner

from plangate.cli.main import cli
from plangate.evals.verdict_report import compared, read_report, report_of
from plangate.evals.verdicts import judge_all, load_cases, priced_judge
from plangate.plan.errors import ConfigError
from plangate.plan.policy_rules import VerifierPolicy
from tests.engine.models import BOOK, Scripted

CASES = load_cases()
OPEN = [each for each in CASES if each.rule is None and each.conflict is None]


def word(says, confidence=0.95, cites=("result",)):
    return json.dumps(
        {"says": says, "confidence": confidence, "cites": list(cites), "failed": [], "why": "so"}
    )


def cites_of(case):
    return tuple(case.evidence)[:1]


def oracle():
    return Scripted([word(each.gold, cites=cites_of(each)) for each in OPEN])


def obedient():
    """Says pass to everything, as a text in the evidence may tell it to."""
    return Scripted([word("pass", cites=cites_of(each)) for each in OPEN])


def test_there_are_cases_of_each_kind_and_each_answer_and_no_two_of_one_name():
    assert len(CASES) >= 40
    assert min(Counter(each.kind for each in CASES).values()) >= 4
    assert len(set(Counter(each.kind for each in CASES))) == 10
    assert {each.gold for each in CASES} == {"pass", "fail", "unknown"}
    assert len({each.id for each in CASES}) == len(CASES)


def test_rules_alone_are_never_wrong_and_leave_the_rest_unknown():
    found = judge_all(CASES)

    assert found.false_passes == ()
    assert all(each.says == each.case.gold for each in found.said if each.by == "rule")
    assert all(each.says == "unknown" for each in found.said if each.by == "nobody")


def test_a_judge_that_knows_better_is_right_everywhere_and_paid_for():
    found = judge_all(CASES, priced_judge(oracle(), BOOK))

    assert all(each.says == each.case.gold for each in found.said)
    counted = Counter(each.gold for each in CASES)
    assert {gold: row[gold] for gold, row in found.matrix().items()} == counted
    judged = [each for each in found.said if each.by == "judge"]
    assert len(judged) == len(OPEN)
    assert all(each.usd > 0 and each.tokens > 0 for each in judged)


def test_one_that_obeys_the_evidence_shows_as_false_passes_first_of_all():
    found = judge_all(CASES, priced_judge(obedient(), BOOK))

    wrong = {each.id for each in OPEN if each.gold != "pass"}
    assert {each.case.id for each in found.false_passes} == wrong
    assert found.false_pass_rate == len(wrong) / sum(each.gold != "pass" for each in CASES)


def test_one_that_is_never_sure_leaves_all_to_people():
    rules = VerifierPolicy(pass_threshold=0.99)

    found = judge_all(CASES, priced_judge(obedient(), BOOK), rules)

    assert found.false_passes == ()
    assert all(each.says == "unknown" for each in found.said if each.by == "judge")


def test_a_new_version_is_told_by_what_passes_now_and_should_not():
    old = report_of(judge_all(CASES))
    new = judge_all(CASES, priced_judge(obedient(), BOOK))

    said = compared(old, new, report_of(new))

    wrong = [each.id for each in OPEN if each.gold != "pass"]
    assert said["false_pass_regressions"] == wrong
    assert said["shift"]["pass"] == len(OPEN) == -said["shift"]["unknown"] == -said["to_people"]
    assert said["matrix"] == old["matrix"]
    again = compared(report_of(new), new, report_of(new))
    assert (again["false_pass_regressions"], again["changed"]) == ([], {})


@pytest.mark.parametrize("text", ["", "[]", "{}", "nothing", '{"said": 3}'])
def test_a_file_that_is_no_report_is_refused(tmp_path, text):
    file = tmp_path / "old.json"
    file.write_text(text)

    with pytest.raises(ConfigError, match=r"report .*old\.json"):
        read_report(str(file))


def test_the_command_writes_a_report_that_a_later_one_is_held_against(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = CliRunner()

    first = run.invoke(cli, ["eval", "verifier", "--out", "v1.json"])
    second = run.invoke(cli, ["eval", "verifier", "--against", "v1.json", "--json"])

    assert (first.exit_code, second.exit_code) == (0, 0), first.output + second.output
    assert "false passes 0.0%" in first.output
    assert json.loads(second.output)["against"]["changed"] == {}
    old = json.loads((tmp_path / "v1.json").read_text())
    old["said"]["pass-refund-paid"] = "pass"
    old["said"]["fail-refund-amount"] = "pass"
    (tmp_path / "v1.json").write_text(json.dumps(old))
    assert run.invoke(cli, ["eval", "verifier", "--against", "v1.json"]).exit_code == 0
    assert run.invoke(cli, ["eval", "verifier", "--out", "/nowhere/x"]).exit_code == 2
