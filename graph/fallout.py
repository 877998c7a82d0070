"""What denying a step takes with it: all that needs it, and the criteria that then cannot pass.

Shown before a person decides and computed the same way when they have: nobody finds out afterwards.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple

from plangate.plan.catalog import Catalog
from plangate.plan.effects import Claims, claims_of
from plangate.plan.errors import ConfigError
from plangate.plan.joins import is_strict, judge, stand_ins
from plangate.plan.schedule import order
from plangate.plan.shape.tokens import steps_in
from plangate.plan.value.frozen import Json, thaw
from plangate.plan.value.plan import Plan
from plangate.plan.value.refs import refs_in
from plangate.plan.value.step import Check

NAMED: Final = 20
"""Steps that are named on a card; a number stands for the others."""


class Loss(NamedTuple):
    """What would be lost."""

    steps: tuple[str, ...]
    """Further steps that would not run, in order of release."""

    cannot_pass: tuple[str, ...]
    """Success criteria that read a step which would not run."""

    may_not_pass: tuple[str, ...]
    """Success criteria that look at something which a lost step would have changed."""

    more: int = 0
    """Further steps beyond those in `steps`."""


@dataclass(frozen=True, slots=True)
class _Criterion:
    id: str
    reads: int
    touches: int


class Fallout:
    """What hangs on what in one plan; sets of steps are bits, in order of release.

    Args:
        plan: A validated plan: without an order there is nothing to say.
        catalog: The contracts, for what a step would have changed.
        settled: Steps that have ended; they are not lost any more.
    """

    def __init__(self, plan: Plan, catalog: Catalog, settled: Collection[str] = ()) -> None:
        self._plan = plan
        self._order = order(plan)
        self._at = {step: at for at, step in enumerate(self._order)}
        self._settled = self._bits(settled)
        self._needs = _needs(plan)
        self._followers: dict[str, list[str]] = {step: [] for step in self._order}
        for step in self._order:
            for need in self._needs[step]:
                if need in self._followers:
                    self._followers[need].append(step)
        self._lenient = [step for step in self._order if not is_strict(plan.by_id[step])]
        self._lost = self._closures(frozenset(self._lenient))
        self._questions = [
            (step.id, self._bits(self._followers[step.id]))
            for step in plan.steps
            if step.kind == "human" and self._followers.get(step.id)
        ]
        writes = self._writes(catalog)
        self._criteria = [
            self._criterion(check, catalog, writes) for check in plan.success_criteria
        ]

    def of(self, denied: Iterable[str], most: int | None = None) -> Loss:
        """Return what is lost beside the denied steps themselves.

        Args:
            denied: Ids of steps.
            most: How many lost steps are named; None: all.
        """
        said = self._bits(denied)
        gone = said
        for step in self._names(said):
            gone |= self._lost[step]
        for step in self._lenient:  # in order, so that one sees what another one loses
            if not gone & 1 << self._at[step] and not self._can_start(step, gone):
                gone |= self._lost[step]
        for step, followers in self._questions:
            if not followers & ~gone:  # nobody is asked about what will not happen
                gone |= 1 << self._at[step]
        gone &= ~self._settled
        named = tuple(islice(self._names(gone & ~said), most))
        return Loss(
            named,
            tuple(each.id for each in self._criteria if each.reads & gone),
            tuple(each.id for each in self._criteria if each.touches & gone & ~each.reads),
            (gone & ~said).bit_count() - len(named),
        )

    def reasons(self, denied: Mapping[str, str]) -> dict[str, str]:
        """Return, for each step that will not run, why.

        Args:
            denied: By denied step, who denied it.
        """
        why = {step: f"denied by {denied[step]}" for step in self._order if step in denied}
        for step in self.of(denied).steps:
            needed = [each for each in self._needs[step] if each in why]
            first = min(needed, key=self._at.__getitem__, default=None)
            why[step] = (
                "it asks about what was denied"
                if first is None
                else f"it needs {first}, which will not run"
            )
        return why

    def _can_start(self, step: str, gone: int) -> bool:
        """Say whether a step whose join is not strict may start without what is gone."""
        needs = self._bits(self._needs[step])
        done = (needs & ~gone).bit_count()
        return judge(self._plan.by_id[step], done=done, left=0, holds=True) == "go"

    def _closures(self, lenient: Collection[str]) -> dict[str, int]:
        """Return what each step takes with it, itself included, but for what can do without."""
        found: dict[str, int] = {}
        for step in reversed(self._order):
            bits = 1 << self._at[step]
            for follower in self._followers[step]:
                bits |= 0 if follower in lenient else found.get(follower, 0)
            found[step] = bits
        return found

    def _criterion(self, check: Check, catalog: Catalog, writes: Mapping[str, int]) -> _Criterion:
        read = {step for rule in (check.rule, check.conflict) for step in steps_in(rule or "")}
        read |= {ref.step for ref in refs_in(thaw(check.args)) if ref.step}
        touches = 0
        for claim in _claims(catalog, check.tool, check.args).reads:
            touches |= writes.get(claim, 0)
        return _Criterion(check.id, self._bits(read), touches)

    def _writes(self, catalog: Catalog) -> dict[str, int]:
        found: dict[str, int] = {}
        for step in self._plan.steps:
            for claim in (*_claims(catalog, step.tool, step.args).writes, *step.claims):
                found[claim] = found.get(claim, 0) | self._bits([step.id])
        return found

    def _bits(self, steps: Iterable[str]) -> int:
        bits = 0
        for step in steps:
            if step in self._at:
                bits |= 1 << self._at[step]
        return bits

    def _names(self, bits: int) -> Iterator[str]:
        while bits:
            lowest = bits & -bits
            yield self._order[lowest.bit_length() - 1]
            bits ^= lowest


def _needs(plan: Plan) -> dict[str, frozenset[str]]:
    """Return what each step cannot do without; a stand-in runs only where its step was begun."""
    principals = stand_ins(plan)
    return {
        step.id: step.needs | ({principals[step.id]} if step.id in principals else frozenset())
        for step in plan.steps
    }


def _claims(catalog: Catalog, tool: str | None, args: Mapping[str, Json]) -> Claims:
    """Return what a call touches; equal references give equal keys, and that is enough here."""
    spec = catalog.tools.get(tool or "")
    if spec is None:
        return _NOTHING
    try:
        return claims_of(spec, args)
    except ConfigError:  # an argument that a name needs is not given
        return _NOTHING


_NOTHING: Final = Claims(frozenset(), frozenset())
