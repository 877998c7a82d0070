"""Reads that are made again between a person's yes and an irreversible act (`engine/reread.py`).

In the middle these are the reads that end before somebody is asked on the way to the act. At the
high end all are whose evidence has a version: the approval of the plan may come that late.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plangate.budget.calls import Calls, exact, money
from plangate.plan.catalog import Effect
from plangate.plan.forecast import Range
from plangate.plan.joins import waits
from plangate.plan.schedule import ancestor_bits, order

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plangate.plan.catalog import Catalog, ToolSpec
    from plangate.plan.forecast import StepEstimate
    from plangate.plan.value.plan import Plan


def rereads(
    plan: Plan, catalog: Catalog, steps: Mapping[str, StepEstimate], done: frozenset[str]
) -> Calls | None:
    """Return the calls that reading again will take; None where nothing needs it.

    Args:
        plan: The plan.
        catalog: The contracts.
        steps: The estimates; a read takes what it took the first time, on the average of all.
        done: Steps that have ended; what they did is over.
    """
    specs = {step.id: catalog.tools.get(step.tool or "") for step in plan.steps}
    acts = [step for step, spec in specs.items() if _acts(spec) and step not in done]
    reads = [step for step, spec in specs.items() if _has_version(spec)]
    if not acts or not reads:
        return None
    ranked = order(plan)
    position = {step: at for at, step in enumerate(ranked)}
    bits, asked = ancestor_bits(plan, position), _before_a_question(plan, position)
    mask = sum(1 << position[read] for read in reads if read in position)
    low = sum((asked.get(act, 0) & mask).bit_count() for act in acts)
    high = sum((bits.get(act, 0) & mask).bit_count() for act in acts)
    return _calls(Range(p50=low, p95=high), [steps[read] for read in reads if read in steps])


def _calls(count: Range, reads: list[StepEstimate]) -> Calls | None:
    if not count.p95 or not reads:
        return None
    share = 1 / len(reads)
    seconds = Range(
        p50=sum(each.seconds.p50 for each in reads) * share,
        p95=sum(each.seconds.p95 for each in reads) * share,
    )
    usd = money(each.usd_p95 for each in reads)
    each = None if usd is None else usd / len(reads)
    return Calls(
        seconds=seconds.times(count),
        usd_p50=None if each is None else each * exact(count.p50),
        usd_p95=None if each is None else each * exact(count.p95),
        calls=count,
        sources=("contract",),
    )


def _before_a_question(plan: Plan, position: Mapping[str, int]) -> dict[str, int]:
    """Return, for each step, the steps that settle before a person is asked on the way to it."""
    before = ancestor_bits(plan, position)
    found: dict[str, int] = {}
    needs = waits(plan)
    for name in position:
        gathered = 0
        for need in needs[name]:
            if need in position:
                gathered |= found.get(need, 0)
                gathered |= before[need] if plan.by_id[need].kind == "human" else 0
        found[name] = gathered
    return found


def _acts(spec: ToolSpec | None) -> bool:
    return spec is not None and spec.effect is Effect.IRREVERSIBLE


def _has_version(spec: ToolSpec | None) -> bool:
    if spec is None or spec.effect.acts or spec.validity_s is not None:
        return False
    return any("?version=" in each for each in spec.evidence)
