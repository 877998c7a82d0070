"""What a plan will probably take, from the contracts of its tools, before anything runs.

A figure that nobody declared is unknown and makes its sum unknown; it is never zero. Figures of a
model or a planner are never used.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from plangate.budget.prices import PriceBook, Usage, usage_cost
from plangate.plan.facts import PlanEstimate, Range, StepEstimate
from plangate.plan.schedule import critical_path
from plangate.plan.value.each import times

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plangate.plan.catalog import Catalog
    from plangate.plan.value.plan import Plan
    from plangate.plan.value.step import Check, Step

P95_FACTOR = 2
"""How much more the high end takes than the middle.

A contract states one figure. Twice that leaves room for one retry or one slow answer, and is the
point from which a step counts as overdue (design: elapsed over 2 x the estimate is a trigger).
"""

JUDGE_INPUT_TOKENS = 1_000
"""Of a judge's prompt (L3), beside the result that it reads."""

JUDGE_OUTPUT_TOKENS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """One expected call of a tool or a model."""

    seconds: float
    tokens_in: int = 0
    tokens_out: int = 0
    usd_p50: Decimal | None
    usd_p95: Decimal | None


def estimate(
    plan: Plan,
    catalog: Catalog,
    *,
    book: PriceBook,
    model: str | None = None,
    spent_usd: Decimal | None = Decimal(0),
    spent_tokens: int = 0,
) -> PlanEstimate:
    """Estimate a plan.

    Args:
        plan: The plan.
        catalog: The contracts; a tool that is not in it has a price that nobody knows.
        book: Prices of models.
        model: The model that judges (L3), or None: such checks make no call.
        spent_usd: Paid for so far, planning above all; None: unknown.
        spent_tokens: Used so far.

    Returns:
        Totals of what is still to come; what is spent stands beside them. Seconds are those of
        the longest path, or of the busiest tool where its concurrency is the tighter limit; the
        time that people take to answer is not in them.
    """
    reader = _Reader(catalog, book, model)
    calls = {step.id: reader.calls_of(step) for step in plan.steps}
    at_goal = [call for check in plan.success_criteria for call in reader.check(check, 0)]
    every = [call for each in calls.values() for call in each] + at_goal
    seconds = _longest(plan, catalog, calls) + sum(call.seconds for call in at_goal)
    tokens = sum(call.tokens_in + call.tokens_out for call in every)
    return PlanEstimate(
        steps=tuple(_step(step, calls[step.id], catalog) for step in plan.steps),
        seconds=_range(seconds),
        tokens=_range(tokens),
        usd_p50=_sum(call.usd_p50 for call in every),
        usd_p95=_sum(call.usd_p95 for call in every),
        calls=len(every),
        spent_usd=spent_usd,
        spent_tokens=spent_tokens,
        price_table=book.table,
        token_source="tool contracts",  # noqa: S106 - not a password
    )


@dataclass(frozen=True, slots=True)
class _Reader:
    """Turns steps and checks into expected calls."""

    catalog: Catalog
    book: PriceBook
    model: str | None

    def calls_of(self, step: Step) -> list[_Call]:
        spec = self.catalog.tools.get(step.tool or "")
        own = [] if step.kind in ("human", "milestone") else [self._tool(step.tool or "")]
        result_tokens = spec.output_tokens if spec else 0
        checks = [call for check in step.success for call in self.check(check, result_tokens)]
        return (own + checks) * times(step)

    def check(self, check: Check, result_tokens: int) -> list[_Call]:
        calls = [] if check.tool is None else [self._tool(check.tool)]
        if check.level == "L3" and self.model is not None:
            calls.append(self._judge(self.model, result_tokens))
        return calls

    def _tool(self, name: str) -> _Call:
        spec = self.catalog.tools.get(name)
        if spec is None:
            return _Call(seconds=0.0, usd_p50=None, usd_p95=None)
        return _Call(seconds=spec.seconds, usd_p50=spec.usd, usd_p95=spec.usd)

    def _judge(self, model: str, result_tokens: int) -> _Call:
        asks, answers = JUDGE_INPUT_TOKENS + result_tokens, JUDGE_OUTPUT_TOKENS
        p50 = Usage(input_tokens=asks, output_tokens=answers)
        p95 = Usage(input_tokens=asks * P95_FACTOR, output_tokens=answers * P95_FACTOR)
        return _Call(
            seconds=answers / 50,  # 50 tokens a second, a slow hosted model
            tokens_in=asks,
            tokens_out=answers,
            usd_p50=usage_cost(p50, model, self.book),
            usd_p95=usage_cost(p95, model, self.book),
        )


def _step(step: Step, calls: list[_Call], catalog: Catalog) -> StepEstimate:
    return StepEstimate(
        step=step.id,
        seconds=_range(sum(call.seconds for call in calls)),
        tokens_in=_range(sum(call.tokens_in for call in calls)),
        tokens_out=_range(sum(call.tokens_out for call in calls)),
        usd_p50=_sum(call.usd_p50 for call in calls),
        usd_p95=_sum(call.usd_p95 for call in calls),
        source="contract" if step.tool in catalog.tools else "default",
    )


def _longest(plan: Plan, catalog: Catalog, calls: dict[str, list[_Call]]) -> float:
    seconds = {step: sum(call.seconds for call in made) for step, made in calls.items()}
    busy: dict[str, float] = {}
    for step in plan.steps:
        spec = catalog.tools.get(step.tool or "")
        if spec is not None and spec.concurrency is not None:
            took = spec.seconds * times(step) / spec.concurrency
            busy[spec.name] = busy.get(spec.name, 0.0) + took
    return max(critical_path(plan, seconds).seconds, *busy.values(), 0.0)


def _range(p50: float) -> Range:
    return Range(p50=p50, p95=p50 * P95_FACTOR)


def _sum(amounts: Iterable[Decimal | None]) -> Decimal | None:
    total = Decimal(0)
    for amount in amounts:
        if amount is None:
            return None
        total += amount
    return total
