"""What is held back for acts, in rows that all processes see: the truth about a principal's day.

A row counts from before the act until its day is over: at what was asked for, then at what the act
did cost. A crash leaves it at what was asked for, since that may have been spent. A day is one of
UTC, and never one before the newest that the principal has a row of: a clock that is set back opens
no second budget.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias
from uuid import uuid4

import sqlalchemy as sa

from plangate.journal.lease import fence
from plangate.journal.points import reached
from plangate.journal.schema import RESERVATIONS
from plangate.journal.store import insert_new, is_again
from plangate.plan.errors import BudgetExceeded
from plangate.plan.spent import Spent, admit

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import date

    from plangate.journal.clock import Clock
    from plangate.journal.lease import Lease
    from plangate.journal.store import Store
    from plangate.plan.facts import Rights
    from plangate.plan.spent import Caps

State: TypeAlias = Literal["held", "settled", "lost"]
"""`held` the act may go on · `settled` its cost is known · `lost` its owner died: what was asked
for counts for good."""

_NANO: Final = 10**9
_MOST_NANO: Final = 10**18
"""A thousand million dollars; more than a column can sum up is no cost of an act."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A reservation as the journal knows it."""

    row_id: str
    run_id: str
    epoch: int
    """Of the owner that made it; lower than the present one: that owner is gone."""

    act: str
    """The attempt, check or role that it is for."""

    ledgered: bool
    """True if the ledger tells whether the act was begun."""

    asked: Spent


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One principal's day."""

    principal: str
    tenant: str | None
    day: str
    counts: Spent
    """All that a cap of the day is compared with."""

    held: Spent
    """The part of it that is only held back, for acts that go on."""

    runs: int


def account_of(rights: Rights) -> str:
    """Return whose day it is: a principal of a tenant, who shares with no other."""
    return json.dumps([rights.tenant, rights.principal])


def new_row_id() -> str:
    """Return the id of a row that is still to be made."""
    return uuid4().hex


class Reservations:
    """The reservations of one journal."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def hold(
        self,
        lease: Lease,
        account: str,
        wanted: Held,
        caps: Caps | None,
        ended: Mapping[str, Spent | None],
    ) -> None:
        """Hold back what an act may take of a day, on the disk before this returns.

        Args:
            lease: The hold on the run.
            account: From `account_of`.
            wanted: The row to make.
            caps: Of the day; None: the row is kept, and nothing is compared.
            ended: By row what earlier acts did cost, None where they did not happen; written with
                it, also where the new one is refused.

        Raises:
            BudgetExceeded: A cap of the day would be passed; no row is made.
            LeaseLost: Another owner has the run.
        """
        today = self._clock().date()

        def work(tx: sa.Connection) -> BudgetExceeded | None:
            fence(tx, lease)
            _end(tx, lease.run_id, ended)
            if is_again(tx) and tx.execute(_ids([wanted.row_id])).first() is not None:
                return None
            day = _day(tx, account, today)
            if caps is not None and (refusal := _refusal(tx, account, day, caps, wanted.asked)):
                return refusal
            tx.execute(insert_new(RESERVATIONS).values(_row(account, day, wanted)))
            reached("reservation.holding")
            return None

        refused = self._store.change(work, alone=f"day of {account}")
        if refused is not None:
            raise refused
        reached("reservation.held")

    def end(self, lease: Lease, ended: Mapping[str, Spent | None]) -> None:
        """Write what acts did cost; None deletes the row of one that did not happen.

        Raises:
            LeaseLost: Another owner has the run, and its rows.
        """

        def work(tx: sa.Connection) -> None:
            fence(tx, lease)
            _end(tx, lease.run_id, ended)

        self._store.change(work)

    def left_behind(self, lease: Lease) -> tuple[Held, ...]:
        """Return what former owners of the run held back and never ended."""
        rows = self._store.rows(
            sa.select(RESERVATIONS).where(
                RESERVATIONS.c.run_id == lease.run_id,
                RESERVATIONS.c.state == "held",
                RESERVATIONS.c.epoch < lease.epoch,
            )
        )
        return tuple(
            Held(
                row_id=row.row_id,
                run_id=row.run_id,
                epoch=row.epoch,
                act=row.act,
                ledgered=bool(row.ledgered),
                asked=_spent(row),
            )
            for row in rows
        )

    def take_back(self, lease: Lease, free: Collection[str], lost: Collection[str]) -> None:
        """End rows that former owners left behind.

        Args:
            lease: The hold on the run.
            free: Rows of acts that certainly did not happen.
            lost: Rows of all others: they count at what was asked for.

        Raises:
            LeaseLost: Another owner has the run.
        """

        def work(tx: sa.Connection) -> None:
            fence(tx, lease)
            tx.execute(sa.delete(RESERVATIONS).where(RESERVATIONS.c.row_id.in_(free)))
            these = RESERVATIONS.c.row_id.in_(lost)
            tx.execute(sa.update(RESERVATIONS).where(these).values(state="lost"))

        self._store.change(work)

    def accounts(self, day: date | None = None) -> tuple[Account, ...]:
        """Return every principal that has a row of a day, None: today, by name."""
        wanted = self._clock().date() if day is None else day
        c = RESERVATIONS.c
        query = sa.select(c.account).where(c.day == wanted.isoformat()).distinct()
        with self._store.read() as tx:
            names = sorted(row.account for row in tx.execute(query))
            return tuple(_account(tx, name, wanted.isoformat()) for name in names)

    def spent(self, account: str, today: date | None = None) -> Spent:
        """Return what counts for an account on a day, None: today, by the rule of this module."""
        now = self._clock().date() if today is None else today
        with self._store.read() as tx:
            return _sum(tx, account, _day(tx, account, now))


def _refusal(
    tx: sa.Connection, account: str, day: str, caps: Caps, asked: Spent
) -> BudgetExceeded | None:
    try:
        admit(caps, _sum(tx, account, day), asked, scope="day.")
    except BudgetExceeded as exc:
        return exc
    return None


def _day(tx: sa.Connection, account: str, today: date) -> str:
    newest = sa.select(sa.func.max(RESERVATIONS.c.day)).where(RESERVATIONS.c.account == account)
    return max(today.isoformat(), tx.execute(newest).scalar() or "")


def _account(tx: sa.Connection, account: str, day: str) -> Account:
    c = RESERVATIONS.c
    runs = sa.select(sa.func.count(c.run_id.distinct())).where(c.account == account, c.day == day)
    tenant, principal = json.loads(account)
    return Account(
        principal=principal,
        tenant=tenant,
        day=day,
        counts=_sum(tx, account, day),
        held=_sum(tx, account, day, c.state == "held"),
        runs=tx.execute(runs).scalar() or 0,
    )


def _sum(tx: sa.Connection, account: str, day: str, *only: sa.ColumnElement[bool]) -> Spent:
    c = RESERVATIONS.c
    total = [sa.func.coalesce(sa.func.sum(each), 0) for each in (c.nano_usd, *_counts())]
    unknown = sa.func.count() - sa.func.count(c.nano_usd)
    query = sa.select(unknown, *total).where(c.account == account, c.day == day, *only)
    nobody_knows, usd, tokens, tools, models = map(int, tx.execute(query).one())
    return Spent(
        usd=None if nobody_knows else Decimal(usd) / _NANO,
        tokens=tokens,
        tool_calls=tools,
        model_calls=models,
    )


def _counts() -> tuple[sa.Column[int], ...]:
    c = RESERVATIONS.c
    return (c.tokens, c.tool_calls, c.model_calls)


def _end(tx: sa.Connection, run_id: str, ended: Mapping[str, Spent | None]) -> None:
    gone = [row_id for row_id, spent in ended.items() if spent is None]
    if gone:
        tx.execute(
            sa.delete(RESERVATIONS).where(
                RESERVATIONS.c.row_id.in_(gone), RESERVATIONS.c.run_id == run_id
            )
        )
    for row_id, spent in ended.items():
        if spent is not None:
            this = sa.and_(RESERVATIONS.c.row_id == row_id, RESERVATIONS.c.run_id == run_id)
            tx.execute(
                sa.update(RESERVATIONS).where(this).values(state="settled", **_amounts(spent))
            )


def _ids(row_ids: Collection[str]) -> sa.Select[Any]:
    return sa.select(RESERVATIONS.c.row_id).where(RESERVATIONS.c.row_id.in_(row_ids))


def _row(account: str, day: str, wanted: Held) -> dict[str, object]:
    return {
        "row_id": wanted.row_id,
        "account": account,
        "day": day,
        "run_id": wanted.run_id,
        "epoch": wanted.epoch,
        "act": wanted.act,
        "ledgered": int(wanted.ledgered),
        "state": "held",
        **_amounts(wanted.asked),
    }


def _amounts(spent: Spent) -> dict[str, int | None]:
    return {
        "nano_usd": None if spent.usd is None else _nano(spent.usd),
        "tokens": spent.tokens,
        "tool_calls": spent.tool_calls,
        "model_calls": spent.model_calls,
    }


def _nano(usd: Decimal) -> int:
    """Return whole thousand-millionths of a dollar; what is between two of them costs the more."""
    return min(_MOST_NANO, int((usd * _NANO).to_integral_value(ROUND_CEILING)))


def _spent(row: sa.Row[Any]) -> Spent:
    return Spent(
        usd=None if row.nano_usd is None else Decimal(row.nano_usd) / _NANO,
        tokens=row.tokens,
        tool_calls=row.tool_calls,
        model_calls=row.model_calls,
    )
