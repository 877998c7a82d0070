"""What a plan takes for true is looked at whenever a step has ended: verified, or invalidated.

Nobody tells the status; a rule over results does. What the rule cannot tell yet stays open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plangate.engine.triggers import Halt
from plangate.journal.assumed import AssumptionSettled
from plangate.plan.outcome import OVER
from plangate.plan.shape.tokens import steps_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from plangate.engine.bench import Bench
    from plangate.plan.value.plan import Assumption
    from plangate.plan.value.step import Step

KIND = "assumption"
"""Of the trigger; its code is `assumption:<id>`, which a repair rule can name."""


def settle_assumptions(bench: Bench) -> Halt | None:
    """Record each assumption that can be told by now; say why to stop where one proved false."""
    halt = None
    for each in bench.plan.assumptions:
        is_told = each.status != "unverified" or each.id in bench.session.view.assumed
        if each.rule is None or is_told:
            continue
        holds = bench.ask(each.rule, step=None)
        if holds is not None:
            bench.session.emit(_settled(bench, each, holds=holds))
        if holds is False:
            halt = halt or _halt(bench, each)
    return halt


def disproved(bench: Bench, step: Step) -> Assumption | None:
    """Return an assumption that a step rests on and that proved false; None: there is none."""
    assumed = bench.session.view.assumed
    return next(
        (
            each
            for each in bench.plan.assumptions
            if step.id in each.invalidates and _status(assumed, each) == "invalidated"
        ),
        None,
    )


def _status(assumed: Mapping[str, AssumptionSettled], each: Assumption) -> str:
    return assumed[each.id].status if each.id in assumed else each.status


def code_of(assumption: Assumption) -> str:
    """Return the code of its trigger."""
    return f"{KIND}:{assumption.id}"


def _settled(bench: Bench, each: Assumption, *, holds: bool) -> AssumptionSettled:
    return AssumptionSettled(
        assumption=each.id,
        status="verified" if holds else "invalidated",
        plan_version=bench.plan.version,
        says=each.statement,
        rule=each.rule or "",
        evidence=tuple(_read(bench, each)),
        stops=() if holds else tuple(_left(bench, each)),
    )


def _read(bench: Bench, each: Assumption) -> Iterator[str]:
    view = bench.session.view
    for step in sorted(steps_in(each.rule or "")):
        seen = view.steps.get(step)
        yield from (f"obs://{attempt}" for attempt in (seen.attempts[-1:] if seen else ()))


def _left(bench: Bench, each: Assumption) -> Iterator[str]:
    steps = bench.session.view.steps
    return (s for s in each.invalidates if s not in steps or steps[s].status not in OVER)


def _halt(bench: Bench, each: Assumption) -> Halt:
    left = list(_left(bench, each)) or list(each.invalidates)
    says = f"it was assumed that this is so, and it is not: {each.statement}"
    return Halt(
        reason="trigger", kind=KIND, step=left[0] if left else "", code=code_of(each), says=says
    )
