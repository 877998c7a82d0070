"""A step that took far more than was estimated has the rest of the plan weighed again. Pure.

What is left is taken at the ratio seen so far, and compared with what the limits leave: it goes on,
it goes on with a note to plan less, a person is asked, or it stops where nothing is left. Each step
fires once, and a person is asked once for each version of a plan: after that the limits decide.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from plangate.journal.spending import Reestimated
from plangate.plan.facts import Range
from plangate.plan.schedule import critical_path
from plangate.plan.spent import Spent

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plangate.engine.bench import Bench
    from plangate.journal.view import RunView
    from plangate.plan.facts import StepEstimate

Word: TypeAlias = Literal["continue", "compress", "ask", "stop"]
Trigger: TypeAlias = Literal["overdue", "over_plan"]

OVERDUE = 2
"""How often its estimated seconds a step may take."""

LEAST_S = 1.0
"""Seconds over the estimate below which nothing is worth weighing."""

_ENDED = ("done", "failed", "skipped", "cancelled", "unknown", "handed_over")


class Need(NamedTuple):
    """What is left to do against one limit."""

    limit: str
    p50: float
    p95: float
    left: float
    unit: str


def weigh(bench: Bench, step: str) -> Reestimated | None:
    """Weigh the rest of the plan after a step ended; None where it took what was expected."""
    view, priced = bench.session.view, {each.step: each for each in bench.estimate.steps}
    trigger = _trigger(view, step, priced.get(step), timed=bench.plan.by_id[step].for_each is None)
    if trigger is None:
        return None
    ended = [s for s in priced if (seen := view.steps.get(s)) and seen.status in _ENDED]
    time_ratio, usd_ratio = _time_ratio(view, ended, priced), _usd_ratio(view, ended, priced)
    rest = [each for name, each in priced.items() if name not in ended]
    seconds = _seconds(bench, rest, time_ratio)
    usd = (
        _times(_sum(each.usd_p50 for each in rest), usd_ratio),
        _times(_sum(each.usd_p95 for each in rest), usd_ratio),
    )
    needs = list(_needs(bench, seconds, usd)) if rest else []
    word, says = decide(needs, is_asked=_is_asked(view, bench.plan.version))
    planning = _mean(view.planning_usd)
    return Reestimated(
        trigger=trigger,
        step=step,
        plan_version=bench.plan.version,
        time_ratio=round(time_ratio, 3),
        usd_ratio=usd_ratio,
        seconds=seconds,
        usd_p50=usd[0],
        usd_p95=usd[1],
        left={each.limit: f"{each.left:g} {each.unit}" for each in needs},
        decision=word,
        says=says,
        continue_usd=_per_success(view, usd[0]),
        repair_usd=None if planning is None or usd[0] is None else planning + usd[0],
    )


def decide(needs: list[Need], *, is_asked: bool = False) -> tuple[Word, str]:
    """Say what follows from what is left to do and what the limits leave of it, and why.

    Args:
        needs: One for each limit that is set and whose need is known.
        is_asked: True if a person was asked already, and let it go on.
    """
    gone = [each for each in needs if each.left <= 0 < each.p50]
    if gone:
        return "stop", f"nothing is left of {_said(gone[0])}"
    beyond = [each for each in needs if each.p50 > each.left]
    if beyond and not is_asked:
        return "ask", f"what is left will probably pass {_said(beyond[0])}"
    near = [each for each in needs if each.p95 > each.left]
    if near:
        return "compress", f"what is left may pass {_said(near[0])}"
    return "continue", "what is left fits the limits" if needs else "no limit depends on it"


def _said(need: Need) -> str:
    figures = f"{need.p50:.4g} to {need.p95:.4g} {need.unit} needed, {need.left:.4g} left"
    return f"{need.limit}: {figures}"


def _trigger(
    view: RunView, step: str, priced: StepEstimate | None, *, timed: bool
) -> Trigger | None:
    """Name what fires; the seconds of a list's elements say nothing, as they run side by side."""
    if priced is None or any(each.step == step for each in view.reestimated):
        return None
    took = view.by_step.get(step, Spent())
    expected = priced.seconds.p50
    if timed and expected > 0 and took.seconds > max(OVERDUE * expected, expected + LEAST_S):
        return "overdue"
    known = took.usd is not None and priced.usd_p95 is not None
    return "over_plan" if known and took.usd > priced.usd_p95 else None  # type: ignore[operator]


def _is_asked(view: RunView, version: int) -> bool:
    return any(e.decision == "ask" and e.plan_version == version for e in view.reestimated)


def _time_ratio(view: RunView, ended: list[str], priced: dict[str, StepEstimate]) -> float:
    expected = sum(priced[step].seconds.p50 for step in ended)
    took = sum(view.by_step.get(step, Spent()).seconds for step in ended)
    return took / expected if expected > 0 else 1.0


def _usd_ratio(view: RunView, ended: list[str], priced: dict[str, StepEstimate]) -> Decimal | None:
    expected = _sum(priced[step].usd_p50 for step in ended)
    took = _sum(view.by_step.get(step, Spent()).usd for step in ended)
    if expected is None or took is None:
        return None
    return round(took / expected, 3) if expected else Decimal(1)


def _seconds(bench: Bench, rest: list[StepEstimate], ratio: float) -> Range:
    """Along the longest path of what is left."""
    none = dict.fromkeys(bench.plan.by_id, 0.0)
    p50 = critical_path(bench.plan, none | {each.step: each.seconds.p50 for each in rest})
    p95 = critical_path(bench.plan, none | {each.step: each.seconds.p95 for each in rest})
    return Range(p50=round(p50.seconds * ratio, 3), p95=round(p95.seconds * ratio, 3))


def _needs(
    bench: Bench, seconds: Range, usd: tuple[Decimal | None, Decimal | None]
) -> Iterable[Need]:
    limits, spent = bench.meter.limits, bench.meter.committed.usd
    if limits.max_seconds is not None:
        left = limits.max_seconds - bench.elapsed_s()
        yield Need("max_seconds", seconds.p50, seconds.p95, left, "s")
    if limits.deadline is not None and limits.deadline.tzinfo:
        left = (limits.deadline - bench.now()).total_seconds()
        yield Need("deadline", seconds.p50, seconds.p95, left, "s")
    if limits.max_usd is not None and spent is not None and usd[0] is not None:
        p95 = usd[0] if usd[1] is None else usd[1]
        yield Need("max_usd", float(usd[0]), float(p95), float(limits.max_usd - spent), "USD")


def _per_success(view: RunView, usd: Decimal | None) -> Decimal | None:
    """Expected cost of what is left where each try succeeds as often as they did so far."""
    ends = [each.ended.status for each in view.attempts.values() if each.ended is not None]
    good = ends.count("succeeded")
    return None if usd is None or not good else round(usd * len(ends) / good, 6)


def _times(usd: Decimal | None, ratio: Decimal | None) -> Decimal | None:
    return None if usd is None or ratio is None else round(usd * ratio, 6)


def _mean(amounts: list[Decimal | None]) -> Decimal | None:
    total = _sum(amounts)
    return None if total is None else total / max(1, len(amounts))


def _sum(amounts: Iterable[Decimal | None]) -> Decimal | None:
    total = Decimal(0)
    for amount in amounts:
        if amount is None:
            return None
        total += amount
    return total
