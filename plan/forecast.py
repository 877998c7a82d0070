"""What a plan will probably take, as values. Not part of the plan: recalibration voids nothing.

Each figure has a middle (p50) and a high end (p95). Money that is not known is None, never zero,
and makes each sum that it is part of unknown; why it is not known stands in `unknown`.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import BeforeValidator

from plangate.plan.value.frozen import Frozen


class Range(Frozen):
    """An amount that is not known yet: the middle and the high end."""

    p50: float
    p95: float

    def __add__(self, other: Range) -> Range:
        return Range(p50=self.p50 + other.p50, p95=self.p95 + other.p95)

    def times(self, count: Range) -> Range:
        """Return the amount of `count` such things."""
        return Range(p50=self.p50 * count.p50, p95=self.p95 * count.p95)


NONE = Range(p50=0, p95=0)
ONCE = Range(p50=1, p95=1)


def _counted(given: object) -> object:
    """Read the one number that a journal of an earlier version holds."""
    return {"p50": given, "p95": given} if isinstance(given, int) else given


Count = Annotated[Range, BeforeValidator(_counted)]


class Forecast(Frozen):
    """What something will probably take."""

    seconds: Range
    tokens_in: Range = NONE
    tokens_out: Range = NONE
    usd_p50: Decimal | None
    """None: unknown, because a price is; never zero."""

    usd_p95: Decimal | None
    calls: Count = NONE
    """Of tools and models."""

    model_calls: Count = NONE
    source: str
    """Where the figures come from: `contract`, `schema`, `history (n=12)`, `default`."""

    token_source: str = ""
    """What counted the tokens; empty where there are none."""

    unknown: tuple[str, ...] = ()
    """What is not known, or only by its upper limit, and why."""


class StepEstimate(Forecast):
    """What one step will probably take, with its checks and all its elements."""

    step: str


class RoleEstimate(Forecast):
    """What the rest takes: criteria of the goal, critic, a second draft, repairs."""

    role: str
    when: Literal["planning", "execution"] = "execution"
    """Seconds of planning are in no limit, and in no sum."""


class PlanEstimate(Frozen):
    """What the whole plan will probably take: the sum over its steps and its overhead."""

    steps: tuple[StepEstimate, ...]
    overhead: tuple[RoleEstimate, ...] = ()
    seconds: Range
    """Along the critical path, under the concurrency limits; people's time is not in it."""

    tokens: Range
    tokens_in: Range = NONE
    tokens_out: Range = NONE
    usd_p50: Decimal | None
    usd_p95: Decimal | None
    calls: Count
    """Tool and model calls."""

    model_calls: Count = NONE
    spent_usd: Decimal | None = Decimal(0)
    """Already paid for, planning above all; None: unknown, because a price is."""

    spent_tokens: int = 0
    price_table: str = ""
    price_as_of: date | None = None
    """The day of the price table; None: it does not say."""

    price_is_old: bool = False
    """True where the table is older than 180 days."""

    token_source: str = ""
    """What counted tokens: `o200k_base`, or an estimate that says so."""

    unknown: tuple[str, ...] = ()
    """What is not known of single steps, by step, and why."""

    def after_planning(self, usd: Decimal | None, tokens: int) -> PlanEstimate:
        """Return what is to come once a plan stands at the gate: it was drafted and read.

        Args:
            usd: Spent by now; None: unknown.
            tokens: Used by now.
        """
        gone = [each for each in self.overhead if each.when == "planning"]
        left = [*self.steps, *(each for each in self.overhead if each.when != "planning")]
        less = {
            name: _less(getattr(self, name), [getattr(each, name) for each in gone])
            for name in ("tokens_in", "tokens_out", "calls", "model_calls")
        }
        return self.model_copy(
            update={
                **less,
                "tokens": less["tokens_in"] + less["tokens_out"],
                "usd_p50": _sum([each.usd_p50 for each in left]),
                "usd_p95": _sum([each.usd_p95 for each in left]),
                "overhead": tuple(each for each in self.overhead if each.when != "planning"),
                "spent_usd": usd,
                "spent_tokens": tokens,
            }
        )


def _less(whole: Range, parts: list[Range]) -> Range:
    return Range(
        p50=whole.p50 - sum(each.p50 for each in parts),
        p95=whole.p95 - sum(each.p95 for each in parts),
    )


def _sum(amounts: list[Decimal | None]) -> Decimal | None:
    known = [each for each in amounts if each is not None]
    return sum(known, Decimal(0)) if len(known) == len(amounts) else None
