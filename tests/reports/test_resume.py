from __future__ import annotations

import threading
from collections import Counter
from contextlib import closing
from dataclasses import dataclass

import pytest
from langgraph.types import Command

from plangate import tool
from plangate.agent import Agent
from plangate.graph.payload import Answer
from plangate.journal.points import watch
from plangate.plan.errors import Denied, RunBusy
from plangate.plan.facts import Rights
from plangate.runtime import Options, Runtime, new_run_id

WIDE = 8
POLICY = 'schema = 1\n[[allow]]\ntool = "*"\n'
_STEP = """
  - {{id: S{n}, objective: Do one, tool: act, args: {{name: "${{inputs.n{n}}}"}},
     routes: [{{on: unknown, action: ask}}],
     success: [{{id: c{n}, level: L2, claim: It happened once, tool: count,
                args: {{name: "${{S{n}.name}}"}}, rule: observed.times == 1}}]}}"""
TEMPLATE = (
    "template: wide\ngoal: Do all\nparameters: ["
    + ", ".join(f"{{name: n{n}, type: string}}" for n in range(WIDE))
    + "]\nsteps:"
    + "".join(_STEP.format(n=n) for n in range(WIDE))
    + "\nsuccess_criteria: [{id: all, level: L1, claim: The first was done, "
    "rule: steps.S0.output.name == inputs.n0}]\n"
    "abort_conditions: [{id: many, text: Many failures, rule: run.failures > 20}]\n"
)


@dataclass
class Done:
    name: str


@dataclass
class Times:
    times: int


class Died(BaseException):
    pass


class Outside:
    """Counts effects; holds them until so many are there, and the first for as long as `long`."""

    def __init__(self, together=1):
        self.done = Counter()
        self.barrier = threading.Barrier(together)
        self.long = None

    def tools(self):
        @tool(effect="irreversible", key="act:{name}", scope="goal", timeout_s=30)
        def act(name: str) -> Done:
            """Act."""
            self.barrier.wait(20)
            if self.long is not None:
                self.long()
            self.done[name] += 1
            return Done(name)

        @tool(effect="read")
        def count(name: str) -> Times:
            """Count."""
            return Times(self.done[name])

        return (act, count)


@pytest.fixture
def opened(tmp_path):
    def open_it(outside, **options):
        agent = Agent(
            name="wide",
            tools=outside.tools(),
            policy=POLICY,
            templates=(TEMPLATE,),
            rights=Rights(principal="ann"),
        )
        return closing(Runtime(agent, f"sqlite:///{tmp_path}/journal.db", Options(**options)))

    return open_it


def begin(runtime):
    run_id = new_run_id()
    inputs = {f"n{n}": f"job {n}" for n in range(WIDE)}
    for _ in runtime.start({"goal": "Do all", "inputs": inputs}, run_id=run_id):
        pass
    runtime.answer(run_id, Answer(decision="approve", by="ann"))
    return run_id


def go_on(runtime, run_id):
    for _ in runtime.advance(run_id):
        pass
    return runtime.view(run_id)


# langchain-ai/langgraph#8115
def test_eight_steps_that_end_at_one_moment_are_all_kept_and_none_runs_again(opened):
    outside = Outside(together=WIDE)

    def die(point):
        if point == "plan.halted":
            raise Died

    with opened(outside) as first:
        run_id = begin(first)
        watch(die)
        try:
            with pytest.raises(Died):
                go_on(first, run_id)
        finally:
            watch(None)
    outside.barrier = threading.Barrier(1)
    with opened(outside) as second:
        view = go_on(second, run_id)

    assert (view.ended.verdict, set(outside.done.values())) == ("pass", {1})
    assert {len(each.attempts) for each in view.steps.values()} == {1}


# langchain-ai/langgraph#7417
def test_a_tool_that_takes_longer_than_a_lease_keeps_its_run_and_acts_once(opened):
    outside, refused = Outside(), []
    with opened(outside, ttl_s=0.3) as first, opened(outside, ttl_s=0.3) as second:
        run_id = begin(first)

        def long():
            outside.long = None
            lease = second.journal.runs.get(run_id).lease_until
            while second.journal.runs.get(run_id).lease_until <= lease or len(refused) < 3:
                with pytest.raises(RunBusy) as caught:
                    go_on(second, run_id)
                refused.append(caught)

        outside.long = long
        view = go_on(first, run_id)

    assert (view.ended.verdict, set(outside.done.values())) == ("pass", {1})
    assert len(refused) >= 3, "the lease was renewed while the tool was at work"


# langchain-ai/langgraph#6663
def test_a_checkpoint_from_before_the_answer_takes_no_other_answer_and_repeats_no_effect(opened):
    outside = Outside()
    with opened(outside) as runtime:
        run_id = begin(runtime)
        thread = {"configurable": {"thread_id": run_id}}
        history = list(runtime.graph.get_state_history(thread))
        waiting = next(each for each in history if each.next == ("human_gate",))
        view = go_on(runtime, run_id)

        def answer(decision, by):
            said = Command(resume={"decision": decision, "by": by})
            return runtime.graph.invoke(said, waiting.config, context=Rights(principal="ann"))

        for other in (("reject", "eve"), ("approve", "eve")):
            with pytest.raises(Denied, match="decided already: approve by ann"):
                answer(*other)
        assert answer("approve", "ann")["verdict"] == "pass"

        again = runtime.view(run_id)
    assert set(outside.done.values()) == {1}
    assert (again.ended, list(again.questions)) == (view.ended, [f"{run_id}-q1"])
    assert again.decisions[f"{run_id}-q1"].by == "ann"
