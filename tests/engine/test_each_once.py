"""Whatever fails and wherever it dies, each element happens at most once, in its place."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import current_thread
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typing_extensions import TypedDict

from plangate.engine.dataflow import run_plan
from plangate.engine.each import _was_begun
from plangate.engine.release import Ready
from plangate.journal.journal import Journal
from plangate.journal.points import watch
from plangate.plan.errors import JournalError
from plangate.plan.value.plan import Plan
from plangate.plan.value.step import Step
from plangate.tools.answers import Found, ToolFailed
from plangate.tools.tool import Tool, tool
from tests.engine.conftest import Lab, plan_of


class Lines(TypedDict):
    lines: list[str]


class Paid(TypedDict):
    paid: str


class Killed(BaseException):
    """Stands for the end of a process."""


@dataclass
class Outside:
    """What the world remembers, and what goes wrong with an element the first time."""

    lines: list[str]
    faults: dict[str, str]
    paid: list[str] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)

    def tools(self) -> list[Tool]:
        @tool(effect="read")
        def read() -> Lines:
            """Read."""
            return {"lines": self.lines}

        def found(_key: str, args: Any, _context: object) -> Found:
            return Found(args["to"] in self.paid, output={"paid": args["to"]})

        @tool(
            effect="write", key="pay:{to}", scope="goal", reconcile=found,
            errors={"busy": "transient", "no": "business_rejection"},
        )  # fmt: skip
        async def pay(to: str) -> Paid:
            """Pay."""
            fault = self.faults.pop(to, "") if self.faults.get(to) != "no" else "no"
            if fault in ("busy", "no"):
                self.refused |= {to} if fault == "no" else set()
                raise ToolFailed(fault)
            if fault == "lost before":
                raise ConnectionError
            self.paid.append(to)
            if fault == "lost after":
                raise ConnectionError
            return {"paid": to}

        return [read, pay]


def paying() -> Plan:
    pay = Step(
        id="S2", objective="o", tool="pay", args={"to": "${item}"}, for_each="${S1.lines}",
        max_items=6,
    )  # fmt: skip
    return plan_of(Step(id="S1", objective="o", tool="read"), pay)


@contextmanager
def dying_at(point: int) -> Iterator[None]:
    """From the n-th named moment on nothing goes on and nothing is written, in any thread."""
    passed = 0

    def deadly(_: str) -> None:
        nonlocal passed
        passed += 1
        if passed >= point and current_thread().name.startswith("plangate-journal"):
            raise JournalError("the process is gone", hint="")  # or the thread would be missed
        if passed >= point:
            raise Killed

    watch(deadly)
    try:
        yield
    finally:
        watch(None)


async def play(lab: Lab, plan: Plan, outside: Outside, deaths: list[int]) -> Any:
    """Run a plan to its end, killed so many moments after each owner took it."""
    session = await asyncio.to_thread(lab.session)
    bench = lab.bench(session, plan, outside.tools())
    await session.aflush()
    for point in deaths:
        with dying_at(point), suppress(Killed, JournalError):
            await run_plan(bench)
            await session.aflush()
        with suppress(Killed, JournalError):
            await asyncio.to_thread(session._writer.close)
        lab.journal.runs.release(session.lease)
        session = await asyncio.to_thread(lab.session, session.run.run_id)
        bench = lab.bench(session, plan, outside.tools())
    halt = await run_plan(bench)
    await session.aflush()
    return halt, session


def check(outside: Outside, halt: Any, session: Any) -> None:
    counted = Counter(outside.paid)
    seen = session.view.steps["S2"]
    assert max(counted.values(), default=1) == 1
    assert counted.keys() == set(outside.lines) - outside.refused
    if outside.refused:
        assert (seen.status, seen.error_code) == ("failed", "no")
        return
    assert (halt.reason, seen.status) == ("done", "done")
    assert session.load(seen.output) == [{"paid": each} for each in outside.lines]
    rows = session.journal.ledger.list(run_id=session.run.run_id)
    assert {row.business_key: row.state for row in rows} == {
        f"pay:{each}": "done" for each in outside.lines
    }


@pytest.mark.parametrize("death", [3, 9, 12, 16, 20, 27, 34])
async def test_a_run_that_dies_between_elements_does_none_of_them_twice(lab, death):
    outside = Outside(["a", "b", "c"], {"b": "lost after"})

    check(outside, *await play(lab, paying(), outside, [death]))


@pytest.mark.slow
@given(
    lines=st.lists(st.sampled_from("abcdef"), max_size=6),
    faults=st.dictionaries(
        st.sampled_from("abcdef"),
        st.sampled_from(["busy", "no", "lost before", "lost after"]),
        max_size=3,
    ),
    deaths=st.lists(st.integers(1, 60), max_size=3),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_each_element_happens_at_most_once_and_in_its_place(lines, faults, deaths):
    outside = Outside(lines, faults)
    with tempfile.TemporaryDirectory() as folder:
        journal = Journal.open(f"sqlite:///{folder}/journal.db")
        try:
            halt, session = asyncio.run(play(Lab(journal), paying(), outside, deaths))
            check(outside, halt, session)
            session.close()
        finally:
            journal.close()


async def test_what_an_older_plan_did_in_a_step_of_that_name_is_no_beginning_of_this_list(lab):
    """Else the world would not be read again before the first act of another list."""
    tools = Outside(["ann"], {}).tools()
    plan = paying()
    _, session = await lab.run(plan, tools)
    later = lab.bench(session, plan.model_copy(update={"version": 2}), tools)
    spec, step = tools[1].spec, plan.by_id["S2"]

    begun = [_was_begun(later, spec, step, [Ready({"to": to}, "")]) for to in ("ann", "bob")]

    assert begun == [True, False]
    session.close()
