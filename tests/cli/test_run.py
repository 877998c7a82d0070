from __future__ import annotations

import getpass
import json
import sys

import pytest

from plangate.agent import load_agent
from tests.cli.conftest import INPUTS


def test_a_run_without_a_person_stops_at_its_question_with_exit_11(call, waiting):
    assert waiting["status"] == "waiting"
    assert waiting["plan_versions"] == [1]
    [question] = waiting["questions"]
    assert (question["kind"], question["audience"], question["pending"]) == (
        "approval",
        "operator",
        True,
    )


def test_a_run_can_be_looked_at_at_any_time(call, waiting):
    shown = json.loads(call("run", "show", waiting["run_id"], "--json").stdout)

    assert shown == waiting
    assert {
        "goal_id",
        "plan_versions",
        "planner",
        "capability_snapshot",
        "observations",
        "plan_diffs",
        "reflections",
        "verifiers",
        "terminal_verdict",
        "verified_outcome_ref",
        "state_version",
        "effects",
    } <= shown.keys()
    assert "waits for operator" in call("run", "show", waiting["run_id"]).stdout


def test_a_resume_with_yes_brings_the_run_to_its_verified_end(call, waiting):
    run_id = waiting["run_id"]

    done = json.loads(call("run", "resume", run_id, "--yes", "--json").stdout)

    assert (done["status"], done["terminal_verdict"], done["ending"]) == (
        "ended",
        "pass",
        "completed",
    )
    assert [row["state"] for row in done["effects"]] == ["done"]
    assert {each["by"] for each in done["questions"]} == {"--yes"}
    assert done["verified_outcome_ref"].startswith("sha256:")
    assert done["report"]["verdict"] == "pass"


def test_an_ended_run_is_not_resumed(call, waiting):
    call("run", "resume", waiting["run_id"], "--yes", "--json")

    result = call("run", "resume", waiting["run_id"], code=2)

    assert "has ended" in result.stderr


def test_events_are_json_lines_that_can_be_filtered_and_continued(call, waiting):
    run_id = waiting["run_id"]
    rows = [json.loads(row) for row in call("run", "events", run_id, "--json").stdout.splitlines()]

    assert [row["seq"] for row in rows] == list(range(1, waiting["events"] + 1))
    some = call("run", "events", run_id, "--json", "--after", "2", "--type", "question_asked")
    assert [json.loads(row)["event"]["type"] for row in some.stdout.splitlines()] == [
        "question_asked"
    ]


def test_an_unknown_type_of_event_is_refused(call, waiting):
    result = call("run", "events", waiting["run_id"], "--type", "nonsense", code=2)

    assert "question_asked" in result.stderr


def test_following_ends_with_the_run(call, waiting, start):
    watcher = start("run", "events", waiting["run_id"], "--follow", "--json")

    call("run", "resume", waiting["run_id"], "--yes", "--json")

    stdout, _ = watcher.communicate(timeout=30)
    assert watcher.returncode == 0
    assert json.loads(stdout.splitlines()[-1])["event"]["type"] == "run_ended"


def test_runs_are_listed_newest_first_and_by_status(call, waiting):
    listed = json.loads(call("run", "list", "--json").stdout)

    assert [row["run_id"] for row in listed] == [waiting["run_id"]]
    assert json.loads(call("run", "list", "--status", "ended", "--json").stdout) == []
    assert waiting["run_id"] in call("run", "list").stdout
    call("run", "list", "--status", "nonsense", code=2)


def test_runs_and_effects_of_demos_are_listed_too(call):
    waits = call("demo", "refund", "--json", code=11)
    run_id = json.loads(waits.stdout)["run_id"]

    assert run_id in call("run", "list").stdout
    assert "no effects" in call("effects", "list").stderr
    call("approve", "--yes", code=11)
    call("approve", "--yes")
    assert "refund:ORD-B7K2M9Q4:1:6450" in call("effects", "list").stdout


def test_a_list_without_runs_says_so(call, waiting):
    listed = call("run", "list", "--status", "ended")

    assert (listed.stdout, listed.stderr) == ("", "no runs\n")


def test_on_a_narrow_terminal_only_the_goal_is_cut(call, waiting, monkeypatch):
    monkeypatch.setenv("COLUMNS", "72")

    [row] = [row for row in call("run", "list").stdout.splitlines() if "run_" in row]

    assert row.split()[:3] == [waiting["run_id"], "waiting", "refund"]


def test_an_unknown_run_is_named_with_a_hint(call, waiting):
    result = call("run", "show", "run_nowhere", code=2)

    assert "no run 'run_nowhere'" in result.stderr


def test_the_plan_of_a_run_can_be_shown_and_checked(call, here, waiting):
    plan = call("plan", "show", "--run", waiting["run_id"], "--json").stdout

    call("plan", "check", "-", "--agent", "refund", stdin=plan)
    call("plan", "show", "--run", waiting["run_id"], "--version", "9", code=2)


def test_a_misspelt_journal_is_not_made(call, here):
    call("run", "list", "--journal", "sqlite:///other.db", code=2)

    assert not (here / "other.db").exists()


@pytest.mark.parametrize("before", [True, False])
def test_the_journal_can_be_named_before_and_behind_the_command(call, here, before):
    named = ("--journal", "sqlite:///mine.db")
    words = ("run", "start", "--agent", "refund", "--goal", "x", "--input", "order_id=ORD-B7K2M9Q4")
    words += ("--input", "amount_cents=1", "--json")

    call(*((*named, *words) if before else (*words, *named)), code=11)

    assert (here / "mine.db").exists()
    assert not (here / ".plangate" / "journal.db").exists()


def test_effects_are_listed_by_run_and_state(call, waiting):
    call("run", "resume", waiting["run_id"], "--yes", "--json")

    [row] = json.loads(call("effects", "list", "--run", waiting["run_id"], "--json").stdout)

    assert (row["state"], row["business_key"]) == ("done", "refund:ORD-B7K2M9Q4:1:6450")
    assert json.loads(call("effects", "list", "--state", "unknown", "--json").stdout) == []
    assert "create_refund" in call("effects", "list").stdout


def test_a_doctor_finds_this_installation_healthy_and_tells_no_secret(call, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")

    said = call("doctor", "--json").stdout

    assert json.loads(said)["healthy"]
    assert "sk-very-secret" not in said


def test_a_doctor_says_what_is_wrong_with_a_journal(call, here):
    (here / "bad.db").write_text("this is no database, " * 100)

    said = call("doctor", "--journal", "sqlite:///bad.db", code=7).stdout

    assert "broken journal" in said


def test_a_replay_says_that_nothing_would_differ_or_what_and_ends_with_5(call, waiting, here):
    run_id = waiting["run_id"]
    stricter = load_agent("refund").policy.replace("over = 10000", "over = 10")
    (here / "policy.toml").write_text(stricter)

    same = call("run", "replay", run_id)
    other = call("run", "replay", run_id, "--policy", "policy.toml", code=5)
    data = json.loads(
        call("run", "replay", run_id, "--policy", "policy.toml", "--json", code=5).stdout
    )

    assert "nothing would differ" in same.stdout
    assert "tier v1: was selective, would be full (the policy changed)" in other.stdout
    assert (data["same"], data["changes"][0]["part"]) == (False, "policy")
    assert {"kind": "tier", "about": "v1", "was": "selective", "would": "full"}.items() <= next(
        each for each in data["differences"] if each["kind"] == "tier"
    ).items()


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("run_none",), "run_none"),
        (("--policy", "none.toml"), "policy file 'none.toml' cannot be read"),
    ],
)
def test_a_replay_that_cannot_be_is_refused_with_the_reason(call, waiting, args, says):
    run_id = () if args[0] == "run_none" else (waiting["run_id"],)

    result = call("run", "replay", *run_id, *args, code=2)

    assert says in result.stderr


def test_a_run_shows_what_it_is_made_of(waiting):
    assert {"plangate", "plan_schema", "policy", "prompts", "tools"} <= waiting[
        "fingerprint"
    ].keys()


MINE = """
from dataclasses import replace
from pathlib import Path

from plangate.agent import load_agent

agent = replace(load_agent("refund"), policy=Path("policy.toml").read_text())
"""


def test_a_resume_says_what_changed_and_that_the_approval_covers_it_no_more(
    call, here, monkeypatch
):
    policy = load_agent("refund").policy
    (here / "mine.py").write_text(MINE)
    (here / "policy.toml").write_text(policy)
    monkeypatch.syspath_prepend(here)
    goal = ("--goal", "Refund it", *INPUTS, "--agent", "mine:agent")
    world = ("--world", f"sqlite:///{here}/world.db")
    run_id = json.loads(call("run", "start", *goal, *world, "--json", code=11).stdout)["run_id"]
    (here / "policy.toml").write_text(policy.replace("over = 10000", "over = 10"))
    sys.modules.pop("mine")

    waits = call("run", "resume", run_id, "--agent", "mine:agent", *world, code=11)
    goes_on = call("run", "resume", run_id, "--agent", "mine:agent", *world, "--yes")
    events = call("run", "events", run_id, "--type", "fingerprinted").stdout

    assert "changed since: the policy changed" in waits.stderr
    says = "the policy changed: the plan is checked again, and approved again"
    assert says in goes_on.stderr
    assert says in events
    asked = call("run", "events", run_id, "--type", "question_asked").stdout
    assert asked.count("operator: approval") == 2
    sys.modules.pop("mine")


@pytest.mark.parametrize(
    ("raised", "code", "says"),
    [
        ("max_replans=4", 9, "the policy allows 3"),
        ("max_usd=0.10", 2, "already"),
        ("max_usd=lots", 2, "max_usd cannot be 'lots'"),
        ("colour=red", 2, "'colour' is no limit that can be raised"),
        ("max_usd", 2, "is not NAME=VALUE"),
    ],
)
def test_a_raise_that_is_none_says_why_and_the_run_waits_on(call, waiting, raised, code, says):
    got = call("run", "resume", waiting["run_id"], "--raise", raised, code=code)

    assert says in got.stderr + got.stdout
    shown = json.loads(call("run", "show", waiting["run_id"], "--json").stdout)
    assert (shown["status"], shown["limits_raised"]) == ("waiting", [])


def test_a_raise_is_recorded_under_the_name_of_who_gave_it(call, waiting):
    call("run", "resume", waiting["run_id"], "--raise", "max_usd=1.00", code=11)

    [raised] = json.loads(call("run", "show", waiting["run_id"], "--json").stdout)["limits_raised"]
    assert (raised["by"], raised["limits"]) == (getpass.getuser(), {"max_usd": "1.00"})
    events = call("run", "events", waiting["run_id"]).stdout
    assert "limit raised by" in events
