"""Run all layers over a plan: all report, and none guesses about what another found broken."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from plangate.plan.codes import issue
from plangate.plan.issue import Report
from plangate.plan.layers import (
    agents,
    arguments,
    business,
    completion,
    each,
    effects,
    flow,
    rules,
    schema,
    spend,
    structure,
    tools,
)
from plangate.plan.layers.ground import Ground
from plangate.plan.value.frozen import load_written, parse
from plangate.plan.value.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from plangate.plan.facts import Facts
    from plangate.plan.issue import Issue
    from plangate.plan.layers.ground import LayerCheck
    from plangate.plan.value.frozen import Json

LAYERS: Mapping[int, tuple[LayerCheck, ...]] = {
    1: (*schema.CHECKS, *each.SHAPE, *agents.SHAPE),
    2: structure.CHECKS,
    3: (*tools.CHECKS, *agents.TOOLS, *each.CHECKS, *arguments.CHECKS, *rules.CHECKS),
    4: (*business.CHECKS, *agents.POLICY),
    5: (*effects.CHECKS, *flow.CHECKS, *agents.FLOW),
    6: spend.CHECKS,
    7: completion.CHECKS,
}
_NEED_AN_ORDER = frozenset({4, 5, 6})
_AFTER_READING = tuple(layer for layer in LAYERS if layer > 1)


def validate(plan: Plan, facts: Facts, *, sourced: Collection[Json] = ()) -> Report:
    """Check a plan layer by layer; linear in its steps and edges.

    Args:
        plan: The plan, whoever wrote it.
        facts: What may be known beside it.
        sourced: Literals that need no other source: those of an accepted earlier version, so that
            a repair is not blamed for what its template said.

    Returns:
        Every finding. Layers 4 to 6 are not evaluated where steps have no order (a cycle) or no
        identity (a doubled id); of a plan that is too long only layer 1 is.
    """
    ground = Ground(plan, facts, sourced)
    skipped = _skipped(ground)
    found = [
        each
        for layer, checks in LAYERS.items()
        if layer not in skipped
        for check in checks
        for each in check(ground)
    ]
    is_hashable = not any(each.layer == 1 and each.code == "bad_value" for each in found)
    return Report(
        issues=_in_order(found, plan),
        not_evaluated=tuple(sorted(skipped)),
        unreachable_steps=() if 2 in skipped else structure.unreachable(ground),  # noqa: PLR2004
        missing_verifiers=() if 7 in skipped else completion.missing_verifiers(ground),  # noqa: PLR2004
        content_hash=plan.content_hash if is_hashable else "",
        catalog_hash=facts.catalog.content_hash,
        policy_hash=facts.policy.content_hash,
    )


def _skipped(ground: Ground) -> frozenset[int]:
    if len(ground.plan.steps) > schema.MAX_STEPS:
        return frozenset(_AFTER_READING)
    return _NEED_AN_ORDER if ground.cyclic or ground.ambiguous else frozenset()


def read_plan(source: str | bytes | object) -> Plan | Report:
    """Read a plan that comes from outside.

    Args:
        source: JSON text, or plain JSON data.

    Returns:
        The plan; or, where the data is none, a report with all that stops it from being read.
    """
    data = source
    try:
        if isinstance(source, (str, bytes)):
            data = load_written(source)
        return parse(Plan, data)
    except ValidationError as exc:
        return _unread(schema.misread(exc, data))
    except (ValueError, RecursionError, PydanticSerializationError) as exc:
        return _unread([issue("unparsable", f"not a plan: {exc}")])


def _unread(found: Iterable[Issue]) -> Report:
    return Report(issues=tuple(found), not_evaluated=_AFTER_READING)


def _in_order(found: Iterable[Issue], plan: Plan) -> tuple[Issue, ...]:
    """Sort by layer, then by place in the plan; what is about the whole comes last."""
    place = {step.id: at for at, step in enumerate(plan.steps)}
    last = len(place)
    return tuple(sorted(found, key=lambda each: (each.layer, place.get(each.step or "", last))))
