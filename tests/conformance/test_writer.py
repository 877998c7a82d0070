from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
import sqlalchemy as sa

from plangate.journal.clock import utc_now
from plangate.journal.events import TriggerFired
from plangate.journal.journal import Journal
from plangate.journal.owner import owner_name
from plangate.journal.writer import Writer
from plangate.plan.errors import JournalError, LeaseLost


def fired(number: int) -> TriggerFired:
    return TriggerFired(kind="n", code=str(number))


def codes(journal: Journal) -> list[str]:
    return [entry.event.code for entry in journal.log.read("r")]


@pytest.fixture
def commits(journal: Journal) -> list[int]:
    seen: list[int] = []
    sa.event.listen(journal.store.engine, "commit", lambda _: seen.append(1))
    return seen


@pytest.fixture
def writer(journal, lease) -> Iterator[Writer]:
    made = Writer(journal, lease, 0, ttl_s=30)
    yield made
    with suppress(JournalError):  # the test that made it fail has seen it
        made.close()


@pytest.fixture
def clock():
    """The real one: a writer's own waiting is in real seconds."""
    return utc_now


@contextmanager
def blocked(journal: Journal) -> Iterator[None]:
    """Make the writer wait for a transaction that has changed its run."""
    with journal.store.write() as tx:
        tx.exec_driver_sql("UPDATE runs SET goal = goal")
        yield


def steal(journal: Journal) -> None:
    with journal.store.write() as tx:
        tx.exec_driver_sql("UPDATE runs SET owner = 'thief', epoch = epoch + 1")


def test_events_in_a_tight_loop_share_transactions_and_keep_their_order(journal, writer, commits):
    for number in range(1000):
        writer.emit(fired(number))
    writer.flush()

    assert len(commits) <= 20
    assert codes(journal) == [str(number) for number in range(1000)]


def test_events_within_the_window_share_one_transaction(journal, lease, commits):
    writer = Writer(journal, lease, 0, ttl_s=30, window_s=5)
    for number in range(5):
        writer.emit(fired(number))
        time.sleep(0.005)
    writer.close()

    assert len(commits) == 1


def test_a_flush_does_not_wait_for_the_window_to_pass(journal, lease):
    writer = Writer(journal, lease, 0, ttl_s=30, window_s=60)
    writer.emit(fired(1))
    began = time.monotonic()

    writer.flush()

    assert time.monotonic() - began < 10
    assert codes(journal) == ["1"]
    writer.close()


def test_after_a_flush_everything_is_on_the_disk(journal, writer):
    for number in range(20):
        writer.emit(fired(number))
        writer.flush()
        with Journal.open(journal.url) as other:
            assert len(codes(other)) == number + 1


async def test_an_async_flush_leaves_the_loop_free(journal, writer):
    writer.emit(fired(1))
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0)

    ticking = asyncio.create_task(tick())
    with blocked(journal):  # the writer has to wait for this transaction
        flushing = asyncio.create_task(writer.aflush())
        await asyncio.sleep(0.02)
        done_early = flushing.done()
    await flushing
    ticking.cancel()

    assert not done_early
    assert ticks > 1
    assert codes(journal) == ["1"]


async def test_a_flush_that_is_given_up_harms_nobody(journal, writer):
    with blocked(journal):
        writer.emit(fired(1))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(writer.aflush(), 0.01)

    writer.emit(fired(2))
    await writer.aflush()

    assert codes(journal) == ["1", "2"]


async def test_a_flush_of_nothing_returns_at_once(writer, commits):
    writer.flush()
    await writer.aflush()

    assert commits == []


def test_close_writes_what_is_queued_and_ends_the_thread(journal, lease):
    writer = Writer(journal, lease, 0, ttl_s=30, window_s=60)
    for number in range(10):
        writer.emit(fired(number))

    writer.close()
    writer.close()

    assert len(codes(journal)) == 10
    assert not writer._thread.is_alive()
    with pytest.raises(JournalError, match="is closed"):
        writer.emit(fired(11))


def test_a_full_queue_makes_the_emitter_wait_and_loses_nothing(journal, lease):
    writer = Writer(journal, lease, 0, ttl_s=30, capacity=3)
    emitted = []

    def emit() -> None:
        for number in range(20):
            writer.emit(fired(number))
            emitted.append(number)

    with blocked(journal):
        thread = threading.Thread(target=emit)
        thread.start()
        time.sleep(0.1)
        seen = len(emitted)
    thread.join()
    writer.close()

    assert seen <= 3 + 3  # what the thread took and what the queue holds
    assert codes(journal) == [str(number) for number in range(20)]


def test_many_threads_may_emit(journal, writer):
    threads = [
        threading.Thread(target=lambda: [writer.emit(fired(n)) for n in range(100)])
        for _ in range(5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.flush()

    assert sorted(codes(journal)) == sorted(str(n) for n in range(100) for _ in range(5))


def test_an_artifact_is_there_when_the_event_that_names_it_is(journal, writer):
    ref = writer.put({"a": 1})
    writer.emit(TriggerFired(kind="n", code=ref))
    writer.flush()

    assert journal.artifacts.get(ref) == {"a": 1}
    assert codes(journal) == [ref]


def test_an_artifact_alone_is_flushed_too(journal, writer):
    ref = writer.put([1])
    writer.flush()

    assert journal.artifacts.get(ref) == [1]


async def test_the_first_failure_is_kept_and_every_later_call_raises_it(journal, writer):
    writer.emit(fired(1))
    writer.flush()
    steal(journal)
    writer.emit(fired(2))

    with pytest.raises(LeaseLost) as first:
        writer.flush()
    for call in (lambda: writer.emit(fired(3)), lambda: writer.put(1), writer.flush, writer.close):
        with pytest.raises(LeaseLost) as later:
            call()
        assert later.value is first.value
    with pytest.raises(LeaseLost):
        await writer.aflush()

    assert codes(journal) == ["1"]


def test_a_failure_wakes_an_emitter_that_waits_for_room(journal, lease):
    writer = Writer(journal, lease, 0, ttl_s=30, capacity=1)
    raised = []

    def emit() -> None:
        try:
            for number in range(10):
                writer.emit(fired(number))
        except LeaseLost as exc:
            raised.append(exc)

    with journal.store.write() as tx:
        tx.exec_driver_sql("UPDATE runs SET owner = 'thief', epoch = epoch + 1")
        thread = threading.Thread(target=emit)
        thread.start()
        time.sleep(0.05)
    thread.join(10)

    assert len(raised) == 1
    with pytest.raises(LeaseLost):
        writer.close()


def test_an_event_that_cannot_be_written_harms_only_its_emitter(journal, writer):
    with pytest.raises(JournalError, match="not valid Unicode"):
        writer.emit(TriggerFired(kind="n", says="\udcff"))
    with pytest.raises(JournalError, match="cannot be stored"):
        writer.put(float("inf"))

    writer.emit(fired(1))
    writer.flush()

    assert codes(journal) == ["1"]


def test_an_idle_writer_keeps_its_lease(journal, new_run):
    new_run()
    lease = journal.runs.acquire("r", owner_name(), 0.3)
    writer = Writer(journal, lease, 0, ttl_s=0.3)

    time.sleep(0.5)

    assert journal.runs.get("r").lease_until > lease.expires_at
    writer.emit(fired(1))
    writer.close()
    assert codes(journal) == ["1"]


def test_an_idle_writer_notices_that_the_lease_is_gone(journal, new_run):
    new_run()
    writer = Writer(journal, journal.runs.acquire("r", owner_name(), 0.15), 0, ttl_s=0.15)
    steal(journal)

    writer._thread.join(5)

    with pytest.raises(LeaseLost):
        writer.flush()
    with pytest.raises(LeaseLost):
        writer.close()


def test_nothing_wakes_an_idle_writer_before_its_lease_is_due(journal, writer, commits):
    time.sleep(0.1)

    assert commits == []
