"""Runs, and who owns each one now.

At most one owner at a time. A lease ends when it is released, when its time is over, or at once
when its owner is a process of this machine that is dead. The time is the wall clock of whoever
asks: it is assumed that the clocks of two machines, or one clock before and after a jump, differ by
less than two thirds of the time to live (owners renew after one third). A larger jump can hand a
live lease to another; the epoch then keeps the former owner from writing, see
`plangate.journal.lease`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias, get_args

import sqlalchemy as sa

from plangate.journal.clock import EPOCH, Clock
from plangate.journal.lease import MINE, Lease, fence, lost, mine, unknown_run
from plangate.journal.owner import is_dead
from plangate.journal.points import reached
from plangate.journal.schema import RUNS
from plangate.journal.store import Store, insert_new, is_again
from plangate.plan.errors import ConfigError, Conflict, RunBusy
from plangate.plan.facts import Rights
from plangate.plan.value.frozen import parse

Status: TypeAlias = Literal["planning", "waiting", "running", "stopped", "ended"]
"""Where a run is: `waiting` for a person, `stopped` at a limit (it can be resumed), `ended`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One attempt to reach a goal, as its row says."""

    run_id: str
    goal_id: str
    goal: str
    thread_id: str
    """LangGraph's thread; a thread can have several runs, one after another."""

    agent: str
    principal: Rights
    status: Status = "planning"
    ending: str | None = None
    verdict: str | None = None
    created_at: datetime = EPOCH
    """Set by `Runs.create`."""

    updated_at: datetime = EPOCH
    last_seq: int = 0
    """Sequence number of the newest event."""

    owner: str | None = None
    epoch: int = 0
    lease_until: datetime | None = None


class Runs:
    """All runs of one journal."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def create(self, run: Run) -> Run:
        """Add a run and return it as stored, with its times set.

        Raises:
            Conflict: The id is taken, or the thread has a run that has not ended.
        """
        now = self._clock()
        made = replace(run, created_at=now, updated_at=now)
        row = {column.name: getattr(made, column.name) for column in RUNS.columns}
        row["principal"] = made.principal.model_dump_json()

        def work(tx: sa.Connection) -> bool:
            added = tx.execute(insert_new(RUNS).values(row)).rowcount == 1
            reached("run.creating")
            return added or (is_again(tx) and _load(tx, run.run_id) == made)

        is_made = self._store.change(work)
        reached("run.created")
        if not is_made:
            what = f"run {run.run_id!r} exists already, or thread {run.thread_id!r} has an open run"
            raise Conflict(what, hint="resume that run, or use another thread")
        return made

    def get(self, run_id: str) -> Run:
        """Return a run.

        Raises:
            ConfigError: No such run.
        """
        run = self.find(run_id)
        if run is None:
            raise unknown_run(run_id)
        return run

    def find(self, run_id: str) -> Run | None:
        """Return a run, or None if there is no such run."""
        rows = self._store.rows(sa.select(RUNS).where(RUNS.c.run_id == run_id))
        return _run(rows[0]) if rows else None

    def latest_of_thread(self, thread_id: str) -> Run | None:
        """Return the newest run of a thread, or None if it has none."""
        rows = self._store.rows(_newest().where(RUNS.c.thread_id == thread_id).limit(1))
        return _run(rows[0]) if rows else None

    def list(self, status: Status | None = None, limit: int = 50) -> tuple[Run, ...]:
        """Return runs, newest first.

        Raises:
            ConfigError: There is no such status.
        """
        query = _newest().limit(limit)
        if status is not None:
            if status not in get_args(Status):
                hint = "one of " + ", ".join(get_args(Status))
                raise ConfigError(f"{status!r} is not a status of a run", hint=hint)
            query = query.where(RUNS.c.status == status)
        return tuple(_run(row) for row in self._store.rows(query))

    def acquire(self, run_id: str, owner: str, ttl_s: float) -> Lease:
        """Become the owner of a run.

        A live lease is never given twice, also not to the same name: two parts of one process
        would both act.

        Args:
            run_id: Which run.
            owner: From `owner_name()`, one a holder.
            ttl_s: Seconds until others may take over, unless renewed.

        Raises:
            ConfigError: No such run.
            RunBusy: Another owner has it.
        """
        now = self._clock()
        until = now + timedelta(seconds=ttl_s)

        def work(tx: sa.Connection) -> int:
            row = locked(tx, run_id)
            if is_again(tx) and (row.owner, row.lease_until) == (owner, until):
                return int(row.epoch)
            refuse_if_busy(row, now)
            tx.execute(
                sa.update(RUNS)
                .where(RUNS.c.run_id == run_id)
                .values(owner=owner, epoch=row.epoch + 1, lease_until=until)
            )
            reached("lease.taking")
            return int(row.epoch) + 1

        epoch = self._store.change(work)
        reached("lease.taken")
        return Lease(run_id, owner, epoch, until)

    def renew(self, lease: Lease, ttl_s: float) -> Lease:
        """Extend a lease; it is never made shorter, whatever the clock did.

        A lease that ran out is renewed as well if nobody else took the run.

        Raises:
            LeaseLost: Another owner came.
        """

        def work(tx: sa.Connection) -> datetime:
            fence(tx, lease)
            row = locked(tx, lease.run_id)
            until = self._clock() + timedelta(seconds=ttl_s)
            until = max(until, row.lease_until or until)
            tx.execute(sa.update(RUNS).where(MINE).values(lease_until=until), mine(lease))
            return until

        return replace(lease, expires_at=self._store.change(work))

    def release(self, lease: Lease) -> None:
        """Let go of a run. Nothing happens if the lease was lost before."""
        free = sa.update(RUNS).where(MINE).values(owner=None, lease_until=None)

        def work(tx: sa.Connection) -> None:
            tx.execute(free, mine(lease))
            reached("lease.releasing")

        self._store.change(work)
        reached("lease.released")


def refuse_former(run: Run | sa.Row[*tuple[Any, ...]], lease: Lease) -> None:
    """Do nothing if nobody took the run since; the present owner may have let go of it.

    Args:
        run: As it stands now: from `Runs.get`, or from `locked` where nobody may take it meanwhile.
        lease: What somebody had on it.

    Raises:
        LeaseLost: Another owner came.
    """
    if run.epoch != lease.epoch:
        raise lost(lease, run.owner, run.epoch)


def is_at_work(run: Run | sa.Row[*tuple[Any, ...]], now: datetime) -> bool:
    """True if the lease on a run is live, and its owner is not known to be dead."""
    if run.owner is None or run.lease_until is None:
        return False
    return run.lease_until > now and not is_dead(run.owner)


def refuse_if_busy(row: sa.Row[*tuple[Any, ...]], now: datetime) -> None:
    """Stop whoever is not the owner of the run in `row` while its owner is at work.

    Raises:
        RunBusy: The lease is live, and its owner is not known to be dead.
    """
    if not is_at_work(row, now):
        return
    until = row.lease_until.isoformat(timespec="seconds")
    raise RunBusy(
        f"run {row.run_id!r} is worked on by {row.owner} until {until}",
        hint="wait for it, or stop that process; its lease ends by itself",
    )


def locked(tx: sa.Connection, run_id: str) -> sa.Row[*tuple[Any, ...]]:
    """Return who owns a run; nobody can take it until the transaction ends.

    Raises:
        ConfigError: No such run.
    """
    columns = (RUNS.c.run_id, RUNS.c.owner, RUNS.c.epoch, RUNS.c.lease_until)
    row = tx.execute(sa.select(*columns).where(RUNS.c.run_id == run_id).with_for_update()).first()
    if row is None:
        raise unknown_run(run_id)
    return row


def _load(tx: sa.Connection, run_id: str) -> Run | None:
    row = tx.execute(sa.select(RUNS).where(RUNS.c.run_id == run_id)).first()
    return None if row is None else _run(row)


def _newest() -> sa.Select[Any]:
    return sa.select(RUNS).order_by(RUNS.c.created_at.desc(), RUNS.c.run_id.desc())


def _run(row: sa.Row[*tuple[Any, ...]]) -> Run:
    return Run(**{**row._asdict(), "principal": parse(Rights, row.principal)})
