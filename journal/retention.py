"""Taking a run out of the journal: all of it, nothing of another run, in one transaction.

What the outside remembers must stay known. Of an effect that was done, the key and the state are
kept, with nothing that a person or a tool said: the same key is still refused, a payment is not
made again because its run was deleted. Such a row is no run's any more, so that a later run of the
same id does not inherit it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import sqlalchemy as sa

from plangate.journal.causes import RunFollowed
from plangate.journal.lease import fence
from plangate.journal.ledger import UNSETTLED
from plangate.journal.schema import (
    ARTIFACT_USES,
    ARTIFACTS,
    DECISIONS,
    EFFECTS,
    EVENTS,
    RESERVATIONS,
    RUNS,
    USAGE,
    VERIFIED,
    VOTES,
)
from plangate.journal.store import is_again
from plangate.plan.errors import EffectUnknown

if TYPE_CHECKING:
    from datetime import datetime

    from plangate.journal.lease import Lease
    from plangate.journal.runs import Status
    from plangate.journal.store import Store

TOMBSTONE: Final = "its run was deleted"
"""The note of a row of the ledger that outlived its run."""


class Removed(NamedTuple):
    """What went, and what stayed."""

    events: int
    artifacts: int
    """Those that no other run uses."""

    kept_effects: int
    """Keys of effects that stay known."""


class Idle(NamedTuple):
    """A run in which nothing happened for some time; equal as long as nothing has since."""

    run_id: str
    status: Status
    updated_at: datetime
    said_at: datetime | None
    """When a person last said something of it, heard or not; None: nobody has."""


class Retention:
    """What can be taken out of one journal."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def idle_since(self, before: datetime, status: Status) -> list[Idle]:
        """Return the runs in a status in which nothing has happened since, oldest first."""
        query = (
            _idle()
            .where(RUNS.c.status == status, RUNS.c.updated_at < before)
            .order_by(RUNS.c.updated_at, RUNS.c.run_id)
        )
        found = (Idle(*row) for row in self._store.rows(query))
        return [each for each in found if each.said_at is None or each.said_at < before]

    def is_still(self, seen: Idle) -> bool:
        """True if nothing has happened in a run since it was looked at."""
        rows = self._store.rows(_idle().where(RUNS.c.run_id == seen.run_id))
        return [Idle(*row) for row in rows] == [seen]

    def open_beside(self, run_id: str) -> str | None:
        """Return the run of the same thread that has not ended, if that is another one."""
        thread = sa.select(RUNS.c.thread_id).where(RUNS.c.run_id == run_id).scalar_subquery()
        query = sa.select(RUNS.c.run_id).where(
            RUNS.c.thread_id == thread,
            RUNS.c.thread_id != "",
            RUNS.c.status != "ended",
            RUNS.c.run_id != run_id,
        )
        rows = self._store.rows(query)
        return rows[0].run_id if rows else None

    def open_after(self, run_id: str) -> str | None:
        """Return a run that was made because of this one and has not ended: it reads this one."""
        links = sa.select(EVENTS.c.body).where(
            EVENTS.c.run_id == run_id, EVENTS.c.type == "run_followed"
        )
        made = [RunFollowed.model_validate_json(row.body).run_id for row in self._store.rows(links)]
        query = sa.select(RUNS.c.run_id).where(RUNS.c.run_id.in_(made), RUNS.c.status != "ended")
        rows = self._store.rows(query) if made else ()
        return rows[0].run_id if rows else None

    def refuse_unsettled(self, run_id: str) -> None:
        """Stop where it is not known what became of an effect of the run.

        Raises:
            EffectUnknown: It names the effects.
        """
        with self._store.read() as tx:
            _refuse_unsettled(tx, run_id)

    def remove(self, lease: Lease) -> Removed:
        """Take a run out, with its events, decisions, votes and unshared artifacts.

        Args:
            lease: The caller's hold on the run; it is gone afterwards.

        Raises:
            LeaseLost: Another owner came.
            EffectUnknown: As `refuse_unsettled`.
            JournalError: The database refused; nothing is removed.
        """
        run_id = lease.run_id
        this_run = RUNS.c.run_id == run_id

        def work(tx: sa.Connection) -> Removed:
            if (
                is_again(tx)
                and tx.execute(sa.select(RUNS.c.run_id).where(this_run)).first() is None
            ):
                return Removed(0, 0, 0)
            fence(tx, lease)
            _refuse_unsettled(tx, run_id)
            kept = _bury_effects(tx, run_id)
            artifacts = _remove_artifacts(tx, run_id)
            events = tx.execute(sa.delete(EVENTS).where(EVENTS.c.run_id == run_id)).rowcount
            for table in (DECISIONS, VOTES, VERIFIED, USAGE):
                tx.execute(sa.delete(table).where(table.c.run_id == run_id))
            _bury_reservations(tx, run_id)
            tx.execute(sa.delete(RUNS).where(this_run))
            return Removed(events, artifacts, kept)

        return self._store.change(work)


def _idle() -> sa.Select[Any]:
    said = sa.union_all(
        *(sa.select(table.c.run_id, table.c.at) for table in (DECISIONS, VOTES))
    ).subquery()
    last = sa.select(sa.func.max(said.c.at)).where(said.c.run_id == RUNS.c.run_id)
    return sa.select(RUNS.c.run_id, RUNS.c.status, RUNS.c.updated_at, last.scalar_subquery())


def _remove_artifacts(tx: sa.Connection, run_id: str) -> int:
    if tx.dialect.name == "postgresql":
        # A writer that finds an artifact there and uses it from now on must be seen here.
        tx.execute(sa.text("LOCK TABLE artifacts, artifact_uses IN SHARE ROW EXCLUSIVE MODE"))
    mine = ARTIFACT_USES.alias()
    used = sa.select(mine.c.ref).where(mine.c.run_id == run_id)

    def is_mine_alone(ref: sa.ColumnElement[str]) -> sa.ColumnElement[bool]:
        return sa.and_(ref.in_(used), ~_is_used_by_another(run_id, ref))

    buried = sa.update(EFFECTS).where(EFFECTS.c.run_id == "", is_mine_alone(EFFECTS.c.output))
    tx.execute(buried.values(output=None))
    gone = tx.execute(sa.delete(ARTIFACTS).where(is_mine_alone(ARTIFACTS.c.ref))).rowcount
    tx.execute(sa.delete(ARTIFACT_USES).where(ARTIFACT_USES.c.run_id == run_id))
    return gone


def _is_used_by_another(run_id: str, ref: sa.ColumnElement[str]) -> sa.ColumnElement[bool]:
    other = ARTIFACT_USES.alias()
    return sa.exists().where(other.c.ref == ref, other.c.run_id != run_id)


def _bury_effects(tx: sa.Connection, run_id: str) -> int:
    """Keep the key and the state of what was done; what failed never happened.

    The result stays as long as another run says it as well: one that met the effect in the ledger
    and rests on it.
    """
    of_run = EFFECTS.c.run_id == run_id
    tx.execute(sa.delete(EFFECTS).where(of_run, EFFECTS.c.state == "failed"))
    said = (
        "run_id",
        "goal_id",
        "step",
        "attempt_id",
        "error_code",
        "business_state",
        "by",
        "owner",
    )
    gone = {**dict.fromkeys(said, ""), "approval": None, "operation_id": None}
    named = sa.literal("deleted:") + sa.func.substr(EFFECTS.c.effect_key, 1, 12)
    output = sa.case((_is_used_by_another(run_id, EFFECTS.c.output), EFFECTS.c.output))
    kept = {"business_key": named, "plan_version": 0, "note": TOMBSTONE, "output": output}
    return tx.execute(sa.update(EFFECTS).where(of_run).values(**kept, **gone)).rowcount


def _bury_reservations(tx: sa.Connection, run_id: str) -> None:
    """Keep the amounts of the newest day: to delete a run gives nobody a second budget for it."""
    other, of_run = RESERVATIONS.alias(), RESERVATIONS.c.run_id == run_id
    newest = sa.select(sa.func.max(other.c.day)).where(other.c.account == RESERVATIONS.c.account)
    past = RESERVATIONS.c.day < newest.scalar_subquery()
    tx.execute(sa.delete(RESERVATIONS).where(of_run, past))
    tx.execute(sa.update(RESERVATIONS).where(of_run).values(run_id="", act=""))


def _refuse_unsettled(tx: sa.Connection, run_id: str) -> None:
    open_ones = sa.select(EFFECTS.c.effect_key, EFFECTS.c.state).where(
        EFFECTS.c.run_id == run_id, EFFECTS.c.state.in_(UNSETTLED)
    )
    rows = tx.execute(open_ones.order_by(EFFECTS.c.effect_key)).all()
    if rows:
        said = ", ".join(f"{row.effect_key[:12]} is {row.state}" for row in rows[:5])
        raise EffectUnknown(
            f"run {run_id!r} has {len(rows)} effects of unknown outcome: {said}",
            hint="settle them first: plangate effects settle KEY --as done|failed",
        )
