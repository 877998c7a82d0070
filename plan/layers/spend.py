"""Layer 6: the plan fits its limits at the high end of the estimate, or says what is unknown."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from plangate.plan.codes import issue
from plangate.plan.contract import RESERVED
from plangate.plan.cuts import cuts
from plangate.plan.layers.ground import Ground

if TYPE_CHECKING:
    from collections.abc import Iterator
    from decimal import Decimal

    from plangate.plan.facts import Facts
    from plangate.plan.issue import Issue
    from plangate.plan.layers.ground import LayerCheck
    from plangate.plan.value.plan import Plan


def money(ground: Ground) -> Iterator[Issue]:
    """The high estimate, with what planning cost already, is within the limit."""
    estimate, limit = ground.facts.estimate, _least(ground, "max_usd")
    if estimate is None or limit is None:
        return
    if estimate.usd_p95 is None or estimate.spent_usd is None:
        unpriced = [each.step for each in estimate.steps if each.usd_p95 is None]
        if unpriced and set(unpriced) <= _without_tool(ground):
            return  # layer 1 or 3 has said what is wrong; without that the price may be known
        of = f" of {', '.join(unpriced[:5])}" if unpriced else ""
        says = f"the limit is {limit} USD, and the price{of} is unknown"
        yield issue("unknown_price", says, step=unpriced[0] if unpriced else None)
        return
    total = estimate.usd_p95 + estimate.spent_usd
    if total > limit:
        says = f"will cost up to {total} USD (estimate, p95); the limit is {limit}"
        yield issue("over_usd", says, field="budget.max_usd", hint=_cut(ground))


def time(ground: Ground) -> Iterator[Issue]:
    """The critical path, at the high end, is within the limit and before the deadline."""
    estimate, limit = ground.facts.estimate, _least(ground, "max_seconds")
    seconds = 0.0 if estimate is None else estimate.seconds.p95
    if limit is not None and seconds > limit:
        says = f"will take up to {seconds:.1f} s (estimate, p95); the limit is {limit} s"
        hint = "Cut, split, or run it in the background with a higher limit."
        yield issue("over_seconds", says, field="budget.max_seconds", hint=hint)
    end = ground.facts.limits(ground.plan.budget).deadline
    if end is None:
        return
    now = ground.facts.now if end.tzinfo else ground.facts.now.replace(tzinfo=None)
    if now + timedelta(seconds=seconds) > end:
        says = f"will end up to {seconds:.1f} s from now (estimate); the deadline is {end}"
        yield issue("over_deadline", says, field="budget.deadline")


def calls(ground: Ground) -> Iterator[Issue]:
    """There are no more calls than allowed, even if nothing has to be tried twice."""
    tools, models = _made(ground)
    limit = _least(ground, "max_tool_calls")
    if limit is not None and tools > limit:
        says = f"makes {tools:.0f} tool calls; {limit} are allowed"
        yield issue("over_calls", says, field="budget.max_tool_calls")
    limit = _least(ground, "max_model_calls")
    if limit is not None and models > limit:
        says = f"makes {models:.0f} model calls (estimate); {limit} are allowed"
        yield issue("over_calls", says, field="budget.max_model_calls")


def tokens(ground: Ground) -> Iterator[Issue]:
    """The high estimate of tokens, with those of planning, is within the limit."""
    estimate, limit = ground.facts.estimate, _least(ground, "max_tokens")
    if estimate is None or limit is None:
        return
    total = round(estimate.tokens.p95) + estimate.spent_tokens
    if total > limit:
        says = f"will use up to {total} tokens (estimate, p95); the limit is {limit}"
        yield issue("over_tokens", says, field="budget.max_tokens", hint=_cut(ground))


_SURE = ("goal checks", "critic")
"""Parts of the overhead that come in any case."""

CHECKS: tuple[LayerCheck, ...] = (money, time, calls, tokens)


def over_budget(plan: Plan, facts: Facts) -> tuple[Issue, ...]:
    """Return what this layer alone finds: where a plan that was sound is over budget by now."""
    ground = Ground(plan, facts)
    found = (each for check in CHECKS for each in check(ground))
    return tuple(each for each in found if each.severity == "error")


def _least(ground: Ground, limit: str) -> Decimal | float | int | None:
    capped = ground.facts.limits(ground.plan.budget)
    least: Decimal | float | int | None = getattr(capped, limit)
    return least


def _without_tool(ground: Ground) -> set[str | None]:
    """Steps that call, or check with, a tool that nobody knows."""
    bare = {step.id for step in ground.plan.steps if step.kind == "tool" and step.tool is None}
    return {site.id for site in ground.sites if site.spec is None} | bare


def _made(ground: Ground) -> tuple[float, float]:
    """Return calls of tools and of models: with all elements, without repairs or second drafts."""
    estimate = ground.facts.estimate
    tools = sum(site.tool not in RESERVED for site in ground.sites)
    if estimate is None:
        return tools, 0
    rest = (each for each in estimate.overhead if each.role in _SURE)
    parts = (*estimate.steps, *rest)
    models = sum(each.model_calls.p95 for each in parts)
    return max(tools, sum(each.calls.p95 for each in parts) - models), models


def _cut(ground: Ground) -> str:
    estimate = ground.facts.estimate
    return "" if estimate is None else " ".join(cuts(estimate))
