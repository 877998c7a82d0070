"""How much a plan is worth planning: a trivial question must not pay for what a risky one needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plangate.plan.contract import contract_of

if TYPE_CHECKING:
    from plangate.plan.catalog import Catalog
    from plangate.plan.value.plan import Plan


def is_direct(plan: Plan, catalog: Catalog) -> bool:
    """True for one read of one tool that stays inside: there is nothing to doubt and no order.

    It passes the layers like any plan, is priced, recorded and checked; no second model reads it.
    """
    if len(plan.steps) != 1:
        return False
    [step] = plan.steps
    spec = contract_of(step, catalog)
    if step.kind != "tool" or spec is None or step.for_each is not None:
        return False
    return not spec.effect.acts and not spec.external
