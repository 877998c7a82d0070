"""Theme I: a call past its deadline may have acted, stalls nobody, and is never forgotten."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
import tiktoken
from langchain_core.language_models import FakeListChatModel
from typing_extensions import TypedDict

from plangate.budget.prices import PriceBook
from plangate.engine import call as calling
from plangate.engine.call import call
from plangate.engine.overrun import Overrun, left_behind
from plangate.models.call import call_model
from plangate.plan.value.step import Step
from plangate.prompts.loader import load
from plangate.tools.answers import Found
from plangate.tools.context import ToolContext
from plangate.tools.credentials import Granted, Wanted, grant
from plangate.tools.tool import Tool, tool
from tests.engine.conftest import Lab, lab, plan_of

__all__ = ["lab"]


class Written(TypedDict):
    ok: bool


@pytest.fixture
def until() -> Iterator[threading.Event]:
    """What blocking tools wait for; whatever happens, none of them outlives its test."""
    event = threading.Event()
    yield event
    event.set()
    end = time.monotonic() + 5
    while left_behind() and time.monotonic() < end:
        time.sleep(0.005)
    assert left_behind() == ()


def writing(until: threading.Event, written: list[int], **contract: Any) -> Tool:
    def write(n: int) -> Written:
        """Write, but only once the wait is over."""
        until.wait(5)
        written.append(n)
        return {"ok": True}

    known = {"effect": "write", "key": "w:{n}", "scope": "goal", "timeout_s": 0.05}
    return tool(**{**known, **contract})(write)


def step(name: str = "a", tool_name: str = "write") -> Step:
    return Step(id=name, objective="o", tool=tool_name, args={"n": 1})


def events(lab: Lab, kind: str) -> list[Any]:
    entries = lab.journal.log.read(f"r{lab.runs}")
    return [each.event for each in entries if each.event.type == kind]


async def settled() -> None:
    while left_behind():  # noqa: ASYNC110 - of threads
        await asyncio.sleep(0.005)


# Report 18: a blocking tool runs past its deadline and writes later; retries are on.
async def test_a_late_write_is_unknown_made_once_and_both_its_overrun_and_its_end_are_recorded(
    lab, until
):
    written: list[int] = []

    halt, session = await lab.run(plan_of(step()), [writing(until, written)])

    assert (halt.kind, written) == ("effect_unknown", [])
    until.set()
    await settled()
    await session.aflush()
    [row] = lab.journal.ledger.list()
    seen = events(lab, "call_overran")
    assert (row.state, written) == ("unknown", [1])
    assert [(each.how, each.attempt_id) for each in seen] == [
        ("going_on", "a-A1"),
        ("returned", "a-A1"),
    ]
    assert {each.effect_key for each in seen} == {row.effect_key}
    assert len(events(lab, "attempt_started")) == 1
    session.close()


# Report 18, when nobody holds the run any more: the log is closed, but not the eyes.
async def test_a_late_end_after_the_run_was_let_go_of_is_a_warning(lab, until, caplog):
    _, session = await lab.run(plan_of(step()), [writing(until, [])])
    await asyncio.to_thread(session.close)

    until.set()
    await settled()

    [record] = [each for each in caplog.records if each.name == "plangate"]
    assert '"how":"returned"' in record.getMessage()


# Report 18: no thread leaks unseen.
async def test_after_fifty_time_outs_every_thread_is_accounted_for_and_ends(until):
    told: list[Overrun] = []
    before = threading.active_count()
    slow = writing(until, [])
    await asyncio.gather(*(call(slow, {"n": n}, context(n), told.append) for n in range(50)))

    assert [each.how for each in told] == ["going_on"] * 50
    assert {each.attempt_id for each in left_behind()} == {f"S-A{n}" for n in range(50)}
    until.set()
    await settled()
    assert sorted(each.how for each in told) == ["going_on"] * 50 + ["returned"] * 50
    while threading.active_count() > before:  # noqa: ASYNC110 - of threads
        await asyncio.sleep(0.005)


async def test_where_too_many_hang_no_further_call_is_begun(until, monkeypatch):
    monkeypatch.setattr(calling, "MOST_LEFT", 2)
    written: list[int] = []
    slow = writing(until, written)
    for n in range(2):
        await call(slow, {"n": n}, context(n), lambda _: None)

    got = await call(slow, {"n": 3}, context(3), lambda _: None)

    assert (got.outcome, got.code) == ("transient", "too_many_hang")
    until.set()
    await settled()
    assert sorted(written) == [0, 1]


# Report 18: cancelled, and cancelled again, while a blocking effect is under way.
async def test_cancelling_twice_waits_a_bounded_time_and_leaves_the_effect_unknown(lab, until):
    began = asyncio.Event()
    loop = asyncio.get_running_loop()

    @tool(effect="write", key="w:{n}", scope="goal", timeout_s=0.2)
    def write(n: int) -> Written:
        """Write."""
        loop.call_soon_threadsafe(began.set)
        until.wait(5)
        return {"ok": True}

    running = asyncio.create_task(lab.run(plan_of(step()), [write]))
    await began.wait()
    running.cancel()
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, 2)

    [left] = left_behind()
    assert (left.step, left.how) == ("a", "going_on")
    assert [row.state for row in lab.journal.ledger.list()] == ["unknown"]


# Report 48: blocking code of a tool and of what it declares; it waits for the loop, which can only
# go on if it is not the loop that waits.
@pytest.mark.parametrize("where", ["body", "wrapper of an async body", "reconcile"])
async def test_blocking_code_of_an_agent_does_not_run_on_the_loop(lab, where):
    loop, seen = asyncio.get_running_loop(), list[bool]()

    def block() -> None:
        ticked = threading.Event()
        loop.call_soon_threadsafe(ticked.set)
        seen.append(ticked.wait(5))

    async def inner() -> Written:
        block_in_thread = asyncio.to_thread(block)
        await block_in_thread
        return {"ok": True}

    def body(n: int) -> Written:
        """Block in one of several ways."""
        if where == "body":
            block()
        if where == "wrapper of an async body":
            return asyncio.run(inner())
        if where == "reconcile" and not seen:
            raise ConnectionResetError
        return {"ok": True}

    def reconcile(_key: str, _args: object, _context: object) -> Found:
        block()
        return Found(happened=True, output={"ok": True})

    made = tool(effect="write", key="w:{n}", scope="goal", reconcile=reconcile)(body)
    halt, session = await lab.run(plan_of(step(tool_name="body")), [made])

    assert halt.reason == "done"
    assert seen == [True]
    session.close()


async def test_a_provider_of_credentials_may_block():
    loop, seen = asyncio.get_running_loop(), list[bool]()

    def lend(_: Wanted) -> Granted:
        ticked = threading.Event()
        loop.call_soon_threadsafe(ticked.set)
        seen.append(ticked.wait(5))
        return Granted()

    wanted = Wanted(
        tool="t", principal="ann", tenant=None, scopes=("w",), run_id="r", step="S", attempt_id="A"
    )
    await grant(lend, wanted)

    assert seen == [True]


# Report 48: the first count of tokens loads a vocabulary and can take long.
async def test_tokens_are_counted_off_the_loop(monkeypatch):
    where: list[bool] = []
    count = tiktoken.Encoding.encode_ordinary

    def spied(self: tiktoken.Encoding, text: str) -> list[int]:
        where.append(threading.current_thread() is threading.main_thread())
        return count(self, text)

    monkeypatch.setattr(tiktoken.Encoding, "encode_ordinary", spied)

    await call_model(
        FakeListChatModel(responses=["yes"]),
        load("critic"),
        {"goal": "g", "plan": "{}"},
        role="critic",
        book=PriceBook(),
        on_call=lambda _: None,
    )

    assert where
    assert not any(where)


# Report 48: a loop-lag test; the bound is the report's.
async def test_a_heartbeat_beside_a_blocking_tool_has_no_gap_above_a_second(lab):
    beats: list[float] = []

    async def beat() -> None:
        while True:
            beats.append(time.monotonic())
            await asyncio.sleep(0.02)

    @tool(effect="read")
    def sleep(n: int) -> Written:
        """Block for longer than a gap may be."""
        time.sleep(1.1)
        return {"ok": True}

    beating = asyncio.create_task(beat())
    halt, session = await lab.run(plan_of(step(tool_name="sleep")), [sleep])
    beating.cancel()

    assert halt.reason == "done"
    assert max(b - a for a, b in pairwise(beats)) < 1
    session.close()


def context(n: int) -> ToolContext:
    return ToolContext(run_id="r", step="S", attempt_id=f"S-A{n}", principal="ann", deadline_s=0.02)
