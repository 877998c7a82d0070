from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from typing_extensions import TypedDict

from plangate.engine.dataflow import run_plan
from plangate.journal.journal import Journal
from plangate.journal.session import Session
from plangate.plan.errors import JournalError, PlangateError
from plangate.plan.value.step import Step
from plangate.tools.answers import Found
from plangate.tools.tool import Tool, tool
from tests.engine.conftest import Lab, plan_of


class Out(TypedDict):
    n: int


PLAN = plan_of(
    Step(id="a", objective="o", tool="look"),
    Step(id="b", objective="o", tool="act", after=("a",)),
    Step(id="c", objective="o", tool="look", after=("b",)),
)


class Trouble:
    """A journal's file that begins to refuse at a named moment, and is well again later."""

    def __init__(self, journal: Journal, how: str) -> None:
        self.engine = journal.store.engine
        self.how = how
        self.is_on = False
        sa.event.listen(self.engine, "connect", self._prepare)

    def begin(self) -> None:
        self.is_on = True
        self.engine.dispose()  # connections that are opened from now on

    def end(self) -> None:
        self.is_on = False
        self.engine.dispose()

    def _prepare(self, connection: sqlite3.Connection, _: object) -> None:
        if self.is_on and self.how == "full":
            pages = connection.execute("PRAGMA page_count").fetchone()[0]
            connection.execute(f"PRAGMA max_page_count={pages}")
        if self.is_on and self.how == "read-only":
            connection.execute("PRAGMA query_only=1")


def tools(done: list[int], when: str, strike: Callable[[], None]) -> list[Tool]:
    @tool(effect="read")
    def look() -> Out:
        """Look."""
        if when == "reading":
            strike()
        return {"n": 0}

    @tool(
        effect="write",
        key="act",
        scope="goal",
        reconcile=lambda _key, _args, _context: Found(bool(done), output={"n": 1}),
    )
    def act() -> Out:
        """Act."""
        if when == "before it acts":
            strike()
        done.append(1)
        if when == "after it acted":
            strike()
        return {"n": 1}

    return [look, act]


def once(do: Callable[[], None]) -> Callable[[], None]:
    left = [do]
    return lambda: left.pop()() if left else None


@pytest.fixture
def padded(lab: Lab) -> Lab:
    """A journal whose pages are full, so that the next record needs another one."""
    lab.journal.artifacts.put({"pad": "x" * 100_000})
    return lab


@pytest.mark.parametrize("how", ["full", "read-only"])
@pytest.mark.parametrize("when", ["reading", "before it acts", "after it acted"])
async def test_a_disk_that_refuses_stops_the_run_with_a_clear_error_and_no_effect_twice(
    padded, how, when
):
    done: list[int] = []
    trouble = Trouble(padded.journal, how)
    calls = tools(done, when, once(trouble.begin))
    session = await asyncio.to_thread(padded.session)
    session.put({"pad": "y" * 100_000})

    with pytest.raises(JournalError) as caught:
        await run_filled(padded, session, calls)
    with suppress(PlangateError):
        await asyncio.to_thread(session.close)
    trouble.end()

    assert caught.value.hint
    assert ("full" if how == "full" else "readonly") in str(caught.value)
    free(padded.journal, session)
    halt, again = await padded.run(PLAN, tools(done, "", lambda: None), session.run.run_id)
    await asyncio.to_thread(again.close)
    assert (halt.reason, done) == ("done", [1])


async def run_filled(lab: Lab, session: Session, calls: list[Tool]) -> None:
    """Run the plan, and write enough that a full disk is noticed."""
    await run_plan(lab.bench(session, PLAN, calls))
    session.put({"pad": "z" * 100_000})
    await session.aflush()


def free(journal: Journal, session: Session) -> None:
    """Let go of the run as its process would that could not write any more and ended."""
    with journal.store.write() as tx:
        tx.execute(
            sa.text("UPDATE runs SET owner = NULL WHERE run_id = :r"), {"r": session.run.run_id}
        )


async def test_a_journal_that_another_program_locks_is_waited_for(lab: Lab):
    done: list[int] = []
    path = Path(lab.journal.url.removeprefix("sqlite:///"))
    locked = threading.Event()

    def lock() -> None:
        def hold() -> None:
            other = sqlite3.connect(path, isolation_level=None)
            other.execute("BEGIN IMMEDIATE")
            locked.set()
            timer.wait(0.4)
            other.execute("COMMIT")
            other.close()

        timer = threading.Event()
        threading.Thread(target=hold).start()
        assert locked.wait(10)

    halt, session = await lab.run(PLAN, tools(done, "after it acted", once(lock)))
    await asyncio.to_thread(session.close)

    assert (halt.reason, done) == ("done", [1])
    assert [row.state for row in lab.journal.ledger.list()] == ["done"]


async def test_a_lock_that_does_not_end_is_an_error_and_the_effect_is_found_later(
    lab: Lab, monkeypatch
):
    done: list[int] = []
    other = sqlite3.connect(
        lab.journal.url.removeprefix("sqlite:///"), isolation_level=None, check_same_thread=False
    )

    def lock() -> None:
        lab.journal.store.engine.dispose()
        other.execute("BEGIN IMMEDIATE")

    def impatient(connection: sqlite3.Connection, _: object) -> None:
        connection.execute("PRAGMA busy_timeout=50")

    sa.event.listen(lab.journal.store.engine, "connect", impatient)
    session = await asyncio.to_thread(lab.session)
    with pytest.raises(JournalError, match="locked"):
        await run_filled(lab, session, tools(done, "after it acted", once(lock)))
    with suppress(PlangateError):
        await asyncio.to_thread(session.close)
    other.execute("ROLLBACK")
    other.close()
    free(lab.journal, session)

    halt, again = await lab.run(PLAN, tools(done, "", lambda: None), session.run.run_id)

    assert (halt.reason, done) == ("done", [1])
    await asyncio.to_thread(again.close)


@pytest.mark.parametrize("jump", [timedelta(days=-2), timedelta(hours=-1), timedelta(seconds=9)])
async def test_a_clock_that_jumps_repeats_no_effect_and_takes_no_run_away(tmp_path, jump):
    now, done = [datetime(2026, 1, 31, tzinfo=UTC)], []

    def strike() -> None:
        now[0] += jump

    with Journal.open(f"sqlite:///{tmp_path}/journal.db", clock=lambda: now[0]) as journal:
        lab = Lab(journal, now=lambda: now[0])
        halt, session = await lab.run(PLAN, tools(done, "before it acts", once(strike)))
        await asyncio.to_thread(session.close)
        seqs = [each.seq for each in journal.log.read(session.run.run_id)]

    assert (halt.reason, done) == ("done", [1])
    assert seqs == list(range(1, len(seqs) + 1))
