from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from langgraph.errors import GraphDrained
from langgraph.runtime import RunControl
from typing_extensions import TypedDict

from plangate import tool
from plangate.agent import Agent
from plangate.cancel import acancel, cancel
from plangate.graph.payload import Answer
from plangate.plan.errors import ConfigError, RunBusy
from plangate.runtime import Options, Runtime, new_run_id

POLICY = 'schema = 1\n[[allow]]\ntool = "*"\n[tiers]\nfirst_time = "auto"\n'
TEMPLATE = """
template: work
goal: Do it
steps:
  - {id: R1, objective: Watch, tool: watch, args: {}}
  - id: E1
    objective: Act
    tool: act
    args: {}
    success: [{id: once, level: L2, claim: It happened once, tool: count, rule: observed.n == 1}]
  - id: E2
    objective: Act again
    tool: act_again
    args: {}
    after: [E1]
    success: [{id: twice, level: L2, claim: It happened, tool: count, rule: observed.n == 2}]
success_criteria: [{id: done, level: L2, claim: Both happened, tool: count, rule: observed.n == 2}]
budget: {min_level: L0}
"""


class Count(TypedDict):
    n: int


@dataclass
class Bench:
    """An agent whose read hangs and whose effect takes until it is let go."""

    folder: Path
    done: list[str] = field(default_factory=list)
    acting: threading.Event = field(default_factory=threading.Event)
    let_go: threading.Event = field(default_factory=threading.Event)
    broken_off: int = 0
    hangs: bool = True
    opened: list[Runtime] = field(default_factory=list)

    def agent(self) -> Agent:
        @tool(effect="read")
        async def watch() -> Count:
            """Watch until somebody breaks it off."""
            try:
                await asyncio.sleep(60 if self.hangs else 0)
            except asyncio.CancelledError:
                self.broken_off += 1
                raise
            return {"n": 0}

        @tool(effect="read")
        def count() -> Count:
            """Count what happened."""
            return {"n": len(self.done)}

        @tool(effect="write", key="act", scope="goal")
        def act() -> Count:
            """Act, and take a while."""
            self.acting.set()
            assert self.let_go.wait(20)
            self.done.append("act")
            return {"n": 1}

        @tool(effect="write", key="again", scope="goal")
        def act_again() -> Count:
            """Act once more."""
            self.done.append("again")
            return {"n": 2}

        tools = (watch, count, act, act_again)
        return Agent(name="bench", tools=tools, policy=POLICY, templates=(TEMPLATE,))

    def runtime(self, **options: object) -> Runtime:
        url = f"sqlite:///{self.folder}/journal.db"
        made = Runtime(self.agent(), url, Options(**options))
        self.opened.append(made)
        return made

    def pursue(self, stream: object) -> threading.Thread:
        """Go on with a run in a thread, as far as its effect is under way."""
        thread = threading.Thread(target=lambda: list(stream), daemon=True)
        thread.start()
        assert self.acting.wait(20)
        return thread


@pytest.fixture
def bench(tmp_path):
    made = Bench(tmp_path)
    yield made
    made.let_go.set()
    for each in made.opened:
        each.close()


def approve(runtime: Runtime, run_id: str) -> None:
    question = runtime.view(run_id).pending_questions[0]
    runtime.answer(question.question_id, Answer(decision="approve", by="ann"))


def statuses(runtime: Runtime, run_id: str) -> dict[str, str]:
    return {step: seen.status for step, seen in runtime.view(run_id).steps.items()}


@pytest.fixture
def acting(bench):
    """A run whose read and whose effect are under way, at another owner than the runtime given."""
    owner = bench.runtime()
    run_id = new_run_id()
    for _ in owner.start({"goal": "Do it"}, run_id=run_id):
        pass
    if owner.view(run_id).pending_questions:
        approve(owner, run_id)
    thread = bench.pursue(owner.advance(run_id))
    return bench, owner, run_id, thread


def test_a_cancel_breaks_reads_off_waits_for_the_effect_and_ends_the_run(acting):
    bench, owner, run_id, thread = acting
    other, said = bench.runtime(), []
    asking = threading.Thread(
        target=lambda: said.append(cancel(other, run_id, by="eve", reason="no need"))
    )
    asking.start()
    while bench.broken_off == 0:
        asking.join(0.01)
    bench.let_go.set()
    asking.join(20)
    thread.join(20)

    ended = said[0].ended
    assert (ended.ending, ended.why) == ("cancelled", "cancelled by eve: no need")
    assert bench.done == ["act"]
    assert [row.state for row in owner.journal.ledger.list(run_id=run_id)] == ["done"]
    assert statuses(owner, run_id) == {"R1": "cancelled", "E1": "done", "E2": "cancelled"}


def test_the_report_of_a_cancelled_run_names_what_was_done(acting):
    bench, owner, run_id, thread = acting
    bench.let_go.set()
    cancel(owner, run_id, by="eve")
    thread.join(20)

    report = owner.journal.artifacts.get(owner.view(run_id).ended.report)

    assert (report["ending"], report["verdict"]) == ("cancelled", "fail")
    assert [(each["tool"], each["state"]) for each in report["effects"]][:1] == [("act", "done")]


def test_a_cancel_that_the_owner_does_not_follow_in_time_is_recorded_all_the_same(acting):
    bench, _, run_id, thread = acting
    other = bench.runtime()

    with pytest.raises(RunBusy, match="is told to stop"):
        cancel(other, run_id, by="eve", wait_s=0.3)

    bench.let_go.set()
    thread.join(20)
    assert other.view(run_id).ended.ending == "cancelled"


@pytest.fixture
def asked(bench):
    """A run that waits at the gate."""
    runtime = bench.runtime()
    run_id = new_run_id()
    for _ in runtime.start({"goal": "Do it"}, run_id=run_id):
        pass
    assert runtime.view(run_id).pending_questions
    return bench, runtime, run_id


def test_a_run_that_waits_at_the_gate_is_cancelled_by_whoever_cancels_it(asked):
    bench, runtime, run_id = asked

    ended = cancel(runtime, run_id, by="eve").ended

    assert (ended.ending, bench.done) == ("cancelled", [])
    assert runtime.view(run_id).pending_questions == ()
    state = runtime.graph.get_state({"configurable": {"thread_id": run_id}})
    assert (state.next, state.values["ending"]) == ((), "cancelled")


def test_a_cancel_that_its_own_process_did_not_survive_is_finished_by_a_resume(asked):
    _, runtime, run_id = asked

    with pytest.raises(RunBusy):
        cancel(runtime, run_id, by="eve", wait_s=0)
    for _ in runtime.advance(run_id):
        pass

    assert runtime.view(run_id).ended.why == "cancelled by eve"


def test_a_process_that_drains_ends_a_run_that_is_cancelled(asked):
    _, runtime, run_id = asked
    runtime.drain()
    before = runtime.journal.runs.get(run_id).epoch

    view = cancel(runtime, run_id, by="eve")

    assert view.ended.why == "cancelled by eve"
    assert runtime.journal.runs.get(run_id).epoch == before + 1


@pytest.mark.parametrize("wait_s", [-1, float("nan"), float("-inf")])
def test_a_cancel_that_would_wait_no_time_that_there_is_records_nothing(asked, wait_s):
    _, runtime, run_id = asked

    with pytest.raises(ConfigError, match="cannot wait"):
        cancel(runtime, run_id, by="eve", wait_s=wait_s)

    assert runtime.journal.decisions.of_run(run_id) == []


def test_cancelled_twice_is_one_and_the_first_counts(asked):
    _, runtime, run_id = asked
    cancel(runtime, run_id, by="eve")

    view = cancel(runtime, run_id, by="bob", reason="me too")

    told = [each.event for each in runtime.journal.log.read(run_id)]
    assert (view.ended.why, [e.by for e in told if e.type == "stop_asked"]) == (
        "cancelled by eve",
        ["eve"],
    )


async def test_many_cancels_at_once_end_a_run_once(asked):
    bench, runtime, run_id = asked
    others = [bench.runtime() for _ in range(3)]

    views = await asyncio.gather(
        *(acancel(each, run_id, by=f"p{n}") for n, each in enumerate((runtime, *others)))
    )

    told = [each.event.type for each in runtime.journal.log.read(run_id)]
    assert told.count("run_ended") == told.count("stop_asked") == 1
    assert len({view.ended.why for view in views}) == 1


def test_a_run_that_has_ended_cannot_be_cancelled(bench):
    bench.hangs = False
    bench.let_go.set()
    runtime = bench.runtime()
    run_id = finished(runtime)

    with pytest.raises(ConfigError, match=r"has ended already \(completed\)"):
        cancel(runtime, run_id, by="eve")

    assert runtime.view(run_id).ended.verdict == "pass"


def finished(runtime: Runtime) -> str:
    run_id = new_run_id()
    for _ in runtime.start({"goal": "Do it"}, run_id=run_id):
        pass
    approve(runtime, run_id)
    for _ in runtime.advance(run_id):
        pass
    return run_id


def test_nobody_cannot_cancel(asked):
    _, runtime, run_id = asked

    with pytest.raises(ConfigError, match="nobody is named"):
        cancel(runtime, run_id, by=" ")


def test_a_drain_waits_for_the_effect_and_leaves_a_run_that_another_process_finishes(acting):
    bench, owner, run_id, thread = acting

    owner.drain("SIGTERM")
    while bench.broken_off == 0:
        thread.join(0.01)
    owner.drain("SIGTERM")  # impatience changes nothing
    assert thread.is_alive()
    bench.let_go.set()
    thread.join(20)

    run = owner.journal.runs.get(run_id)
    assert (run.status, run.owner, bench.done) == ("stopped", None, ["act"])
    bench.hangs = False
    other = bench.runtime()
    for _ in other.advance(run_id):
        pass
    assert (other.view(run_id).ended.verdict, bench.done) == ("pass", ["act", "again"])


def test_a_runtime_that_drains_begins_nothing(asked):
    bench, runtime, run_id = asked
    approve(runtime, run_id)

    runtime.drain()
    for _ in runtime.advance(run_id):
        pass

    assert (bench.acting.is_set(), runtime.view(run_id).ended) == (False, None)
    assert runtime.journal.runs.get(run_id).status == "stopped"


def test_a_host_that_drains_the_graph_gets_its_own_word_and_can_go_on(bench):
    runtime, control = bench.runtime(), RunControl()
    run_id = new_run_id()
    for _ in runtime.start({"goal": "Do it"}, run_id=run_id):
        pass
    approve(runtime, run_id)
    config, said = {"configurable": {"thread_id": run_id}}, []

    def work() -> None:
        try:
            runtime.graph.invoke(None, config, control=control)
        except GraphDrained as exc:
            said.append(exc.reason)

    thread = threading.Thread(target=work)
    thread.start()
    assert bench.acting.wait(20)
    control.request_drain("deploy")
    while bench.broken_off == 0:
        thread.join(0.01)
    bench.let_go.set()
    thread.join(20)
    bench.hangs = False

    assert said == ["deploy"]
    assert runtime.graph.invoke(None, config)["verdict"] == "pass"
    assert bench.done == ["act", "again"]


async def test_an_async_host_cancels_while_its_own_loop_works_on_the_run(bench):
    runtime = bench.runtime()
    run_id = new_run_id()
    async for _ in runtime.astream({"goal": "Do it", "run_id": run_id}, run_id, None):
        pass
    approve(runtime, run_id)
    config = {"configurable": {"thread_id": run_id}}
    work = asyncio.create_task(runtime.graph.ainvoke(None, config))
    await asyncio.to_thread(bench.acting.wait, 20)
    bench.let_go.set()

    view = await acancel(runtime, run_id, by="eve")

    assert ((await work)["ending"], view.ended.ending) == ("cancelled", "cancelled")
