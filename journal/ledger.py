"""The effect ledger: what the outside world will remember, written down before it happens.

`intend` commits a row before the tool is called. A row that is still `intended` after a crash may
or may not have happened: nothing here guesses, and nothing is intended twice unless it is known to
have failed. The key is the business identity of the effect, so a replanned, renamed or re-delivered
step meets its own row. Each row names the owner in whose hands the effect is: as long as that one
may still make its call, nobody else may say that the effect failed, whoever holds the run by then.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, Unpack

import sqlalchemy as sa

from plangate.journal.lease import Lease, fence
from plangate.journal.owner import lives_beside, process_of
from plangate.journal.points import reached
from plangate.journal.runs import refuse_if_busy
from plangate.journal.schema import EFFECTS, RUNS
from plangate.journal.store import Store, insert_new, is_again
from plangate.plan.errors import Conflict, JournalError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from plangate.journal.clock import Clock
    from plangate.journal.reference import Ref
    from plangate.plan.outcome import EffectState

_BEGINNING = re.compile(r"[0-9a-f]{8,64}")
UNSETTLED: tuple[EffectState, ...] = ("intended", "accepted", "unknown")
"""States of an effect that may still turn out either way."""

_FROM: dict[EffectState, tuple[EffectState, ...]] = {
    "accepted": ("intended", "unknown"),
    "done": UNSETTLED,
    "failed": UNSETTLED,
    "unknown": UNSETTLED,
    "compensated": ("done",),
}
"""By the new state, the states it may follow. `intended` is set by `intend` alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """What is about to be done. Arguments are kept as a digest: they may hold secrets."""

    effect_key: str
    business_key: str
    """The same identity, readable: `refund:ORD-1`."""

    run_id: str
    goal_id: str
    step: str
    plan_version: int
    attempt_id: str
    tool: str
    tool_version: str
    args_sha256: str
    approval: str | None = None
    """Id of the question whose answer allows it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectRow(Intent):
    """An effect as the ledger knows it."""

    state: EffectState
    epoch: int
    """Of the lease under which it was intended."""

    operation_id: str | None
    """What the outside calls it, once accepted."""

    output: Ref | None
    error_code: str
    business_state: str
    """The outside's own word for the final state."""

    created_at: datetime
    settled_at: datetime | None
    """None while it may still change."""

    note: str
    by: str
    """The person who settled it; empty: the run itself."""

    owner: str
    """In whose hands it is: who may be making its call, or asking after it; empty: nobody's."""

    @property
    def silent_caller(self) -> str:
        """The process beside this one that may still make the call; empty if there is none.

        It is frozen, or only slow: what it was about to do, it does once it goes on.
        """
        may_come = self.state in ("intended", "unknown") and lives_beside(self.owner)
        return process_of(self.owner) if may_come else ""

    @property
    def is_buried(self) -> bool:
        """True if its run was deleted: it is no run's any more, and only key and state are left."""
        return not self.run_id


class Claim(NamedTuple):
    """The answer to an intent."""

    fresh: bool
    """True: the caller, and nobody else, may act now."""

    row: EffectRow


class Settlement(TypedDict, total=False):
    """What is known of an effect that was settled; what is left out stays as it was."""

    output: Ref | None
    error_code: str
    business_state: str
    operation_id: str
    note: str
    by: str


class Ledger:
    """The effects of all runs of one journal."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def intend(self, lease: Lease, intent: Intent) -> Claim:
        """Record that a call is about to be made; on the disk before this returns.

        Returns:
            `fresh` is False where the effect is known and has not failed: it must not be called
            again; the row says whether to reuse its output, to poll, or to ask the outside.

        Raises:
            LeaseLost: The caller no longer owns the run.
            Conflict: The key is known for a call with other arguments.
        """
        assert intent.run_id == lease.run_id, "an intent belongs to the run that is held"  # noqa: S101
        row = _fresh(intent, lease, self._clock())

        def work(tx: sa.Connection) -> Claim:
            fence(tx, lease)
            claim = _claim(tx, row)
            reached("effect.intending")
            return claim

        claim = self._store.change(work)
        reached("effect.intended")
        if claim.row.args_sha256 != intent.args_sha256:
            raise _other_arguments(claim.row)
        return claim

    def accept(self, lease: Lease, effect_key: str, operation_id: str) -> EffectRow:
        """Record that the outside works on an effect, under an id of its own.

        Raises:
            LeaseLost: The caller no longer owns the run.
            Conflict: The effect is neither intended nor unknown.
            JournalError: There is no such effect.
        """
        return self._move(lease, effect_key, "accepted", {"operation_id": operation_id})

    def take(self, lease: Lease, effect_key: str) -> EffectRow:
        """Take an effect of unknown outcome up, to find out about it or to go on with it.

        Returns:
            The row as it is now; its `owner` is the caller if it was taken. It was not where it is
            settled, or where a process beside this one may still make the call.

        Raises:
            LeaseLost: The caller no longer owns its run.
            RunBusy: The owner in whose hands the effect is is at work.
            JournalError: There is no such effect.
        """
        now = self._clock()

        def work(tx: sa.Connection) -> EffectRow:
            row = _held(tx, lease, effect_key, now)
            if row.state not in UNSETTLED or row.owner == lease.owner or row.silent_caller:
                return row
            taken = sa.update(EFFECTS).where(_is(effect_key)).values(owner=lease.owner)
            tx.execute(taken)
            reached("effect.taking")
            return _load(tx, effect_key)

        row = self._store.change(work)
        reached("effect.taken")
        return row

    def let_go(self, effect_key: str, owner: str) -> None:
        """Record that an owner makes no call of an effect any more; nothing if it is not its.

        No lease is needed: also an owner that lost its run, and only it, knows when its call ended.
        """
        mine = sa.and_(_is(effect_key), EFFECTS.c.owner == owner)
        self._store.change(lambda tx: tx.execute(sa.update(EFFECTS).where(mine).values(owner="")))

    def settle(
        self, lease: Lease, effect_key: str, state: EffectState, **said: Unpack[Settlement]
    ) -> EffectRow:
        """Record how an effect ended: `done`, `failed`, `unknown`, or `compensated` after done.

        An effect of another run (a global key) can be settled too.

        Raises:
            LeaseLost: The caller no longer owns its run.
            Conflict: The effect is in a state that this one cannot follow, or it is to have failed
                while a process beside this one may still make the call.
            RunBusy: The effect is in the hands of another owner who is at work.
            JournalError: There is no such effect.
        """
        return self._move(lease, effect_key, state, said)

    def get(self, effect_key: str) -> EffectRow | None:
        """Return an effect, or None if it was never intended."""
        rows = self._store.rows(sa.select(EFFECTS).where(_is(effect_key)))
        return _effect(rows[0]) if rows else None

    def named(self, name: str) -> tuple[EffectRow, ...]:
        """Return the effects that a key, the beginning of one, or a business key names.

        Args:
            name: Of a key at least eight digits, so that no word passes for one.
        """
        meant = sa.or_(EFFECTS.c.effect_key == name, EFFECTS.c.business_key == name)
        if _BEGINNING.fullmatch(name):
            meant = sa.or_(meant, EFFECTS.c.effect_key.startswith(name, autoescape=True))
        query = sa.select(EFFECTS).where(meant).order_by(EFFECTS.c.created_at)
        return tuple(_effect(row) for row in self._store.rows(query))

    def under(self, run_id: str, approval: str, step: str) -> tuple[EffectRow, ...]:
        """Return the effects that one approval of one step was used for, also those that failed."""
        used = sa.and_(
            EFFECTS.c.run_id == run_id, EFFECTS.c.approval == approval, EFFECTS.c.step == step
        )
        return tuple(_effect(row) for row in self._store.rows(sa.select(EFFECTS).where(used)))

    def list(
        self, run_id: str | None = None, state: EffectState | None = None
    ) -> tuple[EffectRow, ...]:
        """Return effects, oldest first; all runs or states where none is named."""
        query = sa.select(EFFECTS).order_by(EFFECTS.c.created_at, EFFECTS.c.effect_key)
        if run_id is not None:
            query = query.where(EFFECTS.c.run_id == run_id)
        if state is not None:
            query = query.where(EFFECTS.c.state == state)
        return tuple(_effect(row) for row in self._store.rows(query))

    def _move(
        self, lease: Lease, effect_key: str, state: EffectState, said: Settlement
    ) -> EffectRow:
        now = self._clock()
        settled = None if state in UNSETTLED else now
        values = {"state": state, "settled_at": settled, **said}
        if state != "unknown":  # the call was made, or will not be
            values["owner"] = lease.owner if state == "accepted" else ""
        allowed = EFFECTS.c.state.in_(_FROM.get(state, ()))

        def work(tx: sa.Connection) -> EffectRow:
            row = _held(tx, lease, effect_key, now)
            if is_again(tx) and values.items() <= asdict(row).items():
                return row
            if state == "failed" and row.silent_caller:
                raise _may_still_act(row)
            change = sa.update(EFFECTS).where(_is(effect_key), allowed).values(values)
            if tx.execute(change).rowcount != 1:
                raise _bad_move(row, state)
            reached("effect.moving")
            return _load(tx, effect_key)

        moved = self._store.change(work)
        reached("effect.moved")
        return moved


def _fresh(intent: Intent, lease: Lease, now: datetime) -> dict[str, Any]:
    row = {field.name: getattr(intent, field.name) for field in fields(Intent)}
    empty = {"operation_id": None, "output": None, "settled_at": None}
    unsaid = {"error_code": "", "business_state": "", "note": "", "by": ""}
    begun = {"state": "intended", "epoch": lease.epoch, "owner": lease.owner, "created_at": now}
    return {**row, **empty, **unsaid, **begun}


def _claim(tx: sa.Connection, row: Mapping[str, Any]) -> Claim:
    key = row["effect_key"]
    fresh = tx.execute(insert_new(EFFECTS).values(row)).rowcount == 1
    known = _load(tx, key)
    if not fresh and known.state == "failed":
        tx.execute(sa.update(EFFECTS).where(_is(key)).values(row))
        fresh, known = True, _load(tx, key)
    # Met again after the connection broke: this attempt's own row, and it has not acted yet.
    return Claim(fresh or (is_again(tx) and asdict(known) == row), known)


def _held(tx: sa.Connection, lease: Lease, effect_key: str, now: datetime) -> EffectRow:
    """Return an effect that nobody else may move now; the runs are locked before the effect."""
    found = sa.select(EFFECTS.c.owner).where(_is(effect_key))
    owner = tx.execute(found).scalar() or lease.owner
    both = sa.or_(RUNS.c.run_id == lease.run_id, RUNS.c.owner == owner)
    runs = tx.execute(sa.select(RUNS).where(both).order_by(RUNS.c.run_id).with_for_update()).all()
    fence(tx, lease)
    row = _load(tx, effect_key)
    if row.owner not in ("", owner, lease.owner):
        what = f"effect {row.business_key!r} was taken up by {row.owner} at this moment"
        raise Conflict(what, hint="read the ledger's row again")
    for run in runs:
        if run.owner == row.owner != lease.owner:
            refuse_if_busy(run, now)
    return row


def _is(effect_key: str) -> sa.ColumnElement[bool]:
    return EFFECTS.c.effect_key == effect_key


def _load(tx: sa.Connection, effect_key: str) -> EffectRow:
    row = tx.execute(sa.select(EFFECTS).where(_is(effect_key)).with_for_update()).first()
    if row is None:
        what = f"effect {effect_key!r} is not in the ledger"
        raise JournalError(what, hint="see `plangate effects list`")
    return _effect(row)


def _other_arguments(known: EffectRow) -> Conflict:
    return Conflict(
        f"effect {known.business_key!r} is {known.state} with other arguments (step {known.step} "
        f"of run {known.run_id})",
        hint="two calls with one business identity must have the same arguments; mend the tool's "
        "key template, or settle the recorded effect first",
    )


def _may_still_act(row: EffectRow) -> Conflict:
    """Return the error for whoever says that an effect failed while its call may still come."""
    what = f"{row.silent_caller} of this machine has effect {row.business_key!r} in hand, and may "
    return Conflict(what + "still make the call", hint="stop that process, then say so again")


def _bad_move(row: EffectRow, state: EffectState) -> Conflict:
    what = f"effect {row.business_key!r} is {row.state} and cannot become {state}"
    return Conflict(what, hint="read the ledger's row again; somebody settled it before")


def _effect(row: sa.Row[*tuple[Any, ...]]) -> EffectRow:
    return EffectRow(**row._asdict())
