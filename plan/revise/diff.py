"""What differs between two versions of a plan, and what the new one may do beyond the old."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from plangate.plan.flow.authority import grown
from plangate.plan.schedule import ancestor_bits
from plangate.plan.value.equal import differing, same
from plangate.plan.value.frozen import Frozen, FrozenMap, canonical, thaw
from plangate.plan.value.refs import Ref

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic import JsonValue

    from plangate.plan.catalog import Catalog
    from plangate.plan.value.plan import Plan
    from plangate.plan.value.step import Check, Step

_ABSENT: dict[str, JsonValue] = {"absent": True}
_ANY_STEP: dict[str, JsonValue] = {"step": True}


class PlanDiff(Frozen):
    """The change from one version to another. Ids of old steps, where nothing else is said."""

    from_version: int
    to_version: int
    kept: tuple[str, ...] = ()
    """Same id, tool and literal arguments; references may point elsewhere."""

    invalidated: tuple[str, ...] = ()
    """Steps whose result, if there is one, no longer counts."""

    replaced: FrozenMap[tuple[str, ...]] = Field(default_factory=dict, validate_default=True)
    """By old id, the new ids of the steps in its place."""

    inserted: tuple[str, ...] = ()
    """New ids that take nobody's place."""

    removed: tuple[str, ...] = ()
    """Old ids in whose place nothing stands."""

    reordered: tuple[str, ...] = ()
    """Steps of both versions that wait for other steps of both versions than before."""

    updated: FrozenMap[tuple[str, ...]] = Field(default_factory=dict, validate_default=True)
    """By id of a step of both versions, the fields that differ."""

    changed_args: tuple[str, ...] = ()
    """As `S3.shipped`, for steps of both versions; remapped references included."""

    changed_checks: FrozenMap[str] = Field(default_factory=dict, validate_default=True)
    """By id of a check of a step or of the goal: `added`, `changed`, `dropped`."""

    reason_refs: tuple[str, ...] = ()
    external_effects_preserved: tuple[str, ...] = ()
    """Done steps whose effect on the world stays, whether or not the plan still counts it."""

    boundary: tuple[str, ...] = ()
    """What the new version may do that the old one could not; see `plangate.plan.flow`."""

    @property
    def is_empty(self) -> bool:
        """True if the two versions say the same of every step and check."""
        return not (
            self.invalidated
            or self.inserted
            or self.updated
            or self.reordered
            or self.changed_checks
            or self.boundary
        )


def diff(old: Plan, new: Plan, *, catalog: Catalog | None = None) -> PlanDiff:
    """Compare two versions.

    Args:
        old: The version before.
        new: The version after.
        catalog: The contracts, for `boundary`; None: the worst is assumed of each tool.
    """
    both = {s.id: new.by_id[s.id] for s in old.steps if s.id in new.by_id}
    kept = {s.id: None for s in old.steps if s.id in both and _is_kept(s, both[s.id])}
    replaced = _replaced(old, new, both)
    in_place = {each for ids in replaced.values() for each in ids}
    return PlanDiff(
        from_version=old.version,
        to_version=new.version,
        kept=tuple(kept),
        invalidated=tuple(s.id for s in old.steps if s.id not in kept),
        replaced=replaced,
        inserted=tuple(s.id for s in new.steps if s.id not in both and s.id not in in_place),
        removed=tuple(s.id for s in old.steps if s.id not in both and s.id not in replaced),
        reordered=_reordered(old, new, both),
        updated=dict(_updated(old, both)),
        changed_args=tuple(_changed_args(old, both)),
        changed_checks=_changed_checks(old, new),
        boundary=grown(old, new, catalog),
    )


def _is_kept(old: Step, new: Step) -> bool:
    return same(old, new) or (
        old.capability == new.capability and canonical(_literal(old)) == canonical(_literal(new))
    )


def _literal(step: Step) -> JsonValue:
    return _blanked(thaw(step.args))


def _blanked(value: JsonValue) -> JsonValue:
    """Return arguments with each reference to a step blanked out."""
    if isinstance(value, dict):
        return {key: _blanked(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_blanked(item) for item in value]
    ref = Ref.parse(value)
    return _ANY_STEP if ref is not None and ref.step is not None else {"literal": value}


def _replaced(old: Plan, new: Plan, both: Mapping[str, Step]) -> dict[str, tuple[str, ...]]:
    """Find what stands in place of a step: the new steps that all its former readers now need."""
    found: dict[str, tuple[str, ...]] = {}
    readers: dict[str, list[str]] = {}
    for step in old.steps:
        for need in step.needs:
            readers.setdefault(need, []).append(step.id)
    for step in old.steps:
        if step.id in both:
            if step.capability != both[step.id].capability:
                found[step.id] = (step.id,)
            continue
        left = [each for each in readers.get(step.id, ()) if each in both]
        groups = [_added_before(new, each, both) for each in left]
        common = set.intersection(*groups) if groups else set()
        if common:
            found[step.id] = tuple(each.id for each in new.steps if each.id in common)
    return found


def _added_before(new: Plan, reader: str, both: Mapping[str, Step]) -> set[str]:
    found: set[str] = set()
    waiting = [reader]
    while waiting:
        for need in new.by_id[waiting.pop()].needs:
            if need in new.by_id and need not in both and need not in found:
                found.add(need)
                waiting.append(need)
    return found


def _reordered(old: Plan, new: Plan, both: Mapping[str, Step]) -> tuple[str, ...]:
    position = {step: at for at, step in enumerate(both)}
    before, after = ancestor_bits(old, position), ancestor_bits(new, position)
    return tuple(step for step in both if before[step] != after[step])


def _updated(old: Plan, both: Mapping[str, Step]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for step in both.values():
        if fields := differing(old.by_id[step.id], step):
            yield step.id, fields


def _changed_args(old: Plan, both: Mapping[str, Step]) -> Iterator[str]:
    for step in both.values():
        before = old.by_id[step.id]
        if same(before, step):
            continue
        for name in dict.fromkeys((*before.args, *step.args)):
            if canonical(before.args.get(name, _ABSENT)) != canonical(step.args.get(name, _ABSENT)):
                yield f"{step.id}.{name}"


def _changed_checks(old: Plan, new: Plan) -> dict[str, str]:
    before, after = _checks(old), _checks(new)
    changed: dict[str, str] = {}
    for check in dict.fromkeys((*before, *after)):
        if check not in after:
            changed[check] = "dropped"
        elif check not in before:
            changed[check] = "added"
        elif not same(before[check], after[check]):
            changed[check] = "changed"
    return changed


def _checks(plan: Plan) -> dict[str, Check]:
    steps = [check for step in plan.steps for check in step.success]
    return {check.id: check for check in (*steps, *plan.success_criteria)}
