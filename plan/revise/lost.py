"""Which results no longer count after a patch: by what they rest on, never by their number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plangate.plan.joins import stand_ins
from plangate.plan.revise.operations import Invalidate, Replace, Update
from plangate.plan.revise.rewrite import reads_of

if TYPE_CHECKING:
    from plangate.plan.revise.operations import Operation, Patch
    from plangate.plan.value.plan import Plan


def lost(plan: Plan, patch: Patch) -> frozenset[str]:
    """Return the steps whose results fall: those changed, and all that rest on them."""
    rests: dict[str, list[str]] = {}
    for step in plan.steps:
        for read in reads_of(step):
            rests.setdefault(read, []).append(step.id)
    principals = stand_ins(plan)
    readers = {step: tuple(each) for step, each in rests.items()}
    for stand_in, principal in principals.items():
        # Who stood in did so because that step failed; whoever read the step read its stand-in.
        rests.setdefault(principal, []).append(stand_in)
        behind = dict.fromkeys([stand_in])
        while (above := principals.get(next(reversed(behind)))) is not None and above not in behind:
            rests.setdefault(stand_in, []).extend(readers.get(above, ()))
            behind[above] = None
    fallen = {fell for op in patch.operations if (fell := _breaks(op))}
    waiting = list(fallen)
    while waiting:
        for step_id in rests.get(waiting.pop(), ()):
            if step_id not in fallen:
                fallen.add(step_id)
                waiting.append(step_id)
    return frozenset(fallen)


def _breaks(op: Operation) -> str:
    """Name the step whose result no longer counts after an operation; empty for none."""
    if isinstance(op, Update):
        changes = (op.args, op.success, op.required_facts) != (None, None, None)
        return op.step if changes else ""
    return op.step if isinstance(op, (Replace, Invalidate)) else ""
