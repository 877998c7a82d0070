"""The connection breaks when a commit is on its way: it went through or not, and nobody said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa

from plangate.journal.artifacts import ref_of
from plangate.journal.decisions import Decision
from plangate.journal.events import TriggerFired
from plangate.journal.journal import Journal
from plangate.journal.ledger import Intent
from plangate.journal.runs import Run
from plangate.plan.errors import Conflict, RunBusy
from plangate.plan.facts import Rights

FIRED = TriggerFired(kind="stall", step="S1")
RUN = Run(
    run_id="r", goal_id="g", goal="x", thread_id="r", agent="a", principal=Rights(principal="p")
)
PLAIN = dict.fromkeys(("goal_id", "step", "attempt_id", "tool", "tool_version"), "x")
INTENT = Intent(
    effect_key="k", business_key="b", run_id="r", plan_version=1, args_sha256="a", **PLAIN
)
SAID = Decision(
    question_id="q", run_id="r", decision="approve", by="ann", at=datetime(2026, 1, 31, tzinfo=UTC)
)
BOB = SAID.model_copy(update={"by": "bob"})


@pytest.fixture
def journal(postgres):
    with Journal.open(postgres) as made:
        yield made


@pytest.fixture(params=["written", "not written"])
def lose(request, journal) -> Callable[[], list[str]]:
    """Make the answer to the next commit get lost, after or before the server did it."""

    def arm() -> list[str]:
        lost: list[str] = []

        def hang_up(tx: sa.Connection) -> None:
            if lost:
                return
            lost.append(request.param)
            connection: Any = tx.connection.driver_connection
            if request.param == "written":
                connection.commit()
            connection.close()
            raise psycopg.OperationalError("server closed the connection unexpectedly")

        sa.event.listen(journal.store.engine, "commit", hang_up)
        return lost

    return arm


def owner(journal: Journal) -> Any:
    journal.runs.create(RUN)
    return journal.runs.acquire("r", "elsewhere:1:1:me", 30)


def test_a_run_is_created_once(journal, lose):
    lost = lose()

    made = journal.runs.create(RUN)

    assert lost
    assert journal.runs.list() == (made,)
    with pytest.raises(Conflict):
        journal.runs.create(RUN)


def test_a_run_is_taken_once(journal, lose):
    journal.runs.create(RUN)
    lost = lose()

    lease = journal.runs.acquire("r", "elsewhere:1:1:me", 30)

    assert lost
    assert lease.epoch == 1
    with pytest.raises(RunBusy):
        journal.runs.acquire("r", "elsewhere:1:1:you", 30)


def test_events_are_written_once(journal, lose):
    lease, sealed = owner(journal), ref_of({"a": 1})
    lost = lose()

    assert journal.log.append(lease, 0, [FIRED, FIRED], {sealed.ref: sealed.body}) == 2

    assert lost
    assert [entry.event for entry in journal.log.read("r")] == [FIRED, FIRED]
    with pytest.raises(Conflict, match="has 2 events"):
        journal.log.append(lease, 0, [FIRED])


def test_who_intended_an_effect_may_act_and_nobody_else(journal, lose):
    lease = owner(journal)
    lost = lose()

    assert journal.ledger.intend(lease, INTENT).fresh

    assert lost
    assert not journal.ledger.intend(lease, replace(INTENT, attempt_id="y")).fresh


def test_an_effect_is_settled_once(journal, lose):
    lease = owner(journal)
    journal.ledger.intend(lease, INTENT)
    lost = lose()

    done = journal.ledger.settle(lease, "k", "done", business_state="PAID")

    assert lost
    assert done == journal.ledger.get("k")
    with pytest.raises(Conflict, match="is done and cannot become failed"):
        journal.ledger.settle(lease, "k", "failed")


def test_an_answer_that_counted_is_told_so(journal, lose):
    lost = lose()

    assert journal.decisions.record(SAID) == (True, SAID)

    assert lost
    assert journal.decisions.record(BOB) == (False, SAID)


def test_a_vote_counts_once_and_the_last_one_decides(journal, lose):
    journal.decisions.vote(SAID, needs=2)
    lost = lose()

    polled = journal.decisions.vote(BOB, needs=2)

    assert lost
    assert [each.by for each in polled.votes] == ["ann", "bob"]
    assert polled.recorded.won
    assert polled.recorded.decision.by == "ann, bob"


def test_a_lease_is_renewed_and_let_go(journal, lose):
    lease = owner(journal)
    lost = lose()

    journal.runs.renew(lease, 60)
    journal.runs.release(lease)

    assert lost
    assert journal.runs.get("r").owner is None
