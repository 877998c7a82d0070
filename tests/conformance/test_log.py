from __future__ import annotations

import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest
import sqlalchemy as sa

from plangate.journal.artifacts import ref_of
from plangate.journal.events import (
    ModelCalled,
    RunEnded,
    RunResumed,
    StepReleased,
    TriggerFired,
)
from plangate.journal.owner import owner_name
from plangate.journal.questions import (
    DecisionTaken,
    QuestionAsked,
)
from plangate.journal.schema import EVENTS
from plangate.journal.spending import BudgetStopped
from plangate.plan.errors import ConfigError, Conflict, JournalError, LeaseLost

FIRED = TriggerFired(kind="stall", step="S1")
ASKED = QuestionAsked(
    question_id="q1",
    kind="approval",
    audience="operator",
    payload="sha256:0",
    payload_sha256="0",
    plan_version=1,
    content_hash="h",
    expires_at=datetime(2026, 2, 1, 10, 0, 0, 123456, tzinfo=timezone(timedelta(hours=2))),
)
DECIDED = DecisionTaken(question_id="q1", decision="approve", by="ann")
RELEASED = StepReleased(step="S1", plan_version=1)
STOPPED = BudgetStopped(limit="usd", spent="1", allowed="1")
ENDED = RunEnded(ending="completed", verdict="pass", report="sha256:0")
CALLED = ModelCalled(
    role="planner",
    model="m",
    prompt="planner",
    prompt_sha256="0",
    ok=True,
    input_tokens=1,
    output_tokens=2,
    usd=Decimal("0.10"),
    latency_s=0.1 + 0.2,
)


def test_events_are_numbered_without_gaps_and_come_back_as_they_went_in(journal, lease, clock):
    journal.log.append(lease, 0, [CALLED, ASKED])
    clock.jump(0.000001)
    last = journal.log.append(lease, 2, [FIRED])

    entries = journal.log.read("r")

    assert last == 3
    assert [entry.seq for entry in entries] == [1, 2, 3]
    assert [entry.event for entry in entries] == [CALLED, ASKED, FIRED]
    assert (entries[2].at, entries[2].epoch) == (clock.now, 1)


def test_money_and_times_come_back_to_the_last_digit(journal, lease):
    journal.log.append(lease, 0, [CALLED, ASKED])

    called, asked = (entry.event for entry in journal.log.read("r"))

    assert str(called.usd) == "0.10"
    assert called.latency_s == CALLED.latency_s
    assert asked.expires_at.isoformat() == "2026-02-01T10:00:00.123456+02:00"


def test_reading_goes_on_where_the_reader_stands(journal, lease):
    journal.log.append(lease, 0, [FIRED] * 5)

    assert [entry.seq for entry in journal.log.read("r", after=2, limit=2)] == [3, 4]
    assert journal.log.read("r", after=5) == journal.log.read("nobody") == []


def test_a_former_owner_is_refused_and_changes_nothing(journal, lease, clock):
    clock.jump(31)
    journal.runs.acquire("r", owner_name(), 30)
    sealed = ref_of({"a": 1})

    with pytest.raises(LeaseLost, match="epoch 2") as caught:
        journal.log.append(lease, 0, [ENDED], {sealed.ref: sealed.body})

    assert caught.value.hint
    assert journal.log.read("r") == []
    assert not journal.artifacts.has(sealed.ref)
    assert journal.runs.get("r").status == "planning"


def test_an_older_hold_of_the_same_owner_is_refused(journal, lease, clock):
    clock.jump(31)
    later = journal.runs.acquire("r", lease.owner, 30)

    with pytest.raises(LeaseLost, match="epoch 2"):
        journal.log.append(lease, 0, [FIRED])

    assert journal.log.append(later, 0, [FIRED]) == 1


def test_an_owner_that_let_go_is_refused(journal, lease):
    journal.runs.release(lease)

    with pytest.raises(LeaseLost, match="nobody holds it"):
        journal.log.append(lease, 0, [FIRED])


@pytest.mark.parametrize("expected", [0, 1, 3])
def test_a_writer_with_another_idea_of_the_end_is_refused(journal, lease, expected):
    journal.log.append(lease, 0, [FIRED, FIRED])

    with pytest.raises(Conflict, match=f"has 2 events, and the writer expected {expected}"):
        journal.log.append(lease, expected, [ENDED])

    assert len(journal.log.read("r")) == journal.runs.get("r").last_seq == 2
    assert journal.runs.get("r").ending is None


def test_of_many_appends_with_one_expectation_one_is_written(journal, lease):
    said = []

    def append() -> None:
        try:
            said.append(journal.log.append(lease, 0, [FIRED]))
        except Conflict:
            said.append("conflict")

    threads = [threading.Thread(target=append) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(said, key=str) == [1] + ["conflict"] * 7
    assert len(journal.log.read("r")) == 1


def test_an_append_to_no_run_says_so(journal, lease):
    with pytest.raises(ConfigError, match="unknown_run"):
        journal.log.append(replace(lease, run_id="other"), 0, [FIRED])


def test_an_append_of_nothing_still_asks_who_writes(journal, lease):
    assert journal.log.append(lease, 0, []) == 0

    journal.runs.release(lease)

    with pytest.raises(LeaseLost):
        journal.log.append(lease, 0, [])


@pytest.mark.parametrize(
    ("events", "status"),
    [
        ([], "planning"),
        ([FIRED], "planning"),
        ([ASKED], "waiting"),
        ([ASKED, DECIDED], "running"),
        ([RELEASED], "running"),
        ([ASKED, RELEASED], "waiting"),
        ([STOPPED], "stopped"),
        ([STOPPED, RunResumed(owner="o"), RELEASED], "running"),
        ([RELEASED, ENDED], "ended"),
    ],
)
def test_the_run_follows_its_events(journal, lease, events, status):
    journal.log.append(lease, 0, events)

    assert journal.runs.get("r").status == status


@pytest.mark.parametrize(
    ("before", "after"), [(STOPPED, "running"), (ASKED, "waiting"), (ENDED, "ended")]
)
def test_a_released_step_starts_a_run_but_ends_no_waiting(journal, lease, before, after):
    journal.log.append(lease, 0, [before])

    journal.log.append(lease, 1, [RELEASED])

    assert journal.runs.get("r").status == after


def test_the_end_of_a_run_is_in_its_row(journal, lease, clock):
    clock.jump(5)

    journal.log.append(lease, 0, [ENDED])

    run = journal.runs.get("r")
    assert (run.ending, run.verdict, run.last_seq) == ("completed", "pass", 1)
    assert (run.updated_at - run.created_at).total_seconds() == 5


def test_artifacts_are_stored_with_the_events_that_name_them(journal, lease):
    sealed = ref_of({"order": {"id": "ORD-1"}})
    bodies = {sealed.ref: sealed.body}

    journal.log.append(lease, 0, [FIRED], bodies)
    journal.log.append(lease, 1, [FIRED], bodies)

    assert journal.artifacts.get(sealed.ref) == {"order": {"id": "ORD-1"}}


def test_a_record_that_cannot_be_read_is_named(journal, lease):
    journal.log.append(lease, 0, [FIRED])
    with journal.store.write() as tx:
        tx.execute(sa.update(EVENTS).values(body='{"type":"from_the_future"}'))

    with pytest.raises(JournalError, match="event 1 of run 'r' cannot be read") as caught:
        journal.log.read("r")

    assert caught.value.hint


def test_text_that_is_no_unicode_is_refused_before_anything_is_written(journal, lease):
    with pytest.raises(JournalError, match="not valid Unicode"):
        journal.log.append(lease, 0, [FIRED, TriggerFired(kind="x", says="\ud800")])

    assert journal.runs.get("r").last_seq == 0


def test_times_in_the_log_are_utc(journal, lease):
    journal.log.append(lease, 0, [FIRED])

    assert journal.log.read("r")[0].at.tzinfo == UTC
