"""The event log: append-only, one stream a run, numbered 1, 2, 3, ... without gaps.

An append says who writes (lease) and where it believes the stream ends (sequence number). Both are
checked and the events written in one transaction, so a stale writer changes nothing.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import sqlalchemy as sa
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from plangate.journal.artifacts import insert_artifacts, insert_uses, refs_in
from plangate.journal.events import (
    EVENT,
    Entry,
    Event,
    RunEnded,
    StepReleased,
)
from plangate.journal.lease import MINE, Lease, fence, mine
from plangate.journal.points import reached
from plangate.journal.questions import (
    DecisionTaken,
    QuestionAsked,
    StopAsked,
)
from plangate.journal.schema import EVENTS, RUNS
from plangate.journal.spending import BudgetStopped
from plangate.journal.store import is_again
from plangate.journal.usage import note_usage
from plangate.journal.verified import note_verified
from plangate.plan.errors import Conflict, JournalError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from plangate.journal.clock import Clock
    from plangate.journal.reference import Ref
    from plangate.journal.runs import Status
    from plangate.journal.store import Store

_NOTHING: Mapping[Ref, bytes] = MappingProxyType({})
_STATUS: Mapping[type, Status] = MappingProxyType(
    {
        QuestionAsked: "waiting",
        DecisionTaken: "running",
        BudgetStopped: "stopped",
        RunEnded: "ended",
    }
)
_ADD = sa.insert(EVENTS)
_ADVANCE = (
    sa.update(RUNS)
    .where(MINE, RUNS.c.last_seq == sa.bindparam("expected_seq"))
    .values(last_seq=sa.bindparam("new_seq"), updated_at=sa.bindparam("now"))
)
_BEFORE_STEPS = RUNS.c.status.in_(["planning", "stopped"])
_ON_RELEASE = sa.case((_BEFORE_STEPS, "running"), else_=RUNS.c.status)
"""A released step starts a run, but does not end its waiting for a person."""


class Written(NamedTuple):
    """An event in the form in which it is stored."""

    event: Event
    at: datetime
    body: str


def write_down(event: Event, at: datetime) -> Written:
    """Return an event ready for the log.

    Raises:
        JournalError: It holds text that is not Unicode.
    """
    try:
        return Written(event, at, event.model_dump_json())
    except PydanticSerializationError as exc:
        what = f"an event {event.type!r} holds text that is not valid Unicode"
        hint = "clean text from outside before it becomes part of an event"
        raise JournalError(what, hint=hint) from exc


class Log:
    """The event streams of all runs of one journal."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def append(
        self,
        lease: Lease,
        expected_seq: int,
        events: Sequence[Event],
        artifacts: Mapping[Ref, bytes] = _NOTHING,
    ) -> int:
        """Add events to a run, with the artifacts they refer to, and follow them in its row.

        Args:
            lease: The writer's hold on the run.
            expected_seq: Number of the newest event that the writer knows; 0 for none.
            events: In order.
            artifacts: Canonical bytes by reference, from `ref_of`; stored already is fine.

        Returns:
            The number of the newest event now.

        Raises:
            LeaseLost: Another owner came.
            Conflict: The stream does not end at `expected_seq`.
            JournalError: The database refused; nothing was written.
        """
        now = self._clock()
        written = [write_down(event, now) for event in events]
        return self.append_written(lease, expected_seq, written, artifacts)

    def append_written(
        self,
        lease: Lease,
        expected_seq: int,
        written: Sequence[Written],
        artifacts: Mapping[Ref, bytes] = _NOTHING,
    ) -> int:
        """Do the same for events that were written down before, each with its own time."""
        seq = expected_seq + len(written)
        changes = _changes([each.event for each in written])
        # Most batches change no status: the statement made once is compiled once.
        advance = _ADVANCE.values(**changes) if changes else _ADVANCE
        where = mine(lease) | {"expected_seq": expected_seq, "new_seq": seq, "now": self._clock()}
        rows = [
            {
                "run_id": lease.run_id,
                "seq": number,
                "at": each.at,
                "epoch": lease.epoch,
                "type": each.event.type,
                "step": getattr(each.event, "step", None),
                "body": each.body,
            }
            for number, each in enumerate(written, expected_seq + 1)
        ]

        used = refs_in(each.body for each in written) | set(artifacts)

        def work(tx: sa.Connection) -> None:
            if tx.execute(advance, where).rowcount != 1:
                if is_again(tx) and _is_written(tx, rows):
                    return
                raise _refused(tx, lease, expected_seq)
            insert_artifacts(tx, dict(artifacts))
            insert_uses(tx, lease.run_id, used)
            if rows:
                tx.execute(_ADD, rows)
            for each in written:
                if isinstance(each.event, RunEnded):
                    _note_end(tx, lease.run_id, each.event, each.at)
            reached("log.writing")

        self._store.change(work)
        reached("log.written")
        return seq

    def read(self, run_id: str, after: int = 0, limit: int | None = None) -> list[Entry]:
        """Return a run's events in order; none for a run that has none or does not exist.

        Args:
            run_id: Which run.
            after: Only events with a larger number.
            limit: At most so many.

        Raises:
            JournalError: A record cannot be read.
        """
        query = (
            sa.select(EVENTS.c.seq, EVENTS.c.at, EVENTS.c.epoch, EVENTS.c.body)
            .where(EVENTS.c.run_id == run_id, EVENTS.c.seq > after)
            .order_by(EVENTS.c.seq)
            .limit(limit)
        )
        return [_entry(run_id, row) for row in self._store.rows(query)]


def _note_end(tx: sa.Connection, run_id: str, ended: RunEnded, at: datetime) -> None:
    """Keep what later runs ask for, so that none of them has to read this log."""
    if ended.verified is not None:
        note_verified(tx, run_id, ended.verified, at)
    note_usage(tx, run_id, ended.used, at)


def _changes(events: Sequence[Event]) -> dict[str, Any]:
    """Return what events change in the run's row; the last one that says something wins."""
    changes: dict[str, Any] = {}
    for event in events:
        status = _STATUS.get(type(event))
        if status is not None:
            changes["status"] = status
        elif isinstance(event, StepReleased):
            changes["status"] = _released(changes.get("status"))
        if isinstance(event, StopAsked) and event.kind == "drain":
            changes["status"] = "stopped"
        if isinstance(event, RunEnded):
            changes |= {"ending": event.ending, "verdict": event.verdict}
    return changes


def _released(before: Any) -> Any:
    if before is None:
        return _ON_RELEASE
    return "running" if isinstance(before, str) and before == "stopped" else before


def _is_written(tx: sa.Connection, rows: Sequence[Mapping[str, Any]]) -> bool:
    """True if these very events are there: a commit whose answer was lost."""
    if not rows:
        return False
    last = rows[-1]
    found = sa.select(EVENTS).where(EVENTS.c.run_id == last["run_id"], EVENTS.c.seq == last["seq"])
    row = tx.execute(found).first()
    return row is not None and row._asdict() == last


def _refused(tx: sa.Connection, lease: Lease, expected_seq: int) -> JournalError:
    """Find out why the run's row did not match."""
    fence(tx, lease)
    last = tx.execute(sa.select(RUNS.c.last_seq).where(RUNS.c.run_id == lease.run_id)).scalar_one()
    return Conflict(
        f"run {lease.run_id!r} has {last} events, and the writer expected {expected_seq}",
        hint="read the log again from where you stand, then decide anew",
    )


def _entry(run_id: str, row: sa.Row[*tuple[Any, ...]]) -> Entry:
    try:
        event = EVENT.validate_json(row.body, strict=True)
        return Entry(run_id=run_id, seq=row.seq, at=row.at, epoch=row.epoch, event=event)
    except ValidationError as exc:
        what = f"event {row.seq} of run {run_id!r} cannot be read ({exc.error_count()} faults)"
        hint = "it was written by another version or changed from outside; see `plangate doctor`"
        raise JournalError(what, hint=hint) from exc
