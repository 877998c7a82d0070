"""What the rule engine says about one typology: found, explained, absent or not to be told.

Reasons are made of the bank's own figures and ids, never of a word that an outsider wrote.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from plangate.examples.aml.books import Move, day_of
from plangate.examples.aml.value import Value

if TYPE_CHECKING:
    from collections.abc import Sequence

Typology: TypeAlias = Literal["structuring", "fan_in", "fan_out", "rapid_movement", "round_trip"]
TYPOLOGIES: tuple[Typology, ...] = (
    "structuring",
    "fan_in",
    "fan_out",
    "rapid_movement",
    "round_trip",
)
Status: TypeAlias = Literal["matched", "explained", "absent", "undecided"]
"""`explained`: the pattern is there, and the customer's record or past explains it. `undecided`: it
is there, and what is known of the customer is too old to explain it or not."""

_MOST_SURE = 95


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding(Value):
    """One typology held against one case."""

    typology: Typology
    status: Status
    rule: str
    """Id of the rule that decided, with the version of the rule file."""

    reason: str
    transactions: list[str]
    """Ids of what the pattern is made of, oldest first."""

    total_cents: int
    """Of those transactions."""

    parties: int
    strength_pct: int
    """How far the thresholds are passed, in percent: the confidence in a match. 0: no match."""

    first_day: str | None
    last_day: str | None


def found(
    typology: Typology,
    status: Status,
    rule: str,
    reason: str,
    moves: Sequence[Move] = (),
    **figures: int,
) -> Finding:
    """Return a finding about some transactions; sums and days are computed here."""
    ordered = sorted(moves, key=lambda each: (each.at, each.txn_id))
    is_match = status == "matched"
    return Finding(
        typology=typology,
        status=status,
        rule=rule,
        reason=reason,
        transactions=[each.txn_id for each in ordered],
        total_cents=sum(each.amount_cents for each in ordered),
        parties=figures.get("parties", 0),
        strength_pct=figures.get("strength_pct", 0) if is_match else 0,
        first_day=day_of(ordered[0].at) if ordered else None,
        last_day=day_of(ordered[-1].at) if ordered else None,
    )


def strength(value: int, least: int) -> int:
    """Return the confidence in a match, in percent, by how far a threshold is passed.

    Example:
        >>> strength(8, 8), strength(12, 8), strength(80, 8)
        (60, 77, 95)
    """
    return min(_MOST_SURE, 60 + 35 * (value - least) // max(1, least))


def euros(cents: int) -> str:
    """Return an amount for people.

    Example:
        >>> euros(1234567)
        'EUR 12,345.67'
    """
    return f"EUR {cents // 100:,}.{cents % 100:02d}"
