"""Why a patch cannot be applied: found before a step of the plan is touched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plangate.plan.codes import issue
from plangate.plan.revise.lost import lost
from plangate.plan.revise.operations import Insert, Invalidate, Keep, Reorder, Replace, Stop, Update
from plangate.plan.revise.rewrite import uncovered_ids

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plangate.plan.issue import Issue
    from plangate.plan.revise.operations import Operation, Patch
    from plangate.plan.value.plan import Plan


def faults(plan: Plan, patch: Patch, done: frozenset[str]) -> Iterator[Issue]:
    """Yield what is wrong with a patch.

    Args:
        plan: The version that it changes.
        patch: The operations.
        done: Steps with a settled result.
    """
    if patch.stops is not None:
        yield issue("patch_stops", f"the patch stops the run: {patch.stops}")
    again = {op.step for op in patch.operations if isinstance(op, Invalidate)}
    said: dict[str, list[str]] = {}
    for op in patch.operations:
        for name in _named(op):
            if name not in plan.by_id:
                yield issue("patch_unknown_step", f"no step {name!r} in the plan", step=name)
        if isinstance(op, Replace) and op.step in done - again:
            says = f"{op.step} is done, and nothing says that its result no longer counts"
            yield issue("patch_drops_done", says, step=op.step)
        if isinstance(op, (Keep, Update, Replace, Reorder)):
            yield from _conflict(op, said.setdefault(op.step, []))
    yield from _too_late(patch, done - lost(plan, patch))
    yield from _id_faults(plan, patch)


def _named(op: Operation) -> tuple[str, ...]:
    if isinstance(op, Stop):
        return ()
    return op.before if isinstance(op, Insert) else (op.step,)


def _conflict(op: Keep | Update | Replace | Reorder, said: list[str]) -> Iterator[Issue]:
    """What a step says and what it waits for are two things; all else contradicts."""
    if said and {op.op, *said} != {"update", "reorder"}:
        yield issue("patch_conflict", f"both {said[-1]} and {op.op} of {op.step!r}", step=op.step)
    elif op.op in said:
        yield issue("patch_conflict", f"two times {op.op} of {op.step!r}", step=op.step)
    said.append(op.op)


def _too_late(patch: Patch, settled: frozenset[str]) -> Iterator[Issue]:
    for op in patch.operations:
        if isinstance(op, (Reorder, Insert)):
            for name in _named(op):
                if name in settled:
                    says = f"{name} is done; what stood before it is history"
                    yield issue("patch_too_late", says, step=name)


def _id_faults(plan: Plan, patch: Patch) -> Iterator[Issue]:
    places = [op for op in patch.operations if isinstance(op, Replace)]
    new = [op for op in patch.operations if isinstance(op, (Replace, Insert))]
    gone = {op.step for op in places}
    taken = set(plan.by_id) - gone
    for step in (step for op in new for step in op.steps):
        if step.id in taken:
            yield issue("patch_duplicate_id", f"id {step.id!r} is taken", step=step.id)
        taken.add(step.id)
    left = frozenset(gone - taken)
    for step, old in uncovered_ids((step for op in new for step in op.steps), left):
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
