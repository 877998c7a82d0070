from __future__ import annotations

import json
import sys

import pytest

from tests.door.test_model import draft
from tests.models.fake_openai import Said, serving

FLAGS = ("plan", "make", "--agent", "notes_agent:agent", "--goal", "Keep this note")
MODEL = ("--input", "text=milk", "--model", "openai:gpt-5-mini", "--json")
AGENT = """
from plangate import Agent
from tests.door.test_model import POLICY, keep, notes
agent = Agent(name="notes", tools=(notes, keep), policy=POLICY)
"""


@pytest.fixture(autouse=True)
def notes_agent(here, monkeypatch):
    (here / "notes_agent.py").write_text(AGENT)
    monkeypatch.setattr("sys.path", list(sys.path))


def test_a_model_makes_a_plan_and_its_cost_is_said(call):
    with serving(Said(content=draft())) as fake:
        made = call(*FLAGS, *MODEL, "--base-url", fake.url)

    plan = json.loads(made.stdout)
    assert (plan["author"]["kind"], plan["author"]["name"]) == ("planner", "gpt-5-mini")
    assert [step["tool"] for step in plan["steps"]] == ["keep"]
    assert "gpt-5-mini: " in made.stderr
    assert "USD" in made.stderr


def test_a_model_is_told_the_issues_of_its_draft(call):
    with serving(Said(content=draft("invented")), Said(content=draft())) as fake:
        made = call(*FLAGS, *MODEL, "--base-url", fake.url)

    assert json.loads(made.stdout)["steps"][0]["tool"] == "keep"


def test_a_model_that_keeps_inventing_leaves_its_last_plan_and_exits_3(call):
    with serving(*[Said(content=draft("invented"))] * 3) as fake:
        made = call(*FLAGS, *MODEL, "--base-url", fake.url, code=3)

    assert json.loads(made.stdout)["steps"][0]["tool"] == "invented"
    assert "[unknown_tool]" in made.stderr


def test_a_model_without_a_key_is_a_clear_error(call, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)

    assert "OPENAI_API_KEY" in call(*FLAGS, *MODEL, code=2).stderr
