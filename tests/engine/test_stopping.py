from __future__ import annotations

import asyncio

import pytest
from typing_extensions import TypedDict

from plangate.engine.dataflow import run_plan
from plangate.journal.events import StepEnded
from plangate.plan.value.plan import Budget
from plangate.plan.value.step import Step
from plangate.tools.answers import Found, ToolFailed
from plangate.tools.tool import tool
from tests.engine.conftest import plan_of


class Maybe(TypedDict, total=False):
    value: int


@tool(effect="read")
async def look(n: int) -> Maybe:
    """Look."""
    await asyncio.sleep(n / 10)
    return {"value": n} if n else {}


def step(name: str, n: object, **more: object) -> Step:
    return Step(id=name, objective="o", tool="look", args={"n": n}, **more)


async def test_a_run_that_is_cancelled_ends_the_attempt_and_makes_no_other(lab):
    began = asyncio.Event()
    calls = []

    @tool(effect="write", key="k", scope="goal", errors={"busy": "transient"}, max_attempts=3)
    async def act() -> Maybe:
        """Act."""
        calls.append(1)
        began.set()
        await asyncio.sleep(0.1)
        raise ToolFailed("busy")

    running = asyncio.create_task(lab.run(plan_of(Step(id="a", objective="o", tool="act")), [act]))
    await began.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert calls == [1]
    assert [row.state for row in lab.journal.ledger.list()] == ["failed"]


async def test_reads_that_a_spent_budget_cancelled_run_when_the_run_is_taken_up_again(lab):
    steps = step("a", 1), step("long", 9), step("b", "${a.value}")
    short, full = (plan_of(*steps, budget=Budget(max_tool_calls=most)) for most in (2, None))
    halt, session = await lab.run(short, [look])
    session.close()
    assert halt.reason == "budget"

    halt, session = await lab.run(full, [look], session.run.run_id)

    assert halt.reason == "done"
    session.close()


async def test_a_crash_between_a_skip_and_what_follows_from_it_strands_nothing(lab):
    plan = plan_of(step("a", 0), step("b", "${a.value}"), step("c", "${b.value}"))
    session = lab.session()
    lab.bench(session, plan, [look])
    session.emit(StepEnded(step="a", plan_version=1, status="skipped"))
    session.close()

    halt, session = await lab.run(plan, [look], session.run.run_id)

    assert (halt.reason, {each.status for each in session.view.steps.values()}) == (
        "done",
        {"skipped"},
    )
    session.close()


async def test_a_value_that_is_missing_fails_the_step_that_claims_by_it_and_not_the_run(lab):
    @tool(effect="write", key="k:{n}", scope="goal", writes=("order:{n}",))
    def act(n: int) -> Maybe:
        """Act."""
        return {}

    acting = Step(id="b", objective="o", tool="act", args={"n": "${a.value}"})
    halt, session = await lab.run(plan_of(step("a", 0), acting), [look, act])

    assert (halt.kind, halt.code) == ("step_failed", "missing_value")
    session.close()


async def test_an_effect_that_may_have_happened_is_not_forgotten_when_its_step_may_not_run(lab):
    stock = [1]

    @tool(
        effect="write",
        key="k",
        scope="goal",
        writes=("stock",),
        reconcile=lambda _key, _args, _context: Found(None),
    )
    def act() -> Maybe:
        """Act."""
        stock.pop()
        raise ConnectionError("lost after it was sent")

    plan = plan_of(Step(id="a", objective="o", tool="act"))
    _, session = await lab.run(plan, [act])
    session.view.steps.clear()  # as after a crash: it is released again
    session.close()
    closed = plan_of(Step(id="a", objective="o", tool="act", preconditions=("1 == 2",)))

    session = lab.session(session.run.run_id)
    session.view.steps.clear()
    halt = await run_plan(lab.bench(session, closed, [act]))

    assert (halt.kind, halt.code, stock) == ("effect_unknown", "outcome_unknown", [])
    session.close()
