"""What a step would take if it were cut once finer or once coarser: twice, or half, the calls.

An answer has to be written in any case; what a cut changes is how often the prompt is sent, and how
many calls are paid. Only the dearest steps are looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from plangate.budget.calls import added, asked
from plangate.budget.estimate import Reader
from plangate.plan.cuts import dearest
from plangate.plan.forecast import ONCE, Range
from plangate.plan.preview import Alternative

if TYPE_CHECKING:
    from collections.abc import Iterator
    from decimal import Decimal

    from plangate.budget.estimate import Known
    from plangate.plan.forecast import PlanEstimate
    from plangate.plan.value.plan import Plan
    from plangate.plan.value.step import Step


class _Cut(NamedTuple):
    """A number of calls, and how many elements each one does."""

    says: str
    calls: Range


def alternatives(plan: Plan, known: Known, estimate: PlanEstimate) -> tuple[Alternative, ...]:
    """Return what the dearest steps would take, cut otherwise.

    A step can be cut where it runs once an element (`for_each`), or where a model writes a list.
    """
    reader = Reader(plan, known)
    return tuple(
        found
        for each in dearest(estimate)
        if each.step in plan.by_id
        for found in _of(plan.by_id[each.step], reader)
    )


def _of(step: Step, reader: Reader) -> Iterator[Alternative]:
    items, _ = reader.inputs.items(step)
    for cut in _cuts(step, items):
        if step.kind == "model":
            found = _model(step, cut, items, reader)
        else:
            found = _tool(step, cut, reader)
        if found is not None:
            yield found


def _cuts(step: Step, items: Range) -> Iterator[_Cut]:
    if step.for_each is not None and items.p95 > 1:
        half = Range(p50=float(ceil(items.p50 / 2)), p95=float(ceil(items.p95 / 2)))
        yield _Cut("coarser: two elements a call", half)
        yield _Cut("finer: half an element a call", items.times(Range(p50=2, p95=2)))
    elif step.kind == "model" and (listed := _list_of(step)) is not None:
        name, most = listed
        if most > 1:
            yield _Cut(f"finer: half of {name} a call", Range(p50=2, p95=2))
            yield _Cut(f"finest: one of {name} a call", Range(p50=most, p95=most))


def _list_of(step: Step) -> tuple[str, float] | None:
    """Return the first list of a model's answer, and how many items it may have."""
    properties = (step.output or {}).get("properties")
    for name, schema in properties.items() if isinstance(properties, Mapping) else ():
        most = schema.get("maxItems") if isinstance(schema, Mapping) else None
        if isinstance(most, int) and not isinstance(most, bool):
            return name, float(most)
    return None


def _model(step: Step, cut: _Cut, items: Range, reader: Reader) -> Alternative | None:
    """Price the calls: the prompt once a call; an element, and its answer, once in any case."""
    role, prompt, said, size = reader.question(step)
    if role is None:
        return None
    sent, came = said.tokens, size.range
    per_call = sent.times(items) if step.for_each is not None else sent.times(cut.calls)
    whole_in, whole_out = prompt.times(cut.calls) + per_call, came.times(items)
    share = Range(p50=1 / cut.calls.p50, p95=1 / cut.calls.p95)
    one = asked(role.model, reader.known.book, whole_in.times(share), whole_out.times(share))
    sums = added([one.times(cut.calls)])
    return _alternative(step, cut, sums["usd_p50"], sums["usd_p95"], sums["seconds"])


def _tool(step: Step, cut: _Cut, reader: Reader) -> Alternative:
    sums = added(reader.parts(step, ONCE))
    costs = [
        None if usd is None else usd * ceil(count)
        for usd, count in (
            (sums["usd_p50"], cut.calls.p50),
            (sums["usd_p95"], cut.calls.p95),
        )
    ]
    return _alternative(step, cut, costs[0], costs[1], sums["seconds"].times(cut.calls))


def _alternative(
    step: Step, cut: _Cut, usd_p50: Decimal | None, usd_p95: Decimal | None, seconds: Range
) -> Alternative:
    return Alternative(
        step=step.id,
        says=cut.says,
        calls=cut.calls,
        usd_p50=usd_p50,
        usd_p95=usd_p95,
        seconds=seconds,
    )
