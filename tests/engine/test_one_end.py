from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typing_extensions import TypedDict

from plangate.engine.dataflow import run_plan
from plangate.journal.cut import OWNER_GONE
from plangate.journal.journal import Journal
from plangate.journal.questions import StopAsked
from plangate.journal.session import Session
from plangate.plan.errors import LeaseLost
from plangate.plan.value.plan import Plan
from plangate.plan.value.step import Step
from plangate.tools.answers import Found, ToolFailed
from plangate.tools.tool import tool
from tests.engine.conftest import Lab, plan_of


class Out(TypedDict):
    n: int


class World:
    """What the tools do in one example: by step, how each of its calls goes."""

    def __init__(self, ways: dict[int, str]) -> None:
        self.ways = ways
        self.done: Counter[int] = Counter()
        self.hung = asyncio.Event()
        self.on = asyncio.Event()

    async def _go(self, n: int) -> None:
        way = self.ways.get(n, "well")
        if way == "fails":
            raise ToolFailed("no")
        if way == "busy":
            self.ways[n] = "well"
            raise ToolFailed("busy")
        if way == "hangs":
            self.hung.set()
            await self.on.wait()

    def tools(self) -> list[object]:
        @tool(effect="read", errors={"no": "permanent", "busy": "transient"})
        async def look(n: int) -> Out:
            """Look."""
            await self._go(n)
            return {"n": n}

        @tool(
            effect="write",
            key="act:{n}",
            scope="goal",
            errors={"no": "permanent", "busy": "transient"},
            reconcile=lambda _k, args, _c: Found(self.done[args["n"]] > 0, output={"n": args["n"]}),
        )
        async def act(n: int) -> Out:
            """Act."""
            await self._go(n)
            self.done[n] += 1
            return {"n": n}

        return [look, act]


@st.composite
def plans(draw: st.DrawFn):
    size = draw(st.integers(1, 6))
    steps = []
    for n in range(size):
        after = draw(st.sets(st.integers(0, n - 1), max_size=2)) if n else set()
        name = draw(st.sampled_from(["look", "act"]))
        needs = tuple(f"s{each}" for each in sorted(after))
        steps.append(Step(id=f"s{n}", objective="o", tool=name, args={"n": n}, after=needs))
    ways = draw(
        st.dictionaries(
            st.integers(0, size - 1), st.sampled_from(["fails", "busy", "hangs"]), max_size=3
        )
    )
    return steps, ways


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 1, 31, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    clock = Clock()
    url = f"sqlite:///{tmp_path_factory.mktemp('one-end')}/journal.db"
    with Journal.open(url, clock=clock) as journal:
        yield Lab(journal, now=clock)


async def cut_short(lab: Lab, world: World, plan: Plan, how: str) -> Session:
    """Run a plan until it hangs, cut it in that way, and return whoever holds the run then."""
    session = await asyncio.to_thread(lab.session)
    run_id = session.run.run_id
    work = asyncio.create_task(run_plan(lab.bench(session, plan, world.tools())))
    hung = asyncio.create_task(world.hung.wait())
    await asyncio.wait([work, hung], return_when=asyncio.FIRST_COMPLETED)
    hung.cancel()
    await session.aflush()
    if how == "abandon":  # another owner comes while this one believes it has the run
        lab.journal.clock.now += timedelta(seconds=60)
        taken = await asyncio.to_thread(lab.session, run_id)
    elif how == "interrupt":
        work.cancel()
    else:
        session.stop.ask(StopAsked(kind=how, by="eve"))
    for _ in range(3):
        await asyncio.sleep(0)
    world.on.set()
    with suppress(LeaseLost, asyncio.CancelledError):
        await work
    with suppress(LeaseLost):
        await asyncio.to_thread(session.close)
    return taken if how == "abandon" else await asyncio.to_thread(lab.session, run_id)


def fresh(steps: list[Step]) -> Plan:
    """A plan with a goal, and so effects, of its own."""
    return plan_of(*steps).model_copy(update={"goal_id": uuid4().hex})


async def through(lab: Lab, steps: list[Step], ways: dict[int, str], how: str):
    world, plan = World(ways), fresh(steps)
    session = await cut_short(lab, world, plan, how)
    if how != "cancel":
        await run_plan(lab.bench(session, plan, world.tools()))
    await asyncio.to_thread(session.close)
    return [each.event for each in lab.journal.log.read(session.run.run_id)], world


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(plans(), st.sampled_from(["cancel", "drain", "interrupt", "abandon"]))
def test_each_step_and_each_attempt_ends_exactly_once(lab, drawn, how):
    steps, ways = drawn

    log, world = asyncio.run(through(lab, steps, ways, how))

    released = {(e.plan_version, e.step) for e in log if e.type == "step_released"}
    ended = Counter((e.plan_version, e.step) for e in log if e.type == "step_ended")
    started = Counter(e.attempt_id for e in log if e.type == "attempt_started")
    assert set(ended.values()) <= {1}
    assert released <= set(ended)
    assert set(started.values()) <= {1}
    assert Counter(e.attempt_id for e in log if e.type == "attempt_ended") == started
    assert max(world.done.values(), default=0) <= 1


@pytest.mark.parametrize(("name", "status"), [("look", "cancelled"), ("act", "outcome_unknown")])
async def test_an_attempt_that_an_owner_left_behind_is_ended_by_the_next(lab, name, status):
    world = World({0: "hangs"})
    plan = fresh([Step(id="s0", objective="o", tool=name, args={"n": 0})])

    session = await cut_short(lab, world, plan, "abandon")

    ended = session.view.attempts["s0-A1"].ended
    assert (ended.status, ended.error_code) == (status, OWNER_GONE)
    await asyncio.to_thread(session.close)
