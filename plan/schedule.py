"""Facts of the graph of steps: order, ancestors, longest paths. Pure functions of a plan.

Each is linear in steps plus edges (ancestor sets are bit sets, one machine word for 64 steps), and
none raises for what a plan says: a need that is not in the plan is ignored, and steps on a cycle,
or behind one, have no place in the order. Layer 2 reports both.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from plangate.plan.joins import waits

if TYPE_CHECKING:
    from plangate.plan.value.plan import Plan


Needs: TypeAlias = Mapping[str, frozenset[str]]
"""By step, what it waits for."""


class Path(NamedTuple):
    """A chain of steps and what it takes in all."""

    seconds: float
    steps: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class AncestorSet(AbstractSet[str]):
    """Ids of the steps that settle before one step starts; compares like any set."""

    bits: int
    position: Mapping[str, int]
    """Bit of each step of the plan, in order of release."""

    def __contains__(self, step: object) -> bool:
        at = self.position.get(step) if isinstance(step, str) else None
        return at is not None and bool(self.bits >> at & 1)

    def __iter__(self) -> Iterator[str]:
        return (step for step, at in self.position.items() if self.bits >> at & 1)

    def __len__(self) -> int:
        return self.bits.bit_count()

    @classmethod
    def _from_iterable(cls, found: Iterable[str]) -> frozenset[str]:  # type: ignore[override]
        return frozenset(found)  # what `a & b` of two ancestor sets gives


def order(plan: Plan) -> tuple[str, ...]:
    """Return the ids so that each comes after all it needs; ties keep the order of the plan.

    Steps on a cycle, and those that need one, are left out: the result is then shorter than the
    plan.
    """
    return _sorted(_needs(plan))


def ancestors(plan: Plan, needs: Needs | None = None) -> Mapping[str, AncestorSet]:
    """Return, for each step, all steps that settle before it, through data or `after`.

    Steps that have no place in the order have no ancestors here.

    Args:
        plan: The plan.
        needs: By step, what it waits for; None: all of that, stand-ins included.
    """
    known = _known(plan, waits(plan) if needs is None else needs)
    position = {step: at for at, step in enumerate(_sorted(known))}
    return {step: AncestorSet(found, position) for step, found in _bits(known, position).items()}


def ancestor_bits(plan: Plan, position: Mapping[str, int]) -> dict[str, int]:
    """Return, for each step, its ancestors as bits, so that two plans can be compared by `& ~`.

    Args:
        plan: The plan.
        position: The bit of each step that matters; others are followed but leave no bit.
    """
    return _bits(_needs(plan), position)


def _bits(needs: Mapping[str, tuple[str, ...]], position: Mapping[str, int]) -> dict[str, int]:
    bits = dict.fromkeys(needs, 0)
    for step in _sorted(needs):
        gathered = 0
        for need in needs[step]:
            gathered |= bits[need]
            if (at := position.get(need)) is not None:
                gathered |= 1 << at
        bits[step] = gathered
    return bits


def descendants_of(plan: Plan, ids: Iterable[str]) -> frozenset[str]:
    """Return the steps that need one of `ids`, directly or through others; never `ids` themselves.

    Cycles are followed once.
    """
    after = _successors(_needs(plan))
    start = frozenset(ids)
    reached: set[str] = set()
    waiting = list(start)
    while waiting:
        for step in after.get(waiting.pop(), ()):
            if step not in reached:
                reached.add(step)
                waiting.append(step)
    return frozenset(reached - start)


def longest_remaining(plan: Plan, seconds: Mapping[str, float]) -> Mapping[str, float]:
    """Return, for each step, the seconds of the longest path from its start to an end of the plan.

    Args:
        plan: The plan.
        seconds: Duration of each step; a step that is not named takes none.
    """
    needs = _needs(plan)
    after = _successors(needs)
    left: dict[str, float] = {}
    for step in reversed(_sorted(needs)):
        behind = max((left.get(each, 0.0) for each in after[step]), default=0.0)
        left[step] = seconds.get(step, 0.0) + behind
    return left


def critical_path(plan: Plan, seconds: Mapping[str, float]) -> Path:
    """Return the longest path through the plan: no number of workers makes it faster.

    Args:
        plan: The plan.
        seconds: As for `longest_remaining`.
    """
    left = longest_remaining(plan, seconds)
    after = _successors(_needs(plan))
    chain: list[str] = []
    here = list(left)[::-1]
    while here:
        step = max(here, key=lambda each: left[each])
        chain.append(step)
        here = [each for each in after[step] if each in left]
    return Path(left[chain[0]] if chain else 0.0, tuple(chain))


def _needs(plan: Plan) -> dict[str, tuple[str, ...]]:
    return _known(plan, waits(plan))


def _known(plan: Plan, needs: Needs) -> dict[str, tuple[str, ...]]:
    known = plan.by_id
    return {
        step: tuple(need for need in sorted(each) if need in known) for step, each in needs.items()
    }


def _successors(needs: Mapping[str, tuple[str, ...]]) -> dict[str, list[str]]:
    after: dict[str, list[str]] = {step: [] for step in needs}
    for step, needed in needs.items():
        for need in needed:
            after[need].append(step)
    return after


def _sorted(needs: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    after = _successors(needs)
    missing = {step: len(needed) for step, needed in needs.items()}
    free = deque(step for step, count in missing.items() if count == 0)
    done: list[str] = []
    while free:
        step = free.popleft()
        done.append(step)
        for each in after[step]:
            missing[each] -= 1
            if missing[each] == 0:
                free.append(each)
    return tuple(done)
