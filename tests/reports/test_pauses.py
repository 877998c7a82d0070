"""Themes A and C: what goes on after a pause, and what never gets in beside its owner."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from click.testing import CliRunner
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from plangate.cli.main import cli
from plangate.graph.state import State
from plangate.journal.session import Session
from plangate.plan.errors import Denied, LeaseLost, WaitingForPerson
from plangate.plan.value.step import Step
from plangate.tools.tool import tool
from tests.door.conftest import Shop, shop
from tests.door.ledgers import WORLD, Office, office
from tests.engine.conftest import Lab, lab, plan_of

__all__ = ["lab", "shop"]


class Out(TypedDict):
    n: int


@pytest.fixture
def asked(tmp_path: Path):
    """An office whose run waits at the gate."""
    with office(tmp_path) as made:
        yield made, made.start()


def config_of(run_id: str, **more: str) -> dict[str, dict[str, str]]:
    return {"configurable": {"thread_id": run_id, **more}}


# 14 langchain-ai/langgraph#8217: a pause is caught as an error of the tool that asked for it.
async def test_a_tool_that_pauses_the_graph_by_itself_is_a_failure_with_a_name(lab: Lab):
    calls: list[int] = []

    @tool(effect="read", max_attempts=3)
    def look() -> Out:
        """Look, and ask a person behind the gate's back."""
        calls.append(1)
        return interrupt({"may I": "look"})

    plan = plan_of(Step(id="a", objective="o", tool="look"))
    halt, session = await lab.run(plan, [look])
    session.close()

    assert (halt.reason, halt.kind, len(calls)) == ("trigger", "step_failed", 1)
    assert session.view.steps["a"].error_code


# 14, 37: what ran beside a pause is kept.
def test_a_pause_reaches_the_caller_once_and_its_siblings_results_are_kept(shop: Shop):
    run_id = shop.start("straightforward")
    shop.answer(run_id)
    for _ in shop.runtime.advance(run_id):
        pass
    view = shop.runtime.view(run_id)
    done = {step: len(seen.attempts) for step, seen in view.steps.items() if seen.status == "done"}
    assert [each.kind for each in view.pending_questions] == ["step"]

    shop.finish(run_id)

    after = shop.runtime.view(run_id).steps
    assert done
    assert {step: len(after[step].attempts) for step in done} == done


# 15 microsoft/agent-framework#3255: answered questions are asked again after a restore.
@pytest.mark.parametrize("depth", [0, 1])
@pytest.mark.parametrize(
    ("word", "ending"),
    [("approve", "completed"), ("edit", "completed"), ("reject", "rejected")],
)
def test_what_was_answered_stays_answered_at_every_depth(tmp_path, depth, word, ending):
    answer = {"decision": word, "by": "ann"}
    if word == "edit":
        answer["edits"] = [{"inputs": {"cents": 50}}]
    with office(tmp_path) as made:
        graph = made.runtime.graph if depth == 0 else inside(made)
        config, given = config_of("t"), {"goal": "Pay the bills", "inputs": {"cents": 100}}
        graph.invoke(given, config)
        (run,) = made.runtime.journal.runs.list()
        graph.invoke(Command(resume=answer), config)
        if word == "edit":  # a new version is a new question
            graph.invoke(Command(resume={"decision": "approve", "by": "ann"}), config)
        view = made.runtime.view(run.run_id)

    asked = list(view.questions)
    assert (view.ended.ending, len(set(asked))) == (ending, len(asked))
    assert len(asked) == (2 if word == "edit" else 1)
    assert len(WORLD.done) == (0 if word == "reject" else 4)


def inside(made: Office):
    """Return a graph that has the agent's as a node."""
    outer = StateGraph(State)
    outer.add_node("agent", made.runtime.graph)
    outer.add_edge(START, "agent")
    outer.add_edge("agent", END)
    return outer.compile(checkpointer=InMemorySaver())


# 40 aegra/aegra#320: a resume is taken for a new run.
@pytest.mark.parametrize("given", [None, {}])
def test_a_resume_without_an_answer_waits_where_the_run_waits(asked, given):
    made, run_id = asked

    again = made.runtime.graph.invoke(given, config_of(run_id))

    view = made.runtime.view(run_id)
    assert (again["run_id"], len(made.runtime.journal.runs.list())) == (run_id, 1)
    assert (len(view.questions), len(view.pending_questions), WORLD.done) == (1, 1, [])


def test_a_message_to_a_paused_run_approves_nothing_and_keeps_the_pause(asked):
    made, run_id = asked

    with pytest.raises(WaitingForPerson):
        made.runtime.graph.invoke({"goal": "approve"}, config_of(run_id))

    assert len(made.runtime.view(run_id).pending_questions) == 1
    made.say(run_id)
    assert made.go(run_id).ended.verdict == "pass"


def test_a_run_is_resumed_from_another_directory_with_what_is_stored(tmp_path, monkeypatch):
    call = CliRunner().invoke
    monkeypatch.chdir(tmp_path)
    first = call(cli, ["demo", "refund", "--journal", "sqlite:///a/journal.db"])
    assert first.exit_code == 11, first.output
    run_id = next(word for word in first.output.split() if word.startswith("run_")).split("-q")[0]
    (tmp_path / "b").mkdir()
    monkeypatch.chdir(tmp_path / "b")

    there = ["--journal", f"sqlite:///{tmp_path}/a/journal.db"]
    again = call(cli, ["run", "resume", run_id, "--yes", *there])
    other = call(cli, ["run", "resume", "run_unknown", *there])

    assert again.exit_code == 0, again.output
    assert (other.exit_code, "unknown_run" in other.output) == (2, True)


# 58 langchain-ai/langgraph#6663: the same pause is answered again, otherwise.
def test_an_old_answer_is_not_used_for_another_one_while_the_run_goes_on(asked):
    made, run_id = asked
    made.say(run_id)  # recorded, and nobody has gone on yet

    with pytest.raises(Denied, match="decided already: approve by ann"):
        made.runtime.graph.invoke(Command(resume={"decision": "reject"}), config_of(run_id))

    assert WORLD.done == []
    assert made.go(run_id).ended.verdict == "pass"


# 38 langchain-ai/deepagents#96: parallel steps update one thing, and one update wins.
async def test_parallel_steps_that_write_one_object_take_turns_and_none_is_lost(lab: Lab):
    stock, inside_now, most = [0], [0], [0]

    @tool(effect="write", key="add:{n}", scope="goal", writes=("stock",))
    async def add(n: int) -> Out:
        """Read, wait, write: loses an update if two do so at once."""
        inside_now[0] += 1
        most[0] = max(most[0], inside_now[0])
        seen = stock[0]
        await asyncio.sleep(0.01)
        stock[0] = seen + 1
        inside_now[0] -= 1
        return {"n": 7}

    steps = [Step(id=f"s{n}", objective="o", tool="add", args={"n": n}) for n in range(3)]
    _, session = await lab.run(plan_of(*steps), [add])

    outputs = {each.output for each in session.view.steps.values()}
    assert (stock, most, len(outputs)) == ([3], [1], 1), "one artifact for one value"
    assert {each.status for each in session.view.steps.values()} == {"done"}
    await asyncio.to_thread(session.close)


# 13 langchain-ai/langgraph#8796: two workers, one paused past its lease, and a forked history.
async def test_a_former_owners_events_intents_and_outcomes_are_all_refused(lab: Lab):
    taken: list[Session] = []

    @tool(effect="write", key="act:{n}", scope="goal")
    async def act(n: int) -> Out:
        """Act, while somebody takes the run over."""
        if n == 0:
            with lab.journal.store.write() as tx:  # as if the lease had run out
                tx.exec_driver_sql("UPDATE runs SET lease_until = '2000-01-01T00:00:00+00:00'")
            taken.append(await asyncio.to_thread(lab.session, "r1"))
        return {"n": n}

    steps = [Step(id="s0", objective="o", tool="act", args={"n": 0})]
    steps += [Step(id="s1", objective="o", tool="act", args={"n": 1}, after=("s0",))]
    with pytest.raises(LeaseLost):
        await lab.run(plan_of(*steps), [act])

    entries = lab.journal.log.read("r1")
    effects = [(row.step, row.state, row.epoch) for row in lab.journal.ledger.list()]
    assert effects == [("s0", "intended", 1)], "neither its outcome nor the next intent"
    assert [each.epoch for each in entries] == sorted(each.epoch for each in entries)
    await asyncio.to_thread(taken[0].close)
