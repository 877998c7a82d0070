"""What to do about a plan that takes too much: which steps are dear, and the three ways out."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from decimal import Decimal

    from plangate.plan.forecast import PlanEstimate

MOST = 3
"""Steps that are named."""


class Dear(NamedTuple):
    """A step, and its part of the whole at the high end."""

    step: str
    usd: Decimal | None
    """None: its price is unknown, which makes it the dearest that there is."""

    tokens: float
    seconds: float
    share: float | None
    """Of the plan's USD, from 0 to 1; None where that is unknown or zero."""


def dearest(estimate: PlanEstimate, most: int = MOST) -> tuple[Dear, ...]:
    """Return the dearest steps first: by money, then by tokens, then by time."""
    whole = estimate.usd_p95
    every = (
        Dear(
            each.step,
            each.usd_p95,
            each.tokens_in.p95 + each.tokens_out.p95,
            each.seconds.p95,
            None if not whole or each.usd_p95 is None else float(each.usd_p95 / whole),
        )
        for each in estimate.steps
    )
    ranked = sorted(every, key=_rank, reverse=True)
    return tuple(each for each in ranked[:most] if each.usd is None or any(_rank(each)))


def cuts(estimate: PlanEstimate) -> tuple[str, ...]:
    """Return what to do, in words: what to cut, how to split, what to run in the background."""
    dear = ", ".join(_said(each) for each in dearest(estimate))
    return (
        f"Cut: the dearest steps are {dear}." if dear else "Cut steps.",
        "Split: make a plan of each part, with a budget of its own.",
        "Run it in the background with a higher limit, where nobody waits for it.",
    )


def _rank(each: Dear) -> tuple[bool, Decimal | int, float, float]:
    return each.usd is None, each.usd or 0, each.tokens, each.seconds


def _said(each: Dear) -> str:
    if each.usd is None:
        return f"{each.step} (price unknown)"
    share = "" if each.share is None else f", {each.share:.0%}"
    if each.usd:
        return f"{each.step} ({each.usd:f} USD{share})"
    return f"{each.step} ({each.tokens:.0f} tokens, {each.seconds:.1f} s)"
