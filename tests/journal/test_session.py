from __future__ import annotations

import asyncio
import threading
from contextlib import suppress

import pytest

from plangate.journal.events import RunResumed, TriggerFired
from plangate.journal.ledger import Intent
from plangate.journal.owner import owner_name
from plangate.journal.session import Session
from plangate.journal.view import fold
from plangate.plan.errors import ConfigError, JournalError, LeaseLost, RunBusy


def fired(number: int) -> TriggerFired:
    return TriggerFired(kind="n", code=str(number))


@pytest.fixture
def session(journal, new_run):
    new_run()
    made = Session.open(journal, "r", owner_name(), 30)
    yield made
    with suppress(LeaseLost):  # the test that lost it has seen it
        made.close()


def steal(journal):
    with journal.store.write() as tx:
        tx.exec_driver_sql("UPDATE runs SET owner = 'thief', epoch = epoch + 1")


def test_an_event_is_in_the_view_at_once_and_on_the_disk_after_a_flush(journal, session):
    session.emit(fired(1))

    assert session.view.triggers == [fired(1)]
    session.flush()
    assert fold(journal.log.read("r")) == session.view


def test_a_first_session_resumes_nothing_and_a_second_one_says_so(journal, session):
    session.emit(fired(1))
    session.close()

    with Session.open(journal, "r", owner_name(), 30) as later:
        assert later.view.triggers == [fired(1)]
        assert (later.lease.epoch, later.view.seq, later.run.last_seq) == (2, 2, 1)

    resumed = journal.log.read("r")[1]
    assert (resumed.event, resumed.epoch) == (RunResumed(owner=later.lease.owner), 2)


def test_a_held_run_cannot_be_opened_again(journal, session):
    with pytest.raises(RunBusy):
        Session.open(journal, "r", owner_name(), 30)


def test_an_unknown_run_cannot_be_opened(journal):
    with pytest.raises(ConfigError, match="unknown_run"):
        Session.open(journal, "x", owner_name(), 30)


def test_a_log_that_cannot_be_read_leaves_the_run_free(journal, session):
    session.emit(fired(1))
    session.close()
    with journal.store.write() as tx:
        tx.exec_driver_sql("UPDATE events SET seq = 7")

    with pytest.raises(JournalError, match="follows event"):
        Session.open(journal, "r", owner_name(), 30)

    assert journal.runs.get("r").owner is None


def test_a_value_can_be_loaded_before_and_after_it_is_on_the_disk(journal, session):
    ref = session.put({"order": {"items": (1, 2)}})

    before = session.load(ref)
    session.close()

    assert before == session.load(ref) == {"order": {"items": [1, 2]}}
    assert journal.artifacts.has(ref)


def test_what_is_loaded_can_be_changed_without_changing_what_is_stored(session):
    ref = session.put({"a": [1]})
    session.load(ref)["a"].append(2)

    assert session.load(ref) == {"a": [1]}


def test_a_value_that_is_no_longer_kept_in_memory_is_read_from_the_disk(session, monkeypatch):
    monkeypatch.setattr(session._recent, "_capacity", 10)
    refs = [session.put({"number": number}) for number in range(50)]

    assert [session.load(ref)["number"] for ref in refs] == list(range(50))
    assert len(session._recent._bodies) == 1


def test_a_value_that_is_nowhere_is_named(session):
    with pytest.raises(JournalError, match="is not in this journal"):
        session.load("sha256:0")


async def test_a_lost_lease_stops_the_next_act_and_the_view_stays_true(journal, session):
    session.emit(fired(1))
    await session.aflush()
    steal(journal)
    session.emit(fired(2))

    with pytest.raises(LeaseLost):
        await session.aflush()
    seen = session.view.seq
    for act in (lambda: session.emit(fired(3)), lambda: session.put(3), session.flush):
        with pytest.raises(LeaseLost):
            act()
    with pytest.raises(LeaseLost):
        session.close()
    session.close()

    assert session.view.seq == seen
    assert [entry.event for entry in journal.log.read("r")] == [fired(1)]
    assert journal.runs.get("r").owner == "thief"


def test_closing_twice_is_closing_once(journal, session):
    session.emit(fired(1))
    session.close()
    session.close()

    run = journal.runs.get("r")
    assert (run.last_seq, run.owner, run.lease_until) == (1, None, None)
    with pytest.raises(JournalError, match="is closed"):
        session.emit(fired(2))


def test_threads_that_report_at_once_keep_view_and_log_in_one_order(journal, session):
    def report(first: int) -> None:
        for number in range(first, first + 100):
            session.emit(fired(number))

    threads = [threading.Thread(target=report, args=(first,)) for first in (0, 100, 200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    session.flush()

    assert fold(journal.log.read("r")) == session.view


async def test_an_intent_gets_through_while_events_are_written(journal, session):
    fields = (
        "business_key",
        "goal_id",
        "step",
        "attempt_id",
        "tool",
        "tool_version",
        "args_sha256",
    )
    plain = dict.fromkeys(fields, "x")
    claims = []
    for number in range(20):
        for each in range(50):
            session.emit(fired(each))
        intent = Intent(effect_key=f"k{number}", run_id="r", plan_version=1, **plain)
        await session.aflush()
        claims.append(await asyncio.to_thread(journal.ledger.intend, session.lease, intent))

    assert all(claim.fresh for claim in claims)
