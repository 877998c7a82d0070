"""What the tools can read of the bank: one case at a time, within its window. Nothing here writes.

Nobody asks for "all transactions": each reader takes a case and a window, and sees the account of
that case, and where money went on from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import or_, select

from plangate.examples.aml.books import Move, Subject, Window
from plangate.examples.aml.schema import accounts, cases, customers, parties, watchlist
from plangate.examples.aml.schema import transactions as txns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import Row

    from plangate.examples.aml.store import Store

DAY = 86_400
HISTORY_DAYS = 60
"""How far before a window the engine looks for who paid or was paid before."""

MOST_ROWS = 5_000


@dataclass(frozen=True, slots=True)
class Bank:
    """The bank's books."""

    store: Store

    def subject(self, case_id: str, days: int) -> Subject | None:
        """Return who a case is about, in a window of so many days up to its end."""
        joined = cases.join(accounts, accounts.c.account_id == cases.c.account_id).join(
            customers, customers.c.customer_id == accounts.c.customer_id
        )
        wanted = select(cases, customers).select_from(joined).where(cases.c.case_id == case_id)
        with self.store.reading() as connection:
            row = connection.execute(wanted).first()
            if row is None:
                return None
            same = accounts.c.customer_id == row.customer_id
            own = connection.scalars(select(accounts.c.account_id).where(same)).all()
        return _subject(row, frozenset(own), days)

    def moves(self, subject: Subject) -> tuple[Move, ...]:
        """Return the account's transactions of the window and of the time before, oldest first."""
        start = subject.window.start - HISTORY_DAYS * DAY
        return tuple(_move(row) for row in self._rows(subject, start))

    def rows(self, subject: Subject) -> Sequence[Row[Any]]:
        """Return the account's transactions of the window with their memos."""
        return self._rows(subject, subject.window.start)

    def onward(self, account_id: str, window: Window) -> tuple[Move, ...]:
        """Return what one account paid to accounts of this bank within a window."""
        wanted = (
            select(txns)
            .where(
                txns.c.source == account_id,
                txns.c.at.between(*window),
                txns.c.target.in_(select(accounts.c.account_id)),
            )
            .order_by(txns.c.at, txns.c.txn_id)
        )
        with self.store.reading() as connection:
            return tuple(_move(row) for row in connection.execute(wanted.limit(MOST_ROWS)))

    def by_id(self, ids: Sequence[str]) -> Mapping[str, Move]:
        """Return the transactions with these ids; what there is not is left out."""
        with self.store.reading() as connection:
            found = connection.execute(select(txns).where(txns.c.txn_id.in_(list(ids))))
            return {row.txn_id: _move(row) for row in found}

    def names(self, ids: Sequence[str]) -> Mapping[str, str]:
        """Return the names that parties gave themselves."""
        wanted = select(parties.c.party_id, parties.c.name)
        with self.store.reading() as connection:
            found = connection.execute(wanted.where(parties.c.party_id.in_(list(ids))))
            return {row.party_id: row.name for row in found}

    def listed(self, ids: Sequence[str]) -> Mapping[str, str]:
        """Return the watch-list entry of each listed party, by its registered id.

        Not by name: a name is what its bearer says it is.
        """
        with self.store.reading() as connection:
            found = connection.execute(select(watchlist).where(watchlist.c.party_id.in_(list(ids))))
            return {row.party_id: row.entry for row in found}

    def _rows(self, subject: Subject, start: int) -> Sequence[Row[Any]]:
        mine = or_(txns.c.source == subject.account_id, txns.c.target == subject.account_id)
        wanted = select(txns).where(mine, txns.c.at.between(start, subject.window.end))
        with self.store.reading() as connection:
            ordered = wanted.order_by(txns.c.at, txns.c.txn_id).limit(MOST_ROWS)
            return connection.execute(ordered).all()


def _move(row: Row[Any]) -> Move:
    return Move(row.txn_id, row.at, row.channel, row.source, row.target, row.amount_cents)


def _subject(row: Row[Any], own: frozenset[str], days: int) -> Subject:
    return Subject(
        case_id=row.case_id,
        account_id=row.account_id,
        customer_id=row.customer_id,
        alert=row.alert,
        kind=row.kind,
        occupation=row.occupation,
        residence=row.residence,
        is_known=row.kyc_status == "current",
        monthly_income_cents=row.monthly_income_cents,
        monthly_cash_cents=row.monthly_cash_cents,
        regular_payers=row.regular_payers,
        regular_payees=row.regular_payees,
        own=own,
        window=Window(row.until - days * DAY, row.until),
    )
