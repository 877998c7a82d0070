"""What follows an attempt that did not succeed: the retry matrix, as a table.

Every layer that could repeat a call obeys it; clients below are set to no retries of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plangate.plan.catalog import ToolSpec
    from plangate.plan.outcome import Outcome

Repeat: TypeAlias = Literal["free", "sampled", "keyed", "reconciled", "once"]
"""How safe a repeat is: `free` a read · `sampled` a model, which may answer otherwise next time ·
`keyed` the outside knows the effect key and acts once · `reconciled` the outside can be asked ·
`once` neither."""

Next: TypeAlias = Literal["retry", "reconcile", "route", "ask"]

_COLUMNS: tuple[Repeat, ...] = ("free", "sampled", "keyed", "reconciled", "once")
_ROWS: Mapping[Outcome, tuple[Next, ...]] = {
    "transient": ("retry", "retry", "retry", "retry", "retry"),
    "unknown": ("retry", "retry", "retry", "reconcile", "ask"),
    "unexpected_state": ("route", "retry", "route", "route", "route"),
    "permanent": ("route", "route", "route", "route", "route"),
    "business_rejection": ("route", "route", "route", "route", "route"),
    "denied": ("route", "route", "route", "route", "route"),
    "cancelled": ("route", "route", "route", "route", "route"),
}
MATRIX: Mapping[Outcome, Mapping[Repeat, Next]] = {
    outcome: dict(zip(_COLUMNS, row, strict=True)) for outcome, row in _ROWS.items()
}
"""`transient` of an acting tool is the tool's own word that it did not act."""

_BASE_S = 0.2
_CAP_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryContext:
    """Everything that the decision depends on."""

    outcome: Outcome
    repeat: Repeat
    attempt: int
    """1 for the first."""

    max_attempts: int
    seconds_left: float | None = None
    """Of the run's budget; None: no limit."""


def repeat_of(spec: ToolSpec) -> Repeat:
    """Say how safe a repeat of a call is, from the contract alone."""
    if not spec.effect.acts:
        return "free"
    if spec.reconciles:
        return "reconciled"
    return "keyed" if spec.idempotent else "once"


def decide(context: RetryContext) -> Next:
    """Look the cell up; a retry without attempts or time left becomes a route.

    Money is not asked about: the meter refuses a call that cannot be paid. An unknown effect never
    becomes a route: what may have happened goes to a person.
    """
    cell = MATRIX[context.outcome][context.repeat]
    if cell != "retry":
        return cell
    spent = context.attempt >= context.max_attempts or (
        context.seconds_left is not None and context.seconds_left <= 0
    )
    if not spent:
        return "retry"
    acted = context.outcome == "unknown" and context.repeat not in ("free", "sampled")
    return "ask" if acted else "route"


def delay_s(attempt: int, jitter: float) -> float:
    """Return seconds to wait before the next attempt: capped exponential, plus jitter.

    Args:
        attempt: Number of the attempt that failed, from 1.
        jitter: A random number in [0, 1), so that many runs do not knock at the same time.
    """
    wait = min(_CAP_S, _BASE_S * 2.0 ** (attempt - 1))
    return wait * (0.5 + jitter / 2)
