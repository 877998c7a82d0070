"""A model plans through the real HTTP client; what it writes passes the same gate as anything."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from langchain_openai import ChatOpenAI
from langgraph.types import Command

from plangate import Found, PriceBook, create_plan_agent, tool
from plangate.journal.journal import Journal
from plangate.journal.view import RunView, fold
from tests.models.billing import RATES, Books
from tests.models.fake_openai import Fake, Said, serving

POLICY = 'schema = 1\n[[allow]]\ntool = "*"\n'
TEMPLATE = """
template: note
goal: Note {text}
parameters: [{name: text, type: string}]
steps:
  - {id: T1, objective: Look, tool: notes, args: {pattern: all},
     success: [{id: seen, level: L1, claim: There is a number, rule: result.count >= 0}]}
success_criteria: [{id: counted, level: L2, claim: Notes can be counted, tool: notes,
                    args: {pattern: all}, rule: observed.count >= 0}]
budget: {min_level: L1}
"""
kept: list[str] = []


@dataclass
class Notes:
    count: int


@tool(effect="read")
def notes(pattern: str) -> Notes:
    """Count notes."""
    return Notes(len(kept) if pattern == "all" else kept.count(pattern))


def was_kept(key: str, args: Mapping[str, Any], context: object) -> Found:
    return Found(args["text"] in kept)


@tool(effect="write", key="note:{text}", scope="goal", reconcile=was_kept)
def keep(text: str) -> Notes:
    """Keep a note."""
    kept.append(text)
    return Notes(kept.count(text))


def arg(name: str, **source: str) -> dict[str, Any]:
    base = {"value_json": None, "input": None, "step": None, "path": None}
    return {"name": name, "source": next(iter(source)), **base, **_named(source)}


def _named(source: dict[str, str]) -> dict[str, str]:
    kind, value = next(iter(source.items()))
    return {"value_json" if kind == "literal" else kind: value}


def draft(tool_name: str = "keep") -> str:
    check = {
        "claim": "It is among the notes",
        "level": "L2",
        "rule": "observed.count == 1",
        "tool": "notes",
        "args": [arg("pattern", input="text")],
    }
    step = {
        "id": "S1",
        "kind": "tool",
        "tool": tool_name,
        "objective": "Keep it",
        "args": [arg("text", input="text")],
        "after": [],
        "when": None,
        "checks": [check],
        "question": None,
        "output_json": None,
        "expected_output": "How often it is there",
    }
    return json.dumps(
        {
            "goal": "keep a note",
            "steps": [step],
            "success_criteria": [check],
            "abort_conditions": [{"text": "two failures", "rule": "run.failures >= 2"}],
            "assumptions": [],
            "notes": {"decision_code": "one_step", "rejected": []},
        }
    )


@pytest.fixture(autouse=True)
def empty() -> None:
    kept.clear()


@pytest.fixture
def journal_url(tmp_path) -> str:
    return f"sqlite:///{tmp_path}/journal.db"


def agent(fake: Fake, journal_url: str, **more: Any) -> Any:
    model = ChatOpenAI(model="gpt-5-mini", base_url=fake.url, api_key="not-a-key")
    return create_plan_agent(model, [notes, keep], policy=POLICY, journal=journal_url, **more)


CONFIG = {"configurable": {"thread_id": "t"}}
GOAL = {"goal": "Keep this note", "inputs": {"text": "milk"}}


def view_of(journal_url: str) -> Iterator[RunView]:
    journal = Journal.open(journal_url)
    run = journal.runs.list()[0]
    view = fold(journal.log.read(run.run_id))
    journal.close()
    return view


def test_a_models_plan_is_checked_approved_run_and_verified(journal_url):
    with serving(Said(content=draft())) as fake:
        planner = agent(fake, journal_url)
        asked = planner.invoke(GOAL, CONFIG)
        done = planner.invoke(Command(resume={"decision": "approve", "by": "ann"}), CONFIG)

    assert asked["__interrupt__"][0].value["plan_hash"] == done["plan_hash"]
    assert (done["verdict"], kept) == ("pass", ["milk"])
    view = view_of(journal_url)
    assert (view.plans[1].author.kind, view.plans[1].author.name) == ("planner", "gpt-5-mini")
    assert (view.model_calls, view.tokens, str(view.spent_usd)) == (1, 1500, "0.000675")


def test_a_run_costs_what_its_provider_billed_failed_and_repaired_calls_included(journal_url):
    books, book = Books(), PriceBook({"gpt-5-mini": RATES})
    script = (Said(status=503), Said(draft("keep_note")), Said(draft()))
    with serving(*script, books=books) as fake:
        agent(fake, journal_url, prices=book).invoke(GOAL, CONFIG)

    view = view_of(journal_url)
    assert (view.model_calls, books.calls) == (3, 2)
    assert (view.spent_usd, view.tokens) == (books.usd, books.tokens)


def test_an_invented_tool_goes_back_to_the_planner_with_the_reason(journal_url):
    with serving(Said(content=draft("keep_note")), Said(content=draft())) as fake:
        asked = agent(fake, journal_url).invoke(GOAL, CONFIG)
        second = fake.requests[1]["messages"][-1]["content"]

    assert asked["plan_version"] == 2
    assert "unknown_tool" in second
    assert "'keep_note'" in second
    assert [i.code for i in view_of(journal_url).validated[1].issues if i.severity == "error"] == [
        "unknown_tool"
    ]


@pytest.mark.parametrize(
    ("name", "answers"),
    [
        ("no JSON", [Said(content="I would rather talk about it.")]),
        ("always the same fault", [Said(content=draft("keep_note"))]),
        ("a refusal", [Said(content=None, refusal="no")]),
        ("a broken server", [Said(status=400, error={"message": "bad", "code": "x"})]),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_planner_that_keeps_failing_gives_way_to_the_template(journal_url, name, answers):
    with serving(*answers) as fake:
        done = agent(fake, journal_url, templates=[TEMPLATE]).invoke(GOAL, CONFIG)

    assert done["verdict"] == "pass"
    view = view_of(journal_url)
    assert view.plans[view.version].author.kind == "template"
    assert 1 <= len(fake.requests) <= 3
    assert view.model_calls == len(fake.requests)


def test_a_persons_comment_reaches_the_planner_word_for_word(journal_url):
    with serving(Said(content=draft())) as fake:
        planner = agent(fake, journal_url)
        planner.invoke(GOAL, CONFIG)
        said = {"decision": "changes", "comment": "CSV, not XLSX; skip step 2", "by": "ann"}
        asked = planner.invoke(Command(resume=said), CONFIG)
        prompt = fake.requests[1]["messages"][-1]["content"]

    assert "CSV, not XLSX; skip step 2" in prompt
    assert asked["plan_version"] == 2
    assert kept == []


def test_an_unchanged_plan_after_a_comment_is_flagged(journal_url):
    with serving(Said(content=draft())) as fake:
        planner = agent(fake, journal_url)
        planner.invoke(GOAL, CONFIG)
        said = {"decision": "changes", "comment": "CSV, not XLSX", "by": "ann"}
        asked = planner.invoke(Command(resume=said), CONFIG)

    payload = asked["__interrupt__"][0].value
    assert "CSV, not XLSX" in payload["warnings"][0]
    assert "says what it said before" in payload["warnings"][0]
    assert "changes" in payload["allowed_decisions"]


def test_a_persons_edit_is_told_to_whoever_plans_later(journal_url):
    with serving(Said(content=draft())) as fake:
        planner = agent(fake, journal_url)
        planner.invoke(GOAL, CONFIG)
        edit = {"decision": "edit", "edits": [{"step": "S1", "args": {"text": "tea"}}], "by": "ann"}
        planner.invoke(Command(resume=edit), CONFIG)
        asked = planner.invoke(
            Command(resume={"decision": "changes", "comment": "once more", "by": "ann"}), CONFIG
        )
        prompt = fake.requests[-1]["messages"][-1]["content"]

    assert len(fake.requests) == 2
    assert 'ann changed S1.text: "milk" (from "${inputs.text}") -> "tea"' in prompt
    assert asked["plan_version"] == 3
    assert kept == []


def test_reject_with_comments_three_times_then_approve_costs_one_plan_a_round(journal_url):
    with serving(Said(content=draft())) as fake:
        planner = agent(fake, journal_url)
        planner.invoke(GOAL, CONFIG)
        for n in range(3):
            said = {"decision": "changes", "comment": f"round {n}", "by": "ann"}
            planner.invoke(Command(resume=said), CONFIG)
        done = planner.invoke(Command(resume={"decision": "approve", "by": "ann"}), CONFIG)

    assert (len(fake.requests), done["plan_version"], kept) == (4, 4, ["milk"])
    view = view_of(journal_url)
    assert [each.comment for each in view.decisions.values()] == [
        "round 0", "round 1", "round 2", "",
    ]  # fmt: skip
