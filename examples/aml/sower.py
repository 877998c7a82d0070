"""Gathers the rows of a world before they are written; the same seed gives the same rows.

Ids say nothing: a transaction's id is its number sent through a bijection, so that what was planted
cannot be told from what is ordinary life by looking at ids.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from plangate.examples.aml.attacks import ATTACKS

if TYPE_CHECKING:
    from random import Random

HOUR = 3_600
DAY = 24 * HOUR
END = int(datetime(2026, 11, 30, tzinfo=UTC).timestamp())
"""The last moment that the books know of."""

DAYS = 120
"""How far back they go."""

CASH = "CASH"
_EVERY_MEMO = 3
_EVERY_NAME = 4

Row: TypeAlias = tuple[str | int, ...]


class Customer(NamedTuple):
    """A row of `customers`; the figures are what the customer declared."""

    customer_id: str
    name: str
    kind: str
    occupation: str
    residence: str = "NL"
    kyc_status: str = "current"
    monthly_income_cents: int = 0
    monthly_cash_cents: int = 0
    regular_payers: int = 0
    regular_payees: int = 0


@dataclass(slots=True)
class Sower:
    """Rows of all tables.

    Args:
        rng: Where chance comes from.
        attacked: True: some of what outsiders write are instructions to whoever reads it.
        first: Number of the first row of each table, so that two sowers never share an id.
    """

    rng: Random
    attacked: bool = False
    first: int = 1
    customers: list[Customer] = field(default_factory=list)
    accounts: list[Row] = field(default_factory=list)
    parties: list[Row] = field(default_factory=list)
    watchlist: list[Row] = field(default_factory=list)
    transactions: list[Row] = field(default_factory=list)
    cases: list[Row] = field(default_factory=list)
    _attacks: int = 0

    def customer(self, kind: str, occupation: str, **declared: Any) -> str:
        """Add a customer and return its id."""
        number = self.first + len(self.customers)
        name = f"{_pick(self.rng, _FIRST)} {_pick(self.rng, _LAST)}"
        if kind == "business":
            name = f"{_pick(self.rng, _LAST)} {occupation.title()} BV"
        known = Customer(f"CUS-{number:05d}", name, kind, occupation)
        self.customers.append(known._replace(**declared))
        return known.customer_id

    def account(self, customer_id: str, purpose: str = "current") -> str:
        """Open an account and return its id."""
        number = self.first + len(self.accounts)
        account_id = f"ACC-{number:06d}"
        self.accounts.append((account_id, customer_id, purpose))
        return account_id

    def party(self, country: str = "NL") -> str:
        """Add somebody at another bank and return the id."""
        number = self.first + len(self.parties)
        name = f"{_pick(self.rng, _FIRST)} {_pick(self.rng, _LAST)}"
        if self.attacked and number % _EVERY_NAME == 0:
            name = f"{name} {self._attack()}"
        self.parties.append((f"CP-{number:06d}", name, country))
        return f"CP-{number:06d}"

    def move(self, at: int, channel: str, ends: tuple[str, str], cents: int, memo: str) -> str:
        """Book a transaction from one end to the other and return its id."""
        number = self.first + len(self.transactions)
        txn_id = txn_id_of(number)
        if self.attacked and number % _EVERY_MEMO == 0:
            memo = f"{memo} {self._attack()}"
        self.transactions.append((txn_id, at, channel, *ends, cents, memo))
        return txn_id

    def _attack(self) -> str:
        self._attacks += 1
        return ATTACKS[self._attacks % len(ATTACKS)]


def txn_id_of(number: int) -> str:
    """Return the id of the transaction with a number.

    Example:
        >>> txn_id_of(1), txn_id_of(2)
        ('T-9e3779b97f', 'T-3c6ef372fe')
    """
    return f"T-{number * 0x9E3779B97F % 2**40:010x}"


def _pick(rng: Random, words: tuple[str, ...]) -> str:
    return words[int(rng.random() * len(words))]


_FIRST = (
    "Anna", "Bram", "Chen", "Dana", "Emre", "Femke", "Goran", "Hana", "Ines", "Joris", "Kofi",
    "Lena", "Mila", "Nuno", "Olga", "Pim", "Rosa", "Sven", "Tara", "Umut", "Vera", "Wei", "Yara",
)  # fmt: skip
_LAST = (
    "Aydin", "Bakker", "Costa", "Dekker", "Eriksen", "Fischer", "Garcia", "Haas", "Ivanov",
    "Jansen", "Kaya", "Li", "Mensah", "Novak", "Okafor", "Peters", "Rossi", "Smit", "Tanaka",
    "Ueda", "Visser", "Wang", "Zhang",
)  # fmt: skip
