"""A change to a plan as data, and the next version that it makes.

What is done and still valid keeps its identity. What rests on something that the patch takes away
does not, whatever its number: it is named, and an effect among it is neither kept in silence nor
run again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import Field, ValidationError

from plangate.plan.codes import issue
from plangate.plan.errors import PlanRejected
from plangate.plan.tier import may_act
from plangate.plan.value.diff import PlanDiff, diff
from plangate.plan.value.frozen import Args, Frozen, FrozenMap, first_fault, parse
from plangate.plan.value.plan import Author, Plan
from plangate.plan.value.rewrite import Rewriting, reads_of, uncovered_ids
from plangate.plan.value.step import Check, Line, Step, StepId

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from plangate.plan.catalog import Catalog
    from plangate.plan.issue import Issue


class Keep(Frozen):
    """Says that a step stays; a patch that also changes it contradicts itself."""

    op: Literal["keep"] = "keep"
    step: StepId


class Update(Frozen):
    """Changes fields of a step that stays. None leaves a field as it is."""

    op: Literal["update"] = "update"
    step: StepId
    after: tuple[StepId, ...] | None = None
    args: Args | None = None
    """Arguments to set; the others stay."""

    success: tuple[Check, ...] | None = None
    required_facts: tuple[Line, ...] | None = None


class Replace(Frozen):
    """Puts one or more steps in place of one."""

    op: Literal["replace"] = "replace"
    step: StepId
    steps: Annotated[tuple[Step, ...], Field(min_length=1)]
    references: FrozenMap[str] = Field(default_factory=dict, validate_default=True)
    """By dotted reference into the old step, the new one; see `Rewriting`."""


class Invalidate(Frozen):
    """Says that a result no longer counts, so that the step runs again."""

    op: Literal["invalidate"] = "invalidate"
    step: StepId


class Stop(Frozen):
    """No next version: a person decides, or the run ends."""

    op: Literal["stop"] = "stop"
    reason: Line


Operation: TypeAlias = Annotated[
    Keep | Update | Replace | Invalidate | Stop, Field(discriminator="op")
]


class Patch(Frozen):
    """Operations on one version, with what they rest on."""

    operations: tuple[Operation, ...]
    reasons: tuple[Line, ...] = ()
    """References, as `error://logistics_record_not_found`."""

    evidence: tuple[Line, ...] = ()

    @property
    def stops(self) -> str | None:
        """The reason of the first `Stop`, or None."""
        return next((op.reason for op in self.operations if isinstance(op, Stop)), None)


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
            invalidating it, leaves a reference uncovered, stops, or changes nothing.
    """
    _refuse(_faults(plan, patch, done))
    updates = {op.step: op for op in patch.operations if isinstance(op, Update)}
    places = {op.step: op for op in patch.operations if isinstance(op, Replace)}
    new = _revised(plan, author, updates, places)
    if new.content_hash == plan.content_hash:
        _refuse([issue("patch_changes_nothing", "the patched plan says what the old said")])
    lost = _lost(plan, patch)
    acted = [s.id for s in plan.steps if s.id in done and may_act(s, catalog)]
    return Patched(
        plan=new,
        diff=_told(plan, new, patch, done & lost, acted if catalog else [], catalog),
        carried=tuple(s.id for s in plan.steps if s.id in done - lost),
        invalidated=tuple(s.id for s in plan.steps if s.id in done & lost),
        orphaned_effects=tuple(step for step in acted if step in lost),
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
            "inserted": (),
            "removed": (),
            "kept": tuple(step for step in base.kept if step not in places),
            "invalidated": tuple(s.id for s in old.steps if s.id in invalid),
            "reason_refs": (*patch.reasons, *patch.evidence),
            "external_effects_preserved": tuple(acted),
        }
    )


def _faults(plan: Plan, patch: Patch, done: frozenset[str]) -> Iterator[Issue]:
    if patch.stops is not None:
        yield issue("patch_stops", f"the patch stops the run: {patch.stops}")
    invalid = {op.step for op in patch.operations if isinstance(op, Invalidate)}
    changed: dict[str, str] = {}
    for op in patch.operations:
        if isinstance(op, Stop):
            continue
        if op.step not in plan.by_id:
            yield issue("patch_unknown_step", f"no step {op.step!r} in the plan", step=op.step)
        if op.step in changed and not isinstance(op, Invalidate):
            says = f"both {changed[op.step]} and {op.op} of {op.step!r}"
            yield issue("patch_conflict", says, step=op.step)
        if not isinstance(op, Invalidate):
            changed[op.step] = op.op
        if isinstance(op, Replace) and op.step in done - invalid:
            says = f"{op.step} is done, and nothing says that its result no longer counts"
            yield issue("patch_drops_done", says, step=op.step)
    yield from _id_faults(plan, patch)


def _id_faults(plan: Plan, patch: Patch) -> Iterator[Issue]:
    places = [op for op in patch.operations if isinstance(op, Replace)]
    gone = {op.step for op in places}
    taken = set(plan.by_id) - gone
    for op in places:
        for step in op.steps:
            if step.id in taken:
                yield issue("patch_duplicate_id", f"id {step.id!r} is taken", step=step.id)
            taken.add(step.id)
    left = frozenset(gone - taken)
    for step, old in uncovered_ids((step for op in places for step in op.steps), left):
        says = f"the new step {step.id} needs {old}, which leaves the plan"
        yield issue("patch_uncovered_reference", says, step=step.id)
    for op in places:
        yield from _reference_faults(op, taken)


def _reference_faults(op: Replace, ids: set[str]) -> Iterator[Issue]:
    for source, target in op.references.items():
        if _head(source) != op.step:
            says = f"replacing {op.step} may not change what {source!r} means"
            yield issue("patch_conflict", says, step=op.step)
        if _head(target) not in ids:
            says = f"the references of {op.step} point at {target!r}, which is not there"
            yield issue("patch_unknown_step", says, step=op.step)


def _head(dotted: str) -> str:
    return dotted.removeprefix("steps.").split(".")[0]


def _revised(
    plan: Plan, author: Author, updates: Mapping[str, Update], places: Mapping[str, Replace]
) -> Plan:
    rewriting = Rewriting(
        {old: new for op in places.values() for old, new in op.references.items()},
        {step: tuple(each.id for each in op.steps) for step, op in places.items()},
        {step: _ends(op.steps) for step, op in places.items()},
    )
    try:
        steps: list[Step] = []
        for step in plan.steps:
            if step.id in places:
                steps.extend(places[step.id].steps)
            else:
                steps.append(rewriting.step(_with(step, updates.get(step.id))))
        said = {
            **{name: getattr(plan, name) for name in Plan.model_fields},
            **rewriting.beside_steps(plan),
            "steps": tuple(steps),
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


def _with(step: Step, update: Update | None) -> Step:
    if update is None:
        return step
    said: dict[str, Any] = step.model_dump(mode="json")
    changes = update.model_dump(mode="json", exclude={"op", "step", "args"}, exclude_none=True)
    if update.args is not None:
        changes["args"] = {**said["args"], **update.model_dump(mode="json")["args"]}
    return parse(Step, said | changes)


def _ends(steps: tuple[Step, ...]) -> tuple[str, ...]:
    needed = {need for step in steps for need in step.needs}
    return tuple(step.id for step in steps if step.id not in needed)


def _lost(plan: Plan, patch: Patch) -> frozenset[str]:
    """Return the steps whose results fall: those changed, and all that rest on them."""
    rests: dict[str, list[str]] = {}
    for step in plan.steps:
        for read in reads_of(step):
            rests.setdefault(read, []).append(step.id)
    fallen = {op.step for op in patch.operations if not isinstance(op, Stop) and _breaks(op)}
    waiting = list(fallen)
    while waiting:
        for step_id in rests.get(waiting.pop(), ()):
            if step_id not in fallen:
                fallen.add(step_id)
                waiting.append(step_id)
    return frozenset(fallen)


def _breaks(op: Keep | Update | Replace | Invalidate) -> bool:
    if isinstance(op, Update):
        return (op.args, op.success, op.required_facts) != (None, None, None)
    return isinstance(op, (Replace, Invalidate))


def _refuse(issues: Iterable[Issue]) -> None:
    found = tuple(issues)
    if found:
        raise PlanRejected(found, hint="Correct the patch; the plan is unchanged.")
