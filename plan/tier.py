"""How much a person must see of a plan before it runs, and why.

auto: nothing. selective: the marked steps. full: the whole plan. Any single reason is enough for a
tier, the highest one counts, and what cannot be decided counts as a risk. A plan that only reads
may be auto at once; a plan with effects only after its type succeeded before.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

from plangate.plan.catalog import Effect
from plangate.plan.contract import contract_of
from plangate.plan.policy_rules import Tier
from plangate.plan.value.each import times
from plangate.plan.value.frozen import Frozen
from plangate.plan.value.refs import Ref

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plangate.plan.catalog import Catalog
    from plangate.plan.facts import Facts
    from plangate.plan.policy_rules import Threshold
    from plangate.plan.value.frozen import Json
    from plangate.plan.value.plan import Plan
    from plangate.plan.value.step import Step

_RANK: dict[Tier, int] = {"auto": 0, "selective": 1, "full": 2}
_HARMLESS = frozenset({"human", "model"})
"""Kinds of step that call no tool: a question, and a model call without tools."""


class Tiering(Frozen):
    """The tier of a plan."""

    tier: Tier
    reasons: tuple[str, ...]
    """What made it so, in words for a person; for `auto` why that is safe."""

    confirm: tuple[str, ...] = ()
    """Steps that the person must confirm, in order of the plan: all of them for `full`."""


class Risk(NamedTuple):
    """One reason to ask a person."""

    tier: Tier
    why: str
    steps: tuple[str, ...]


def tier_of(plan: Plan, facts: Facts) -> Tiering:
    """Compute the tier from contracts, policy, estimate and history; never from the plan's claims.

    Args:
        plan: The plan.
        facts: Without an estimate the contracts' own prices are added up.
    """
    risks = [*_step_risks(plan, facts), *_plan_risks(plan, facts)]
    risks = [risk for risk in risks if risk.tier != "auto"]
    if not risks:
        return Tiering(tier="auto", reasons=(_why_auto(plan, facts),))
    tier = max((risk.tier for risk in risks), key=_RANK.__getitem__)
    named = {step for risk in risks for step in risk.steps}
    return Tiering(
        tier=tier,
        reasons=tuple(dict.fromkeys(risk.why for risk in risks)),
        confirm=tuple(s.id for s in plan.steps if tier == "full" or s.id in named),
    )


def acting(plan: Plan, catalog: Catalog) -> tuple[Step, ...]:
    """Return the steps that the outside world will, or may, remember."""
    return tuple(step for step in plan.steps if may_act(step, catalog))


def may_act(step: Step, catalog: Catalog | None) -> bool:
    """True unless the step is known to change nothing; a missing contract is the worst case."""
    if step.kind in _HARMLESS:
        return False
    spec = None if catalog is None or step.tool is None else catalog.tools.get(step.tool)
    return spec is None or spec.effect.acts


def cost_of(plan: Plan, facts: Facts) -> Decimal | None:
    """Return the p95 cost of a plan in USD, by the estimate or else by contracts; None: unknown."""
    if facts.estimate is not None:
        return facts.estimate.usd_p95
    prices = list(_prices(plan, facts).values())
    known = [price for price in prices if price is not None]
    return sum(known, Decimal(0)) if len(known) == len(prices) else None


def _step_risks(plan: Plan, facts: Facts) -> Iterator[Risk]:
    for step in plan.steps:
        for why in _signals(step, facts.catalog):
            yield Risk("selective", f"{step.id} {why}", (step.id,))
    for threshold in facts.policy.thresholds:
        for step in plan.steps:
            if step.tool == threshold.tool and (why := over_limit(threshold, step, plan, facts)):
                yield Risk(threshold.tier, f"{step.id} {why}", (step.id,))


def _signals(step: Step, catalog: Catalog) -> Iterator[str]:
    if step.approval == "always":
        yield "asks for approval"
    if step.kind in _HARMLESS:
        return
    spec = catalog.tools.get(step.tool or "")
    if step.autonomy is not None:
        tools = ", ".join(step.autonomy.tools)
        yield f"lets a model choose among {tools}, {step.autonomy.max_steps} times at most"
    elif spec is None:
        yield f"runs {step.tool or step.kind!r}, whose effects are not known"
    elif spec.effect is Effect.IRREVERSIBLE:
        yield f"runs {spec.name}, which cannot be undone"
    elif spec.effect.acts and spec.external:
        yield f"runs {spec.name}, which acts outside this organisation"
    elif not spec.reversible:
        yield f"runs {spec.name}, for which no undo is declared"


def over_limit(threshold: Threshold, step: Step, plan: Plan, facts: Facts) -> str:
    """Return how a planned call passes a threshold, in words; empty: it is surely within it."""
    arg, reason = threshold.arg, f" ({threshold.reason})" if threshold.reason else ""
    value = _amount(step.args.get(arg, _default(arg, step, facts.catalog)), plan)
    if value is None:
        return f"has {arg} with a value not known yet, limit {threshold.over}{reason}"
    return f"has {arg} {value}, over {threshold.over}{reason}" if value > threshold.over else ""


def _default(arg: str, step: Step, catalog: Catalog) -> Json:
    spec = catalog.tools.get(step.tool or "")
    known = spec.params.get("properties") if spec else None
    schema = known.get(arg) if isinstance(known, Mapping) else None
    return schema.get("default") if isinstance(schema, Mapping) else None


def _amount(value: Json, plan: Plan) -> float | None:
    ref = Ref.parse(value)
    if ref is not None and ref.source == "user":
        try:
            value = ref.resolve({"inputs": plan.inputs})
        except KeyError:
            return None
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if is_number else None  # type: ignore[return-value]


def _plan_risks(plan: Plan, facts: Facts) -> Iterator[Risk]:
    tiers = facts.policy.tiers
    acts = acting(plan, facts.catalog)
    ids = tuple(step.id for step in acts)
    if acts and not facts.history.verified.get(plan.task_type, 0):
        why = f"no verified run of type {plan.task_type!r} yet"
        yield Risk(tiers.first_time, why, ids)
    if acts and facts.turned_down:
        yield Risk("selective", f"{facts.turned_down} asked for it instead of another plan", ids)
    outside = {step.tool or step.kind for step in acts if _is_external(step, facts.catalog)}
    if len(outside) >= tiers.full_external:
        yield Risk("full", f"acts in several outside systems: {', '.join(sorted(outside))}", ids)
    if tiers.auto_usd is not None:
        yield from _cost_risks(plan, facts, tiers.auto_usd)


def _is_external(step: Step, catalog: Catalog) -> bool:
    spec = contract_of(step, catalog)
    return spec is None or spec.external


def _cost_risks(plan: Plan, facts: Facts, limit: Decimal) -> Iterator[Risk]:
    prices = _prices(plan, facts)
    known = [price for price in prices.values() if price is not None]
    total = facts.estimate.usd_p95 if facts.estimate else sum(known, Decimal(0))
    unknown = tuple(step for step, price in prices.items() if price is None)
    paid = tuple(step for step, price in prices.items() if price)
    if unknown or total is None:
        yield Risk("selective", "the cost is not known", unknown or tuple(prices))
    elif total > limit:
        why = f"may cost {total:f} USD, over {limit:f}"
        yield Risk("selective", why, paid or tuple(prices))


def _prices(plan: Plan, facts: Facts) -> dict[str, Decimal | None]:
    if facts.estimate is not None:
        return {each.step: each.usd_p95 for each in facts.estimate.steps}
    prices: dict[str, Decimal | None] = {}
    for step in plan.steps:
        spec = facts.catalog.tools.get(step.tool or "")
        price = spec.usd if spec else Decimal(0) if step.kind == "human" else None
        prices[step.id] = None if price is None else price * times(step)
    return prices


def _why_auto(plan: Plan, facts: Facts) -> str:
    if not acting(plan, facts.catalog):
        return "the plan only reads"
    count = facts.history.verified.get(plan.task_type, 0)
    return f"every effect can be undone, under all limits; {count} verified runs of this type"
