from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typing_extensions import TypedDict

from plangate.journal.attempts import AttemptEnded, AttemptStarted
from plangate.journal.events import StepEnded
from plangate.plan.value.plan import Author, Budget, Condition, Plan
from plangate.plan.value.step import Check, Route, Step
from plangate.tools.answers import ToolFailed
from plangate.tools.tool import Tool, tool


class Seen(TypedDict):
    value: int


def reading(body: Any, **contract: Any) -> Tool:
    @tool(effect="read", errors={"gone": "permanent", "no": "business_rejection"}, **contract)
    async def look(n: int) -> Seen:
        """Look."""
        return await body(n)

    return look


async def echo(n: int) -> Seen:
    return {"value": n}


def step(name: str, n: Any = 0, *after: str, **more: Any) -> Step:
    return Step(id=name, objective="o", tool="look", args={"n": n}, after=after, **more)


def plan_of(*steps: Step, **more: Any) -> Plan:
    author = Author(kind="template")
    return Plan(goal_id="g", goal="goal", task_type="t", steps=steps, author=author, **more)


def statuses(session: Any) -> dict[str, str]:
    return {name: seen.status for name, seen in session.view.steps.items()}


async def test_values_flow_along_references(lab):
    plan = plan_of(step("a", 3), step("b", "${a.value}"), step("c", "${b.value}"))

    halt, session = await lab.run(plan, [reading(echo)])

    assert halt.reason == "done"
    assert session.load(session.view.steps["c"].output) == {"value": 3}
    session.close()


async def test_a_step_starts_when_its_own_predecessors_are_done_and_waits_for_no_wave(lab):
    started = []

    async def body(n: int) -> Seen:
        started.append(n)
        await asyncio.sleep(0.3 if n == 1 else 0)
        return {"value": n}

    plan = plan_of(step("slow", 1), step("fast", 2), step("after_fast", 3, "fast"))
    _, session = await lab.run(plan, [reading(body)])

    assert sorted(started) == [1, 2, 3]
    events = [e.event for e in lab.journal.log.read(session.run.run_id)]
    ends = [e.step for e in events if isinstance(e, StepEnded)]
    assert ends.index("after_fast") < ends.index("slow")
    session.close()


async def test_a_failing_branch_stops_only_what_depends_on_it(lab):
    async def body(n: int) -> Seen:
        if n == 1:
            raise ToolFailed("gone")
        return {"value": n}

    plan = plan_of(step("a", 1), step("b", 2), step("after_a", 3, "a"), step("after_b", 4, "b"))
    halt, session = await lab.run(plan, [reading(body)])

    assert (halt.reason, halt.step, halt.code) == ("trigger", "a", "gone")
    assert statuses(session) == {"a": "failed", "b": "done", "after_b": "done"}
    session.close()


async def test_a_transient_failure_is_tried_again_up_to_the_limit_of_the_contract(lab):
    calls = []

    async def body(n: int) -> Seen:
        calls.append(n)
        raise ConnectionResetError

    halt, session = await lab.run(plan_of(step("a", 1)), [reading(body, max_attempts=2)])

    assert (len(calls), halt.kind) == (2, "step_failed")
    session.close()


@pytest.mark.parametrize(
    ("rule", "status"), [("result.value == 1", "done"), ("result.value == 2", "failed")]
)
async def test_a_step_is_done_only_if_its_check_passes(lab, rule, status):
    check = Check(id="c", level="L1", claim="it is right", rule=rule)

    halt, session = await lab.run(plan_of(step("a", 1, success=(check,))), [reading(echo)])

    assert statuses(session) == {"a": status}
    assert halt.kind == ("verdict_fail" if status == "failed" else "")
    session.close()


@pytest.mark.parametrize("level", ["L2", "L3", "L4"])
async def test_a_check_that_nobody_can_decide_is_unknown_and_never_passes(lab, level):
    check = Check(id="c", level=level, claim="it is right", rule="result.value == 1")

    halt, session = await lab.run(plan_of(step("a", 1, success=(check,))), [reading(echo)])

    assert (halt.kind, statuses(session)) == ("verdict_unknown", {"a": "unknown"})
    session.close()


@pytest.mark.parametrize(
    ("output", "code"),
    [
        ({"value": "not a number"}, "output_schema"),
        ({}, "output_schema"),
        ([], "output_schema"),
        ({"value": 1, "big": "x" * 1_100_000}, "output_too_large"),
    ],
    ids=["type", "missing", "list", "large"],
)
async def test_a_result_that_breaks_its_contract_ends_the_attempt_and_not_the_run(
    lab, output, code
):
    async def body(n: int) -> Any:
        return output

    halt, session = await lab.run(plan_of(step("a", 1)), [reading(body)])

    assert (halt.reason, halt.code) == ("trigger", code)
    session.close()


async def test_a_step_whose_condition_is_false_is_skipped_with_its_readers(lab):
    plan = plan_of(
        step("a", 1),
        step("b", 2, "a", when="steps.a.output.value == 2"),
        step("reader", "${b.value}"),
        step("follower", 3, "b"),
    )
    halt, session = await lab.run(plan, [reading(echo)])

    assert halt.reason == "done"
    assert statuses(session) == {
        "a": "done",
        "b": "skipped",
        "reader": "skipped",
        "follower": "done",
    }
    session.close()


async def test_an_abort_condition_stops_everything_and_cancels_running_reads(lab):
    cancelled = []

    async def body(n: int) -> Seen:
        if n == 9:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                cancelled.append(n)
                raise
        raise ToolFailed("gone")

    abort = Condition(id="too_many", text="a step failed", rule="run.failures >= 1")
    plan = plan_of(step("a", 1), step("slow", 9), abort_conditions=(abort,))
    halt, session = await lab.run(plan, [reading(body)])

    assert (halt.reason, halt.code) == ("abort", "too_many")
    assert cancelled == [9]
    assert statuses(session)["slow"] == "cancelled"
    session.close()


async def test_a_spent_budget_stops_before_the_call_that_would_pass_it(lab):
    calls = []

    async def body(n: int) -> Seen:
        calls.append(n)
        return {"value": n}

    plan = plan_of(*[step(f"s{n}", n) for n in range(9)], budget=Budget(max_tool_calls=4))
    halt, session = await lab.run(plan, [reading(body)])

    assert (halt.reason, len(calls)) == ("budget", 4)
    session.close()


async def test_a_route_of_the_plan_decides_what_a_failure_means(lab):
    async def body(n: int) -> Seen:
        raise ToolFailed("gone")

    skip = (Route(on="gone", action="skip"),)
    plan = plan_of(
        step("a", 1, routes=skip), step("b", 2, routes=(Route(on="permanent", action="abort"),))
    )
    halt, session = await lab.run(plan, [reading(body)])

    assert (halt.reason, halt.step) == ("abort", "b")
    assert statuses(session) == {"a": "skipped", "b": "failed"}
    session.close()


@st.composite
def dags(draw: st.DrawFn) -> Plan:
    steps: list[Step] = []
    for n in range(draw(st.integers(1, 12))):
        after = [each.id for each in steps if draw(st.integers(0, 3)) == 0]
        steps.append(step(f"s{n}", draw(st.integers(0, 3)), *after))
    return plan_of(*steps)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(dags())
def test_each_step_and_each_attempt_ends_in_exactly_one_way(lab, plan):
    async def body(n: int) -> Seen:
        await asyncio.sleep(0)
        if n == 0:
            raise ToolFailed("gone")
        return {"value": n}

    async def go() -> None:
        _, session = await lab.run(plan, [reading(body)])
        session.close()
        events = [e.event for e in lab.journal.log.read(session.run.run_id)]
        ended = [e.step for e in events if isinstance(e, StepEnded)]
        assert len(ended) == len(set(ended))
        started = sorted(e.attempt_id for e in events if isinstance(e, AttemptStarted))
        assert started == sorted(e.attempt_id for e in events if isinstance(e, AttemptEnded))

    asyncio.run(go())
