"""What an agent step may take: turns of its model, each with a call of one of its tools at most."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from plangate.budget.calls import P95_FACTOR, Calls
from plangate.plan.forecast import Range

if TYPE_CHECKING:
    from collections.abc import Sequence
    from decimal import Decimal

    from plangate.plan.value.autonomy import Autonomy


def turns_of(envelope: Autonomy) -> Range:
    """Return how often a model is asked: at most as the envelope says, in the middle half of it."""
    return Range(p50=float(-(-envelope.max_steps // 2)), p95=float(envelope.max_steps))


def shown_of(envelope: Autonomy, results: Sequence[float]) -> Range:
    """Return the tokens of what a model is shown of earlier calls, in a turn on the average.

    Args:
        envelope: The bounds.
        results: Expected tokens of one result of each of its tools.
    """
    most, turns = max(results, default=0.0), turns_of(envelope)
    return Range(p50=most * turns.p50 / 2, p95=most * P95_FACTOR * turns.p95 / 2)


def dearest(calls: Sequence[Calls]) -> Calls | None:
    """Return a call that takes the most of all in each respect; None where there are none."""
    if not calls:
        return None
    return Calls(
        seconds=Range(
            p50=max(each.seconds.p50 for each in calls),
            p95=max(each.seconds.p95 for each in calls),
        ),
        usd_p50=_most([each.usd_p50 for each in calls]),
        usd_p95=_most([each.usd_p95 for each in calls]),
        sources=tuple(dict.fromkeys(source for each in calls for source in each.sources)),
        unknown=tuple(dict.fromkeys(says for each in calls for says in each.unknown)),
    )


def bounded(envelope: Autonomy, parts: Sequence[Calls]) -> list[Calls]:
    """Return the calls of an agent step, as often as they may be made, within its bounds.

    Args:
        envelope: The bounds.
        parts: One turn, and one call of its dearest tool.
    """
    left, found = (envelope.max_usd, envelope.max_usd), list[Calls]()
    seconds = Range(p50=envelope.max_seconds, p95=envelope.max_seconds)
    for calls in (each.times(turns_of(envelope)) for each in parts):
        taken = Range(
            p50=min(calls.seconds.p50, seconds.p50), p95=min(calls.seconds.p95, seconds.p95)
        )
        seconds = Range(p50=seconds.p50 - taken.p50, p95=seconds.p95 - taken.p95)
        usd = _least(calls.usd_p50, left[0]), _least(calls.usd_p95, left[1])
        left = _rest(left[0], usd[0]), _rest(left[1], usd[1])
        found.append(replace(calls, seconds=taken, usd_p50=usd[0], usd_p95=usd[1]))
    return found


def _least(cost: Decimal | None, left: Decimal | None) -> Decimal | None:
    """Return a cost, or what is left for it; one that is not known stays so."""
    return cost if cost is None or left is None else min(cost, left)


def _rest(left: Decimal | None, cost: Decimal | None) -> Decimal | None:
    return left if left is None or cost is None else left - cost


def _most(costs: Sequence[Decimal | None]) -> Decimal | None:
    known = [each for each in costs if each is not None]
    return max(known) if len(known) == len(costs) else None
