from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import RunControl
from langgraph.types import Command, interrupt

from plangate.graph import desk
from plangate.graph.owned import Desk, owned
from plangate.graph.state import State
from plangate.graph.wiring import NEXT, Nodes, wire
from plangate.journal.artifacts import ref_of
from plangate.journal.events import (
    RunEnded,
    RunResumed,
    RunStarted,
    StepReleased,
)
from plangate.journal.journal import Journal
from plangate.journal.owner import owner_name
from plangate.journal.questions import (
    DecisionTaken,
    QuestionAsked,
)
from plangate.journal.runs import Run
from plangate.journal.session import Session
from plangate.plan.errors import ConfigError, JournalError, RunBusy, WaitingForPerson
from plangate.plan.facts import Rights

HASH = "0" * 64


class Agent:
    """A small agent: plans nothing, asks once, runs one step, settles."""

    def __init__(self, path: Path, *, saver=None, idle_s: float = 0.3) -> None:
        self.journal = Journal.open(f"sqlite:///{path}/journal.db")
        self.desk = Desk(self.journal, start=self.start, ttl_s=5.0, idle_s=idle_s)
        self.seen: list[str] = []
        self.states: list[State] = []
        self.sessions: set[int] = set()
        self.asks = True
        self.work_s = 0.0
        self.fails: BaseException | None = None
        self.working = asyncio.Event()
        self.graph = wire(self.nodes(), saver=saver or InMemorySaver(), context_schema=Rights)

    def start(self, state, thread_id, context):
        name = state.get("run_id") or f"r{len(self.journal.runs.list()) + 1}"
        self.journal.runs.create(
            Run(
                run_id=name,
                goal_id=state.get("goal_id") or name,
                goal=state["goal"],
                thread_id=thread_id,
                agent="test",
                principal=context or Rights(principal="nobody"),
            )
        )
        return name

    def nodes(self) -> Nodes:
        return Nodes(**{name: owned(name, self.body(name), self.desk) for name in NEXT})

    def body(self, name):
        async def noted(state, session):
            self.seen.append(name)
            self.states.append(state)
            self.sessions.add(id(session))
            return await getattr(self, name)(state, session)

        return noted

    async def planner(self, state, session):
        if session.view.seq == 0:
            inputs = session.put(state.get("inputs") or {})
            session.emit(
                RunStarted(
                    goal_id=session.run.goal_id,
                    goal=session.run.goal,
                    inputs=inputs,
                    principal=session.run.principal.principal,
                )
            )
        return {"go": "human_gate" if self.asks else "validator", "plan_version": 1}

    async def validator(self, _state, _session):
        return {"go": "critic"}

    async def critic(self, _state, _session):
        return {"go": "human_gate"}

    async def human_gate(self, _state, session):
        if not self.asks or session.view.decisions:
            return {"go": "executor"}
        payload = {"q": 1}
        if not session.view.questions:
            session.emit(
                QuestionAsked(
                    question_id=f"{session.run.run_id}-q1",
                    kind="approval",
                    audience="operator",
                    payload=session.put(payload),
                    payload_sha256=HASH,
                    plan_version=1,
                    content_hash=HASH,
                )
            )
        answer = interrupt(payload)
        session.emit(
            DecisionTaken(question_id=f"{session.run.run_id}-q1", decision="approve", by=answer)
        )
        return {"go": "executor"}

    async def executor(self, _state, session):
        session.emit(StepReleased(step="S1", plan_version=1))
        self.working.set()
        await asyncio.sleep(self.work_s)
        if self.fails is not None:
            raise self.fails
        return {"go": "verifier"}

    async def verifier(self, _state, _session):
        return {"go": "settle"}

    async def settle(self, _state, session):
        if session.view.ended is None:
            report = session.put({"run": session.run.run_id})
            session.emit(RunEnded(ending="completed", verdict="pass", report=report))
        return {"ending": "completed", "verdict": "pass"}

    def events(self, run_id="r1"):
        return [entry.event for entry in self.journal.log.read(run_id)]

    def run(self, run_id="r1"):
        return self.journal.runs.get(run_id)


@pytest.fixture
def agent(tmp_path):
    made = Agent(tmp_path)
    yield made
    made.desk.close()
    made.journal.close()


def on(thread: str):
    return {"configurable": {"thread_id": thread}}


async def free(agent) -> bool:
    """Wait until nobody holds the run."""
    for _ in range(250):
        if agent.run().owner is None:
            return True
        await asyncio.sleep(0.02)
    return False


def count(agent, kind, run_id="r1"):
    return sum(isinstance(event, kind) for event in agent.events(run_id))


def test_one_session_serves_an_invocation_and_a_pause_lets_go_of_the_run(agent):
    paused = agent.graph.invoke({"goal": "g", "inputs": {"a": 1}}, on("t"))

    assert paused["__interrupt__"][0].value == {"q": 1}
    assert paused["run_id"] == "r1"
    assert (len(agent.sessions), agent.run().owner, agent.run().status) == (1, None, "waiting")

    done = agent.graph.invoke(Command(resume="ann"), on("t"))

    assert (done["verdict"], done["ending"]) == ("pass", "completed")
    assert (agent.run().owner, agent.run().status, count(agent, RunResumed)) == (None, "ended", 1)


async def test_the_async_door_does_the_same(agent):
    paused = await agent.graph.ainvoke({"goal": "g"}, on("t"))
    done = await agent.graph.ainvoke(Command(resume="ann"), on("t"))

    assert "__interrupt__" in paused
    assert done["verdict"] == "pass"
    assert (agent.run().owner, count(agent, RunResumed)) == (None, 1)


def at_once(agent, given, door):
    """Call the graph four times at once; return how each call ended."""
    ends = []
    gate = threading.Barrier(4)

    def call():
        gate.wait()
        try:
            if door == "sync":
                agent.graph.invoke(given, on("t"))
            else:
                asyncio.run(agent.graph.ainvoke(given, on("t")))
            ends.append("ran")
        except RunBusy:
            ends.append("busy")

    callers = [threading.Thread(target=call) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(20)
    return sorted(ends)


@pytest.mark.parametrize("door", ["sync", "async"])
def test_of_four_resumes_at_once_one_runs(agent, door):
    agent.graph.invoke({"goal": "g"}, on("t"))
    agent.work_s = 0.2

    ends = at_once(agent, Command(resume="ann"), door)

    assert ends == ["busy", "busy", "busy", "ran"]
    assert (count(agent, StepReleased), agent.run().status) == (1, "ended")


@pytest.mark.parametrize("door", ["sync", "async"])
def test_of_four_starts_at_once_one_runs(agent, door):
    agent.asks, agent.work_s = False, 0.2

    ends = at_once(agent, {"goal": "g"}, door)

    assert ends == ["busy", "busy", "busy", "ran"]
    assert (count(agent, StepReleased), len(agent.journal.runs.list())) == (1, 1)


def test_a_new_goal_on_a_paused_run_is_refused_and_the_question_stays(agent):
    agent.graph.invoke({"goal": "g"}, on("t"))

    with pytest.raises(WaitingForPerson, match="has not ended"):
        agent.graph.invoke({"goal": "yes, go ahead"}, on("t"))
    again = agent.graph.invoke(None, on("t"))
    done = agent.graph.invoke(Command(resume="ann"), on("t"))

    assert again["__interrupt__"][0].value == {"q": 1}
    assert done["verdict"] == "pass"
    assert count(agent, StepReleased) == 1
    assert [run.run_id for run in agent.journal.runs.list()] == ["r1"]


def test_an_answer_after_a_refused_goal_answers_nothing(agent):
    agent.graph.invoke({"goal": "g"}, on("t"))
    with pytest.raises(WaitingForPerson):
        agent.graph.invoke({"goal": "other"}, on("t"))

    asked = agent.graph.invoke(Command(resume="ann"), on("t"))

    assert "__interrupt__" in asked
    assert count(agent, DecisionTaken) == 0
    assert all(state.get("goal") != "other" for state in agent.states)


def test_the_next_goal_of_a_thread_starts_clean(agent):
    agent.asks = False
    agent.graph.invoke({"goal": "g", "inputs": {"a": 1}, "goal_id": "k"}, on("t"))
    agent.states.clear()

    done = agent.graph.invoke({"goal": "h"}, on("t"))

    assert done["run_id"] == "r2"
    assert (agent.run("r2").goal, agent.run("r2").goal_id) == ("h", "r2")
    assert agent.states[0] | {"verdict": "", "goal": "h", "run_id": "r2"} == agent.states[0]
    assert "inputs" not in agent.states[0]


def test_a_caller_may_name_a_new_run_and_go_on_with_it_by_that_name(agent):
    agent.graph.invoke({"goal": "g", "run_id": "mine"}, on("t"))

    again = agent.graph.invoke({"run_id": "mine"}, on("t"))

    assert again["__interrupt__"][0].value == {"q": 1}
    assert agent.seen == ["planner", "human_gate", "planner", "human_gate"]


@pytest.mark.parametrize(
    ("given", "says"),
    [({"inputs": {}}, "without a goal"), ({"run_id": "r1"}, "belongs to thread 't'")],
)
def test_a_call_without_a_goal_or_for_another_threads_run_is_refused(agent, given, says):
    agent.graph.invoke({"goal": "g"}, on("t"))

    with pytest.raises(ConfigError, match=says):
        agent.graph.invoke(given, on("other"))


def test_an_error_lets_go_of_the_run_and_a_retry_goes_on_with_it(agent):
    agent.asks, agent.fails = False, ValueError("tool broke")

    with pytest.raises(ValueError, match="tool broke"):
        agent.graph.invoke({"goal": "g"}, on("t"))
    assert agent.run().owner is None

    agent.fails = None
    assert agent.graph.invoke(None, on("t"))["verdict"] == "pass"
    assert agent.seen.count("planner") == 1


def test_the_same_goal_again_goes_on_with_a_run_that_broke_off(agent):
    agent.asks, agent.fails = False, ValueError("tool broke")
    with pytest.raises(ValueError, match="tool broke"):
        agent.graph.invoke({"goal": "g", "inputs": {"a": 1}}, on("t"))
    agent.fails = None

    with pytest.raises(WaitingForPerson):
        agent.graph.invoke({"goal": "g", "inputs": {"a": 2}}, on("t"))
    done = agent.graph.invoke({"goal": " g ", "inputs": {"a": 1}}, on("t"))

    assert done["run_id"] == "r1"
    assert len(agent.journal.runs.list()) == 1


def test_a_lost_checkpoint_starts_nothing_twice(agent):
    agent.asks = False
    agent.graph.invoke({"goal": "g"}, on("t"))
    first = [old for old in agent.graph.get_state_history(on("t")) if old.next == ("planner",)]
    agent.seen.clear()

    done = agent.graph.invoke(None, first[0].config)

    assert (done["run_id"], done["verdict"]) == ("r1", "pass")
    assert agent.seen == ["settle"]
    assert count(agent, StepReleased) == 1


async def test_a_cancelled_node_lets_go_of_the_run(agent):
    agent.asks, agent.work_s = False, 30
    running = asyncio.create_task(agent.graph.ainvoke({"goal": "g"}, on("t")))
    await agent.working.wait()

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert agent.run().owner is None


async def test_a_call_that_is_cancelled_while_it_opens_the_run_lets_go_of_it(agent):
    agent.graph.invoke({"goal": "g"}, on("t"))
    for wait in (0.0, 0.002, 0.005, 0.01, 0.02):
        running = asyncio.create_task(agent.graph.ainvoke(None, on("t")))
        await asyncio.sleep(wait)
        running.cancel()
        await asyncio.sleep(0)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    assert await free(agent)


def test_an_invocation_that_ends_between_two_nodes_does_not_block_the_next_one(agent):
    agent.asks = False
    with pytest.raises(GraphRecursionError):
        agent.graph.invoke({"goal": "g"}, on("t") | {"recursion_limit": 3})
    assert agent.run().owner is not None

    assert agent.graph.invoke(None, on("t"))["verdict"] == "pass"


def test_a_session_that_is_just_being_closed_is_waited_for(tmp_path, monkeypatch):
    agent = Agent(tmp_path, idle_s=0.05)
    agent.asks = False
    begun, close = threading.Event(), desk._close

    def slowly(held):
        begun.set()
        threading.Event().wait(0.3)
        close(held)

    monkeypatch.setattr(desk, "_close", slowly)
    with pytest.raises(GraphRecursionError):
        agent.graph.invoke({"goal": "g"}, on("t") | {"recursion_limit": 3})
    assert begun.wait(5)

    assert agent.graph.invoke(None, on("t"))["verdict"] == "pass"
    agent.journal.close()


def test_what_it_left_behind_goes_by_itself(tmp_path):
    agent = Agent(tmp_path, idle_s=0.1)
    agent.asks = False
    for _ in agent.graph.stream({"goal": "g"}, on("t"), stream_mode="updates"):
        break

    assert asyncio.run(free(agent))
    agent.journal.close()


def test_a_slow_reader_of_a_stream_loses_the_session_but_not_the_run(tmp_path):
    agent = Agent(tmp_path, idle_s=0.05)
    agent.asks = False

    for part in agent.graph.stream({"goal": "g"}, on("t"), stream_mode="updates"):
        if "validator" in part:
            time.sleep(0.3)

    assert (agent.run().status, len(agent.sessions)) == ("ended", 2)
    agent.journal.close()


def test_another_owner_makes_the_graph_busy(agent):
    agent.graph.invoke({"goal": "g"}, on("t"))

    with Session.open(agent.journal, "r1", owner_name(), 5.0):
        with pytest.raises(RunBusy, match="is worked on by"):
            agent.graph.invoke(Command(resume="ann"), on("t"))
        with pytest.raises(RunBusy, match="is worked on by"):
            agent.graph.invoke({"goal": "other"}, on("t"))

    assert "__interrupt__" in agent.graph.invoke(None, on("t"))


def test_a_question_that_could_not_be_written_was_not_asked(agent):
    async def gate(_state, session):
        session.emit(RunResumed(owner="x"))
        agent.journal.runs.release(session.lease)
        interrupt("shown to nobody")

    agent.human_gate = gate

    with pytest.raises(JournalError, match="no longer held"):
        agent.graph.invoke({"goal": "g"}, on("t"))


def test_two_invocations_that_share_a_control_object_do_not_share_a_session(agent):
    agent.asks, agent.work_s = False, 0.2
    control = RunControl()
    first = threading.Thread(
        target=lambda: agent.graph.invoke({"goal": "g"}, on("t"), control=control)
    )
    first.start()
    while "executor" not in agent.seen:
        time.sleep(0.01)

    with pytest.raises(RunBusy, match="another invocation is at work"):
        agent.graph.invoke({"goal": "g"}, on("t"), control=control)
    first.join(10)

    assert count(agent, StepReleased) == 1


def test_as_a_subgraph_it_pauses_and_goes_on_with_its_own_run(agent):
    parent = StateGraph(State)
    parent.add_node("one", wire(agent.nodes(), saver=None))
    parent.add_node("two", wire(agent.nodes(), saver=None))
    parent.add_edge(START, "one")
    parent.add_node("again", lambda _state: {"goal": "second"})
    parent.add_edge("one", "again")
    parent.add_edge("again", "two")
    parent.add_edge("two", END)
    graph = parent.compile(checkpointer=InMemorySaver())

    paused = graph.invoke({"goal": "first"}, on("t"))
    paused_again = graph.invoke(Command(resume="ann"), on("t"))
    graph.invoke(Command(resume="bob"), on("t"))

    assert "__interrupt__" in paused
    assert "__interrupt__" in paused_again
    runs = agent.journal.runs.list()
    assert sorted((run.goal, run.status) for run in runs) == [
        ("first", "ended"),
        ("second", "ended"),
    ]
    assert all(run.thread_id.startswith("t|") for run in runs)


def test_without_a_thread_each_call_is_a_run(agent):
    agent.asks = False
    graph = wire(agent.nodes())

    assert graph.invoke({"goal": "g"})["run_id"] == "r1"
    assert graph.invoke({"goal": "g"})["run_id"] == "r2"


def test_the_context_of_the_call_reaches_the_start_of_a_run(agent):
    agent.graph.invoke({"goal": "g"}, on("t"), context=Rights(principal="ann"))

    assert agent.run().principal.principal == "ann"


def test_inputs_are_stored_under_the_digest_that_tells_goals_apart(agent):
    agent.graph.invoke({"goal": "g", "inputs": {"a": 1}}, on("t"))

    started = agent.events()[0]

    assert isinstance(started, RunStarted)
    assert started.inputs == ref_of({"a": 1}).ref
