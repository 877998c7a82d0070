"""Estimate against actual, per step and in all: what a run was said to take, and what it took.

The estimate is that of the version which the first attempt was made of. Calls that checks make to
look at the world are calls; seconds are those in which something was under way, not people's time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

from plangate.budget.calls import money
from plangate.journal.events import ModelCalled
from plangate.journal.progress import AttemptView
from plangate.journal.view import RunView
from plangate.plan.forecast import Forecast, PlanEstimate, Range
from plangate.plan.value.frozen import Json

METRICS = ("seconds", "usd", "tokens", "tokens_in", "tokens_out", "calls")


def cost_of(view: RunView, worked_s: float | None = None) -> dict[str, Json]:
    """Return estimate and actual of a run as JSON, USD as text, null where a price is unknown.

    Args:
        view: The run.
        worked_s: Seconds in which at least one attempt was under way; None: the sum over attempts,
            which is more where steps ran side by side.
    """
    checked = view.promised
    estimate = None if checked is None else checked.estimate
    attempts, asked = list(view.attempts.values()), view.asked
    actual = _actual(attempts, asked, sum(view.looks.values()))
    if worked_s is not None:
        actual["seconds"] = round(worked_s, 4)
    return {
        "version": None if checked is None else checked.version,
        "estimate": None if estimate is None else estimated(estimate),
        "actual": {**actual, "usd": _usd(view.spent_usd)},
        "steps": _steps(view, estimate),
        "roles": _roles(view, estimate),
        "price_table": "" if estimate is None else estimate.price_table,
        "token_source": "" if estimate is None else estimate.token_source,
        "unknown": [] if estimate is None else list(estimate.unknown),
    }


def estimated(given: Forecast | PlanEstimate) -> dict[str, Json]:
    """Return a forecast as JSON."""
    tokens = given.tokens if isinstance(given, PlanEstimate) else given.tokens_in + given.tokens_out
    return {
        "seconds": _range(given.seconds),
        "usd": {"p50": _usd(given.usd_p50), "p95": _usd(given.usd_p95)},
        "tokens": _range(tokens),
        "tokens_in": _range(given.tokens_in),
        "tokens_out": _range(given.tokens_out),
        "calls": _range(given.calls),
    }


def _steps(view: RunView, estimate: PlanEstimate | None) -> list[Json]:
    """Return the steps of the estimate, then those that only a later version had."""
    said = {each.step: each for each in (estimate.steps if estimate else ())}
    tried: dict[str, list[AttemptView]] = {step: [] for step in said}
    for each in view.attempts.values():
        tried.setdefault(each.started.step, []).append(each)
    asked: dict[str, list[ModelCalled]] = {}
    for called in view.asked:
        asked.setdefault(called.step or "", []).append(called)
    return [
        {
            "step": step,
            "estimate": estimated(said[step]) if step in said else None,
            "source": said[step].source if step in said else "not in the plan that was estimated",
            "actual": _actual(attempts, asked.get(step, ()), view.looks[step]),
        }
        for step, attempts in tried.items()
    ]


def _roles(view: RunView, estimate: PlanEstimate | None) -> list[Json]:
    said = {each.role: each for each in (estimate.overhead if estimate else ())}
    asked: dict[str, list[ModelCalled]] = {}
    for called in view.asked:
        if called.step is None:
            asked.setdefault(called.role, []).append(called)
    looks = {"goal checks": view.looks["goal"], "reread": view.looks["reread"]}
    return [
        {
            "role": role,
            "estimate": estimated(said[role]) if role in said else None,
            "source": said[role].source if role in said else "",
            "actual": None  # of repairs, which are counted with their steps
            if role == "repair"
            else _actual((), asked.get(role, ()), looks.get(role, 0)),
        }
        for role in dict.fromkeys((*said, *asked))
    ]


def _actual(
    attempts: Sequence[AttemptView], asked: Sequence[ModelCalled], looks: int
) -> dict[str, Json]:
    tools = [each for each in attempts if is_tool(each)]
    ended = [each.ended for each in attempts if each.ended is not None]
    sent, came = sum(c.input_tokens for c in asked), sum(c.output_tokens for c in asked)
    latency = [each.latency_s for each in ended] or [called.latency_s for called in asked]
    costs: Iterable[Decimal | None] = [*(e.usd for e in ended), *(c.usd for c in asked)]
    return {
        "seconds": round(sum(latency), 4),
        "usd": _usd(money(costs)),
        "tokens": sent + came,
        "tokens_in": sent,
        "tokens_out": came,
        "calls": len(tools) + len(asked) + looks,
    }


def is_tool(attempt: AttemptView) -> bool:
    """True of a try that calls a tool; what a model was asked is recorded by itself."""
    capability = attempt.started.capability
    return "@" in capability and not capability.startswith("model:")


def held(cost: Mapping[str, Json]) -> dict[str, bool | None]:
    """Return for each metric whether the actual stayed within the p95; None: one is unknown."""
    said, actual = cost["estimate"], cost["actual"]
    found: dict[str, bool | None] = {}
    for metric in METRICS:
        high = said[metric]["p95"] if isinstance(said, Mapping) else None  # type: ignore[index,call-overload]
        was = actual[metric] if isinstance(actual, Mapping) else None
        known = high is not None and was is not None
        found[metric] = Decimal(str(was)) <= Decimal(str(high)) if known else None
    return found


def _range(given: Range) -> dict[str, Json]:
    return {"p50": round(given.p50, 4), "p95": round(given.p95, 4)}


def _usd(amount: Decimal | None) -> str | None:
    return None if amount is None else f"{amount.normalize():f}"
