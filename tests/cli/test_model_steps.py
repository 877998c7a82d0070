"""Model steps on the command line: who carries them out is said with --model, at each command."""

from __future__ import annotations

import json
import sys

import pytest

from tests.door.test_model_steps import BOOK
from tests.engine.models import GOOD
from tests.models.fake_openai import Said, serving

AGENT = """
from plangate import Agent
from tests.door.test_model_steps import POLICY, TEMPLATE, book, keep, mail
agent = Agent(name="claims", tools=(mail, book, keep), policy=POLICY, templates=(TEMPLATE,))
"""
NAMED = ("--agent", "claims_agent:agent")
GOAL = (*NAMED, "--goal", "Keep it", "--input", "who=Ann", "--task", "claim")
MODEL = ("--model", "openai:gpt-5-mini")


@pytest.fixture(autouse=True)
def claims(here, monkeypatch):
    (here / "claims_agent.py").write_text(AGENT)
    monkeypatch.setattr("sys.path", list(sys.path))
    BOOK.clear()


@pytest.fixture
def file(call):
    call("plan", "make", *GOAL, *MODEL, "--out", "plan.json")
    return "plan.json"


def test_a_plan_is_checked_against_the_model_that_is_named_and_nobody_is_called(call, file):
    call("plan", "check", file, *NAMED, *MODEL)

    refused = call("plan", "check", file, *NAMED, "--json", code=3)
    [issue] = [each for each in json.loads(refused.stdout)["issues"] if each["severity"] == "error"]
    assert (issue["code"], issue["step"]) == ("no_model", "S2")
    assert "--model openai:NAME" in issue["hint"]


def test_a_model_is_named_like_everywhere(call, file):
    said = call("plan", "check", file, *NAMED, "--model", "gpt-5-mini", code=2).stderr

    assert "openai:<model>" in said


def test_a_plan_shows_what_a_model_is_to_answer(call, file):
    shown = call("plan", "show", file, *NAMED).stdout

    assert "answers" in shown
    assert '"cents"' in shown


def test_a_run_over_a_template_asks_its_model_for_its_model_steps_alone(call):
    with serving(Said(GOOD)) as fake:
        at = (*MODEL, "--base-url", fake.url)
        waits = call("run", "start", *GOAL, *at, "--json", code=11)
        run_id = json.loads(waits.stdout)["run_id"]
        assert fake.requests == []
        assert f"--model openai:gpt-5-mini --base-url {fake.url}" in waits.stderr
        call("approve", "--yes", *NAMED, *at)
        log = call("run", "events", run_id, "--json").stdout.splitlines()
        replayed = call("run", "replay", run_id, *NAMED)

    assert (len(fake.requests), BOOK) == (1, {"Ann": 5})
    events = [json.loads(each)["event"] for each in log]
    [asked] = [each for each in events if each["type"] == "model_called"]
    assert (asked["step"], asked["attempt_id"], asked["role"]) == ("S2", "S2-A1", "step")
    assert "nothing would differ" in replayed.stdout


def test_a_run_that_is_taken_up_without_its_model_says_what_is_missing(call):
    with serving(Said(GOOD)) as fake:
        at = (*MODEL, "--base-url", fake.url)
        started = call("run", "start", *GOAL, *at, "--json", code=11)
        run_id = json.loads(started.stdout)["run_id"]
        call("approve", run_id, "--yes", "--record-only", *NAMED, *at)
        gone = call("run", "resume", run_id, *NAMED, "--json", code=3)

    assert "no_model" in json.loads(gone.stdout)["why"]
    assert (fake.requests, BOOK) == ([], {})
