"""Model steps from the door to the provider's wire and back, on both doors, and in a replay."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from langchain_openai import ChatOpenAI
from langgraph.types import Command
from typing_extensions import TypedDict

from plangate import create_plan_agent, tool
from plangate.agent import Agent
from plangate.journal.journal import Journal
from plangate.journal.view import fold
from plangate.models.strict import unsafe
from plangate.plan.errors import ConfigError
from plangate.replay.drive import replay
from tests.engine.models import GOOD, Scripted
from tests.models.fake_openai import Said, serving

POLICY = """
schema = 1
[[allow]]
tool = "*"
[[threshold]]
tool = "keep"
arg = "cents"
over = 100
"""
TEMPLATE = """
template: claim
goal: Keep the claim of {who}
parameters: [{name: who, type: string}]
steps:
  - {id: S1, objective: Read the mail, tool: mail, args: {who: "${inputs.who}"},
     success: [{id: there, level: L1, claim: There is a text, rule: size(result.body) > 0}]}
  - id: S2
    kind: model
    objective: Find who asks, and for how much, in cents
    args: {mail: "${S1.body}", asked_by: "${inputs.who}"}
    output:
      type: object
      properties:
        who: {type: string, maxLength: 40}
        cents: {type: integer, minimum: 0}
      required: [who, cents]
    success: [{id: said, level: L1, claim: It is the one who wrote,
               rule: result.who == inputs.who}]
  - {id: S3, objective: Keep it, tool: keep, args: {who: "${S2.who}", cents: "${S2.cents}"},
     success: [{id: kept, level: L2, claim: It is in the book, tool: book,
                args: {who: "${inputs.who}"}, rule: observed.cents == result.cents}]}
success_criteria: [{id: goal, level: L2, claim: It is in the book, tool: book,
                    args: {who: "${inputs.who}"}, rule: observed.cents == steps.S2.output.cents}]
abort_conditions: [{id: a, text: Failures, rule: run.failures >= 3}]
"""
BOOK: dict[str, int] = {}


class Mail(TypedDict):
    body: str


class Kept(TypedDict):
    cents: int


@tool(effect="read")
def mail(who: str) -> Mail:
    """Read the newest mail of somebody."""
    return {"body": f"{who} wants 5 cents back"}


@tool(effect="read")
def book(who: str) -> Kept:
    """Look into the book."""
    return {"cents": BOOK.get(who, -1)}


@tool(effect="write", key="keep:{who}", scope="goal", idempotent=True)
def keep(who: str, cents: int) -> Kept:
    """Keep a claim."""
    BOOK[who] = cents
    return {"cents": cents}


GOAL = {"goal": "Keep what Ann claims", "inputs": {"who": "Ann"}}
CONFIG: Any = {"configurable": {"thread_id": "t"}}
YES = Command(resume={"decision": "approve", "by": "ann"})


@pytest.fixture(autouse=True)
def empty() -> None:
    BOOK.clear()


@pytest.fixture
def journal_url(tmp_path) -> str:
    return f"sqlite:///{tmp_path}/journal.db"


def graph(journal_url: str, chat: Any, **more: Any) -> Any:
    given: dict[str, Any] = {"templates": [TEMPLATE], "policy": POLICY, **more}
    return create_plan_agent(
        None, [mail, book, keep], step_model=chat, journal=journal_url, name="claims", **given
    )


def view_of(journal_url: str) -> Any:
    with Journal.open(journal_url) as journal:
        return fold(journal.log.read(journal.runs.list()[0].run_id))


def chat_at(url: str) -> ChatOpenAI:
    return ChatOpenAI(model="gpt-5-mini", base_url=url, api_key="not-a-key")


@pytest.mark.parametrize("door", ["sync", "async"])
def test_a_plan_with_a_model_step_is_approved_run_and_verified(journal_url, door):
    with serving(Said(GOOD)) as fake:
        agent = graph(journal_url, chat_at(fake.url))
        if door == "sync":
            asked, done = agent.invoke(GOAL, CONFIG), agent.invoke(YES, CONFIG)
        else:

            async def both() -> Any:
                return await agent.ainvoke(GOAL, CONFIG), await agent.ainvoke(YES, CONFIG)

            asked, done = asyncio.run(both())

    [request] = fake.requests
    form = request["response_format"]["json_schema"]
    assert (form["strict"], list(unsafe(form["schema"]))) == (True, [])
    assert "tools" not in request
    [card] = [
        each for each in asked["__interrupt__"][0].value["steps"] if each["capability"] == "keep"
    ]
    assert card["id"] == "S3"
    assert (done["verdict"], BOOK) == ("pass", {"Ann": 5})
    view = view_of(journal_url)
    # Two steps that call tools, and a look at the world after each of them.
    assert (view.model_calls, view.tool_calls, str(view.spent_usd)) == (1, 4, "0.000675")
    assert view.attempts["S2-A1"].started.capability.startswith("model:gpt-5-mini@")


def test_a_person_can_edit_a_plan_that_has_a_model_step(journal_url):
    agent = graph(journal_url, Scripted([GOOD]))
    agent.invoke(GOAL, CONFIG)
    change = {"op": "replace", "path": "/steps/S2/objective", "value": "Find who asks, in cents"}

    asked = agent.invoke(
        Command(resume={"decision": "edit", "by": "ann", "edits": [change]}), CONFIG
    )
    done = agent.invoke(YES, CONFIG)

    assert asked["__interrupt__"][0].value["plan_version"] == 2
    assert (done["verdict"], BOOK) == ("pass", {"Ann": 5})


def test_without_a_model_the_plan_is_refused_before_anything_runs(journal_url):
    done = graph(journal_url, None).invoke(GOAL, CONFIG)

    assert done["report"]["why"] == "no_model S2: no model is set, and S2 would ask one"
    view = view_of(journal_url)
    assert "no_model" in [each.code for each in view.validated[1].issues]
    assert view.attempts == {}


def test_models_are_denied_where_no_rule_allows_them(journal_url):
    policy = "schema = 1\n" + "".join(
        f'[[allow]]\ntool = "{name}"\n' for name in ("mail", "book", "keep")
    )
    done = graph(journal_url, Scripted([GOOD]), policy=policy).invoke(GOAL, CONFIG)

    assert done["ending"] == "failed"
    [refused] = [
        each for each in view_of(journal_url).validated[1].issues if each.severity == "error"
    ]
    assert (refused.code, refused.step) == ("policy_denied", "S2")


def test_the_model_that_plans_carries_model_steps_out_where_no_other_is_named(journal_url):
    agent = create_plan_agent(
        Scripted(["no plan"]), [mail, book, keep],
        policy=POLICY, templates=[TEMPLATE], journal=journal_url,
    )  # fmt: skip

    asked = agent.invoke(GOAL, CONFIG)

    assert asked["__interrupt__"][0].value["kind"] == "approval"


def test_what_is_no_chat_model_is_refused_with_its_keyword(journal_url):
    with pytest.raises(ConfigError, match="step_model= is of type str"):
        graph(journal_url, "gpt-5")


def test_another_model_after_the_approval_is_approved_again(journal_url):
    graph(journal_url, Scripted([GOOD], model_name="a")).invoke(GOAL, CONFIG)
    again = graph(journal_url, Scripted([GOOD], model_name="b")).invoke(YES, CONFIG)

    assert again["__interrupt__"][0].value["kind"] == "approval"
    assert BOOK == {}


@pytest.fixture
def recorded(journal_url):
    """A run whose model step took two tries."""
    agent = graph(journal_url, Scripted(["no", GOOD]))
    agent.invoke(GOAL, CONFIG)
    agent.invoke(YES, CONFIG)
    today = Agent(name="claims", tools=(mail, book, keep), policy=POLICY, templates=(TEMPLATE,))
    with Journal.open(journal_url) as journal:
        yield journal, journal.runs.list()[0].run_id, today


def test_a_replay_takes_the_recorded_replies_and_asks_no_model(recorded):
    journal, run_id, today = recorded
    chat = Scripted([AssertionError("asked")], model_name="other")

    same = replay(journal, run_id, today)
    other = replay(journal, run_id, replace(today, step_model=chat))

    assert [each.line for each in same.differences] == []
    assert chat.asked == []
    assert [each.part for each in other.changes] == ["tool:model"]
    assert ("attempt", "S2-A1 capability") in {
        (each.kind, each.about) for each in other.differences
    }
    assert all("the model of model steps" in each.why[0] for each in other.differences)


class Killed(BaseException):
    """Stands for the end of a process."""


@pytest.mark.slow
def test_a_run_whose_owner_died_while_a_model_was_asked_goes_on_and_replays(journal_url):
    graph(journal_url, Scripted([GOOD])).invoke(GOAL, CONFIG)
    with pytest.raises(Killed):
        graph(journal_url, Scripted([Killed()])).invoke(YES, CONFIG)

    done = graph(journal_url, Scripted([GOOD])).invoke(None, CONFIG)

    assert (done["verdict"], BOOK) == ("pass", {"Ann": 5})
    view = view_of(journal_url)
    assert (view.model_calls, view.tries["S2"]) == (2, 2)
    today = Agent(name="claims", tools=(mail, book, keep), policy=POLICY, templates=(TEMPLATE,))
    with Journal.open(journal_url) as journal:
        replayed = replay(journal, journal.runs.list()[0].run_id, today)
    assert [each.line for each in replayed.differences] == []
