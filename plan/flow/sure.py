"""Which steps are sure to have been done before another one starts, whatever is skipped on the way.

Waiting is not enough: whoever waits for a skipped step goes on. Reading is: a step that reads the
output of a skipped one is skipped as well, so whoever starts has all that it reads, and all that
had to be done for that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plangate.plan.joins import is_strict, stand_ins

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from plangate.plan.value.plan import Plan
    from plangate.plan.value.step import Step


class Sure:
    """For each step, which of some guards are done before it starts.

    Args:
        plan: The plan.
        order: Its steps, each after all it needs; steps on a cycle are left out.
        guards: Ids of the steps that matter.
    """

    def __init__(self, plan: Plan, order: Sequence[str], guards: Collection[str]) -> None:
        self._position = {guard: at for at, guard in enumerate(guards)}
        self._principals = stand_ins(plan)
        self._replaceable = _replaceable(plan, self._principals)
        self._skippable: set[str] = set()
        """Steps whose readers are skipped with them."""

        self._unsure: set[str] = set()
        """Steps without which a run goes on: skipped ones, and those that others replace."""

        self._cut_off: set[str] = set()
        """Steps that are skipped before all that they wait for has settled."""

        self._before: dict[str, int] = {}
        for step_id in order:
            self._add(plan.by_id[step_id])

    def bits(self, guards: Collection[str]) -> int:
        """Return the bits of some guards, for `holds`."""
        return sum(1 << self._position[guard] for guard in guards)

    def holds(self, step: str, bits: int) -> bool:
        """True if one of the guards of `bits` is done before the step starts."""
        return bool(self._before.get(step, 0) & bits)

    def _add(self, step: Step) -> None:
        if step.id in self._principals or not self._skippable.isdisjoint(step.data_needs):
            self._cut_off.add(step.id)
        if step.id in self._cut_off or can_be_skipped(step):
            self._skippable.add(step.id)
        if step.id in self._skippable or step.id in self._replaceable:
            self._unsure.add(step.id)
        gathered = self._before.get(self._principals.get(step.id, ""), 0)
        for need in step.needs if is_strict(step) else ():
            is_read = need in step.data_needs  # a step never starts without what it reads
            is_sure = need not in (self._replaceable if is_read else self._unsure)
            if need in self._position and is_sure:
                gathered |= 1 << self._position[need]
            if is_read or need not in self._cut_off:
                gathered |= self._before.get(need, 0)
        self._before[step.id] = gathered


def can_be_skipped(step: Step) -> bool:
    """True if the plan itself lets a run go on without the step."""
    return step.when is not None or any(route.action == "skip" for route in step.routes)


def _replaceable(plan: Plan, principals: Mapping[str, str]) -> frozenset[str]:
    """Return the steps in whose place something else may be done, or nothing."""
    found: set[str] = set()
    for stand_in, principal in principals.items():
        here, other = plan.by_id[principal], plan.by_id[stand_in]
        if here.capability != other.capability or can_be_skipped(other):
            found.add(principal)
    while more := {principals[step] for step in found if step in principals} - found:
        found |= more
    return frozenset(found)
