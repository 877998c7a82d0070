"""The values that the rule engine works on: transactions without words, a window, a subject."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Move(NamedTuple):
    """A transaction as the rule engine sees it: without any text from outside."""

    txn_id: str
    at: int
    channel: str
    source: str
    target: str
    amount_cents: int


class Window(NamedTuple):
    """A span of time, both ends included, in seconds since 1970."""

    start: int
    end: int

    def holds(self, move: Move) -> bool:
        """True if a transaction falls into it."""
        return self.start <= move.at <= self.end


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The account of a case, whose it is, and what its owner declared."""

    case_id: str
    account_id: str
    customer_id: str
    alert: str
    kind: str
    occupation: str
    residence: str
    is_known: bool
    """False: the record of the customer has expired, so its figures prove nothing."""

    monthly_income_cents: int
    monthly_cash_cents: int
    regular_payers: int
    regular_payees: int
    own: frozenset[str]
    """All accounts of the same customer."""

    window: Window


def day_of(at: int) -> str:
    """Return the day of a moment.

    Example:
        >>> day_of(0)
        '1970-01-01'
    """
    return datetime.fromtimestamp(at, UTC).date().isoformat()


def others(moves: Sequence[Move], subject: Subject) -> Iterator[str]:
    """Yield who stands at the other end of each transaction."""
    for move in moves:
        yield move.source if move.target == subject.account_id else move.target
