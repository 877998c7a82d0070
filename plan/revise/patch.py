"""A change to a plan as data, and the next version that it makes.

What is done and still valid keeps its identity. What rests on something that the patch takes away
does not, whatever its number: it is named, and an effect among it is neither kept in silence nor
run again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from plangate.plan.codes import issue
from plangate.plan.errors import PlanRejected
from plangate.plan.revise.diff import PlanDiff, diff
from plangate.plan.revise.faults import faults
from plangate.plan.revise.lost import lost
from plangate.plan.revise.operations import Insert, Invalidate, Reorder, Replace, Update
from plangate.plan.revise.rewrite import Rewriting
from plangate.plan.tier import may_act
from plangate.plan.value.frozen import Frozen, first_fault, parse
from plangate.plan.value.plan import Author, Plan
from plangate.plan.value.step import Step

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from plangate.plan.catalog import Catalog
    from plangate.plan.issue import Issue
    from plangate.plan.revise.operations import Patch


class Patched(Frozen):
    """What a patch made."""

    plan: Plan
    diff: PlanDiff
    carried: tuple[str, ...]
    """Done steps that keep their status and result."""

    invalidated: tuple[str, ...]
    """Done steps that do not: they rest on something that is gone."""

    orphaned_effects: tuple[str, ...]
    """Those among them whose effect on the world remains. Never run again by themselves: each
    needs a compensation or a person."""


def apply(
    plan: Plan,
    patch: Patch,
    author: Author,
    *,
    done: frozenset[str],
    catalog: Catalog | None = None,
) -> Patched:
    """Make the next version of a plan. The result is not validated yet.

    Args:
        plan: The version before.
        patch: What changes.
        author: Of the next version.
        done: Steps with a settled result.
        catalog: The contracts; None: each done step that is not a question may have acted, and
            the diff's boundary assumes the worst of each tool.

    Raises:
        PlanRejected: The patch names unknown steps, contradicts itself, drops a done step without
            invalidating it or puts something before it, leaves a reference uncovered, stops, or
            changes nothing.
    """
    _refuse(faults(plan, patch, done))
    new = _revised(plan, patch, author)
    if new.content_hash == plan.content_hash:
        _refuse([issue("patch_changes_nothing", "the patched plan says what the old said")])
    gone = lost(plan, patch)
    acted = [s.id for s in plan.steps if s.id in done and may_act(s, catalog)]
    return Patched(
        plan=new,
        diff=_told(plan, new, patch, done & gone, acted if catalog else [], catalog),
        carried=tuple(s.id for s in plan.steps if s.id in done - gone),
        invalidated=tuple(s.id for s in plan.steps if s.id in done & gone),
        orphaned_effects=tuple(step for step in acted if step in gone),
    )


def _told(
    old: Plan,
    new: Plan,
    patch: Patch,
    fallen: frozenset[str],
    acted: list[str],
    catalog: Catalog | None,
) -> PlanDiff:
    base = diff(old, new, catalog=catalog)
    places = {op.step: op for op in patch.operations if isinstance(op, Replace)}
    said = {op.step for op in patch.operations if isinstance(op, Invalidate)}
    invalid = {*base.invalidated, *said, *fallen}
    return PlanDiff(
        **{
            **dict(base),
            "replaced": {step: tuple(s.id for s in op.steps) for step, op in places.items()},
            "inserted": tuple(
                each.id for op in patch.operations if isinstance(op, Insert) for each in op.steps
            ),
            "removed": (),
            "kept": tuple(step for step in base.kept if step not in places),
            "invalidated": tuple(s.id for s in old.steps if s.id in invalid),
            "reason_refs": (*patch.reasons, *patch.evidence),
            "external_effects_preserved": tuple(acted),
        }
    )


def _revised(plan: Plan, patch: Patch, author: Author) -> Plan:
    places = {op.step: op for op in patch.operations if isinstance(op, Replace)}
    rewriting = Rewriting(
        {old: new for op in places.values() for old, new in op.references.items()},
        {step: tuple(each.id for each in op.steps) for step, op in places.items()},
        {step: _ends(op.steps) for step, op in places.items()},
    )
    try:
        said = {
            **{name: getattr(plan, name) for name in Plan.model_fields},
            **rewriting.beside_steps(plan),
            "steps": tuple(_steps(plan, patch, rewriting)),
            "author": author,
            "version": plan.version + 1,
            "parent_hash": plan.content_hash,
        }
        new = Plan(**said)
    except ValidationError as exc:
        says = f"the patched plan is malformed at {first_fault(exc)}"
        raise PlanRejected([issue("patch_malformed", says)]) from exc
    _refuse(rewriting.issues)
    return new


def _steps(plan: Plan, patch: Patch, rewriting: Rewriting) -> Iterator[Step]:
    """Yield the steps of the next version: new ones stand before the first that waits for them."""
    places = {op.step: op for op in patch.operations if isinstance(op, Replace)}
    inserts = [op for op in patch.operations if isinstance(op, Insert)]
    for step in plan.steps:
        for op in [op for op in inserts if step.id in op.before]:
            yield from op.steps
            inserts.remove(op)
        if step.id in places:
            yield from places[step.id].steps
        else:
            yield rewriting.step(_with(step, patch))
    for op in inserts:
        yield from op.steps


def _with(step: Step, patch: Patch) -> Step:
    """Return a step that stays, as the patch wants it."""
    said: dict[str, Any] = {}
    after = list(step.after)
    for op in patch.operations:
        if isinstance(op, Update) and op.step == step.id:
            said |= op.model_dump(mode="json", exclude={"op", "step"}, exclude_none=True)
        elif isinstance(op, Reorder) and op.step == step.id:
            after = list(op.after)
    for op in patch.operations:
        if isinstance(op, Insert) and step.id in op.before:
            after += _ends(op.steps)
    if not said and after == list(step.after):
        return step
    was: dict[str, Any] = step.model_dump(mode="json")
    args = {**was["args"], **said.get("args", {})}
    return parse(Step, was | said | {"args": args, "after": list(dict.fromkeys(after))})


def _ends(steps: tuple[Step, ...]) -> tuple[str, ...]:
    needed = {need for step in steps for need in step.needs}
    return tuple(step.id for step in steps if step.id not in needed)


def _refuse(issues: Iterable[Issue]) -> None:
    found = tuple(issues)
    if found:
        raise PlanRejected(found, hint="Correct the patch; the plan is unchanged.")
