"""What a plan may do, and what a new version may do that the old one could not.

An approval grants an authority. A later version whose authority lies inside it may go on without
asking; one that grows it goes back to the gate. Where it cannot be decided whether something has
grown, it has: of two rules only simple comparisons are weighed (`plangate.plan.flow.implies`). That
the new tool of a replaced *read* is a fit one is not decided here; a policy says with `require`
which reads nothing may replace.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from plangate.plan.contract import contract_of
from plangate.plan.flow.grant import Grant, grant_of, origin, reaches
from plangate.plan.flow.implies import implies
from plangate.plan.flow.precedence import Precedence
from plangate.plan.schedule import ancestor_bits, order
from plangate.plan.value.equal import differing, same
from plangate.plan.value.frozen import Args, Frozen, digest
from plangate.plan.value.plan import Budget, Constraint

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from plangate.plan.catalog import Catalog
    from plangate.plan.facts import Facts
    from plangate.plan.value.plan import Condition, Plan
    from plangate.plan.value.step import Check, Route, Step

_NARROW = frozenset({"ask", "abort", "replan"})
"""Route actions that do nothing further by themselves."""


class Authority(Frozen):
    """What a plan may do, and under which obligations."""

    grants: tuple[Grant, ...]
    """The steps that act or send something outside, in order of the plan."""

    confirmations: tuple[str, ...]
    """`step: capability` of the questions to people."""

    checks: Args
    """Level by check id, of steps and goal."""

    obligations: tuple[str, ...]
    """Ids of constraints, abort conditions and replan conditions."""

    labels: tuple[str, ...]
    """Confidentiality labels of what the plan reads."""

    budget: Budget


def authority_of(plan: Plan, facts: Facts) -> Authority:
    """Return what a plan may do, by the contracts and not by what it declares."""
    return _authority(plan, facts.catalog)


def grown(old: Plan, new: Plan, catalog: Catalog | None) -> tuple[str, ...]:
    """Return what the new version may do that the old one could not, in plain words.

    Args:
        old: The version that was approved.
        new: The one that is to take its place.
        catalog: The contracts; None: no tool is known, so the worst is assumed of each.

    Returns:
        Nothing if the new authority lies inside the old one.
    """
    if old.content_hash == new.content_hash:
        return ()
    two = _match(old, new, catalog)
    found = (
        *_effects(two),
        *_reads(two),
        *_steps(two),
        *_checks(old, new),
        *_obligations(old, new),
        *Precedence(old, new, two.kept, two.effects).losses(),
        *_labels(two),
        *_limits(old.budget, new.budget),
    )
    return tuple(dict.fromkeys(found))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Versions:
    old: Plan
    new: Plan
    catalog: Catalog | None
    kept: Mapping[str, str]
    """Steps of both: the old id and the new id of each."""

    effects: frozenset[str]
    """New ids of the kept steps that act or send something outside."""

    gone: frozenset[str]
    added: frozenset[str]


def _authority(plan: Plan, catalog: Catalog | None) -> Authority:
    obligations = (
        *(each.id for each in plan.constraints),
        *(each.id for each in plan.abort_conditions),
        *(each.id for each in plan.replan_conditions),
    )
    return Authority(
        grants=tuple(grant_of(s, plan, catalog) for s in plan.steps if reaches(s, catalog)),
        confirmations=tuple(f"{s.id}: {s.capability}" for s in plan.steps if s.question),
        checks={check.id: check.level for check, _ in _all_checks(plan).values()},
        obligations=obligations,
        labels=tuple(sorted(_labels_of(plan, catalog))),
        budget=plan.budget,
    )


def _match(old: Plan, new: Plan, catalog: Catalog | None) -> _Versions:
    """Match steps by id and tool, and those that act by the tool alone where that finds none."""
    kept = {s.id: s.id for s in old.steps if _capability(new, s.id) == s.capability}
    spare: dict[str, list[str]] = {}
    for step in old.steps:
        if step.id not in kept and reaches(step, catalog):
            spare.setdefault(step.capability, []).append(step.id)
    for step in new.steps:
        if step.id not in kept and reaches(step, catalog) and spare.get(step.capability):
            kept[spare[step.capability].pop(0)] = step.id
    now = frozenset(kept.values())
    return _Versions(
        old=old,
        new=new,
        catalog=catalog,
        kept=kept,
        effects=frozenset(s.id for s in new.steps if s.id in now and reaches(s, catalog)),
        gone=frozenset(old.by_id) - kept.keys(),
        added=frozenset(new.by_id) - now,
    )


def _effects(two: _Versions) -> Iterator[str]:
    for was, now in two.kept.items():
        if now in two.effects:
            before = grant_of(two.old.by_id[was], two.old, two.catalog, two.gone)
            yield from _wider(before, grant_of(two.new.by_id[now], two.new, two.catalog, two.added))
    for step in two.new.steps:
        if step.id in two.added and reaches(step, two.catalog):
            grant = grant_of(step, two.new, two.catalog)
            outside = ", outside" if grant.external else ""
            yield f"{step.id} is a new effect: {grant.tool} ({grant.effect}{outside})"


def _reads(two: _Versions) -> Iterator[str]:
    """Yield the reads around an effect that read something else, but for what a new step gives."""
    effects = {was for was, now in two.kept.items() if now in two.effects}
    marks = ancestor_bits(two.old, dict.fromkeys(effects, 0))
    feeding = _feeding(two.old, effects)
    same_inputs = digest(two.old.inputs) == digest(two.new.inputs)
    for was, now in two.kept.items():
        if now in two.effects or not (marks[was] or was in feeding):
            continue
        before, after = two.old.by_id[was], two.new.by_id[now]
        if same_inputs and same(before, after) and not before.data_needs & two.gone:
            continue
        old = _origins(before, two.old, two.gone)
        new = _origins(after, two.new, two.added)
        for name in sorted(k for k in old.keys() | new.keys() if old.get(k) != new.get(k)):
            yield f"{now} {after.capability}: {name} is another value, or comes from elsewhere"


def _origins(step: Step, plan: Plan, loose: frozenset[str]) -> dict[str, str]:
    return {
        name: origin(value, step, plan, loose=loose, deep=False)
        for name, value in step.args.items()
    }


def _feeding(plan: Plan, effects: set[str]) -> set[str]:
    found = set(effects)
    for step_id in reversed(order(plan)):
        if step_id in found:
            found |= plan.by_id[step_id].needs
    return found


def _wider(old: Grant, new: Grant) -> Iterator[str]:
    for name in sorted(old.origins.keys() | new.origins.keys()):
        before, after = old.limits.get(name), new.limits.get(name)
        is_limit = isinstance(before, (int, float)) and isinstance(after, (int, float))
        if is_limit and after > before:  # type: ignore[operator]
            yield f"{new.step} {new.tool}: {name} is larger ({after}, was {before})"
        elif not is_limit and old.origins.get(name) != new.origins.get(name):
            yield f"{new.step} {new.tool}: {name} is another value, or comes from elsewhere"
    for key in sorted(set(new.writes) - set(old.writes)):
        yield f"{new.step} {new.tool}: writes {key} as well"


def _steps(two: _Versions) -> Iterator[str]:
    for was, now in two.kept.items():
        before, after = two.old.by_id[was], two.new.by_id[now]
        if before.question is None and same(before, after):
            continue
        yield from _looser(before, after)
        yield from _wider_retry(now, before.routes, after.routes)
        yield from _question(before, after, two)
    for step in two.old.steps:
        if step.question is not None and step.id in two.gone:
            yield f"the question {step.id} to {step.question.audience} is dropped"


def _capability(plan: Plan, step_id: str) -> str | None:
    step = plan.by_id.get(step_id)
    return None if step is None else step.capability


Guard: TypeAlias = tuple[str, bool]
Duty: TypeAlias = "Constraint | Condition"


def _looser(old: Step, new: Step) -> Iterator[str]:
    more_items = old.max_items is not None and (
        new.max_items is None or new.max_items > old.max_items
    )
    guards: tuple[Guard, ...] = (
        ("its condition `when` changed", old.when not in (None, new.when)),
        ("a precondition is dropped or looser", not _still_holds(old, new)),
        ("its approval is dropped", old.approval == "always" != new.approval),
        ("its join changed", old.join != new.join),
        ("its compensation is dropped", old.compensation not in (None, new.compensation)),
        ("its tool version changed", old.tool_version not in (None, new.tool_version)),
        ("it runs over another list", old.for_each != new.for_each),
        ("it may run more often", more_items),
    )
    yield from (f"{new.id}: {says}" for says, is_looser in guards if is_looser)


def _still_holds(old: Step, new: Step) -> bool:
    """True if each precondition of before still has to hold: as it is, or a stricter one."""
    return all(any(implies(now, was) for now in new.preconditions) for was in old.preconditions)


def _wider_retry(step: str, old: tuple[Route, ...], new: tuple[Route, ...]) -> Iterator[str]:
    for route in old:
        if route not in new:
            yield f"{step}: the route for {route.on} ({route.action}) is dropped or changed"
    for route in new:
        if route not in old and route.action not in _NARROW:
            yield f"{step}: a new route for {route.on} ({route.action})"


def _question(old: Step, new: Step, two: _Versions) -> Iterator[str]:
    if old.question is None or new.question is None:
        return
    asked = (
        old.question.model_dump(exclude={"details"}),
        origin(old.question.details, old, two.old, loose=two.gone, deep=False),
    )
    asks = (
        new.question.model_dump(exclude={"details"}),
        origin(new.question.details, new, two.new, loose=two.added, deep=False),
    )
    if asked != asks:
        yield f"{new.id}: the question to {new.question.audience} changed, or shows other values"


def _all_checks(plan: Plan) -> dict[str, tuple[Check, Step | None]]:
    found: dict[str, tuple[Check, Step | None]] = {}
    for check in plan.success_criteria:
        found.setdefault(check.id, (check, None))
    for step in plan.steps:
        for check in step.success:
            found.setdefault(check.id, (check, step))
    return found


def _checks(old: Plan, new: Plan) -> Iterator[str]:
    now = _all_checks(new)
    for check, step in _all_checks(old).values():
        place = "the goal" if step is None else step.id
        if check.id not in now:
            yield f"check {check.id} of {place} is dropped ({check.claim})"
            continue
        after, carrier = now[check.id]
        if after.level < check.level:
            yield f"check {check.id} of {place} is weaker ({after.level}, was {check.level})"
        changed = set(differing(check, after)) - {"level"}
        if changed == {"rule"} and _is_heir(step, carrier, old, new):
            yield from _looser_rule(f"check {check.id} of {place}", check.rule, after.rule)
        elif changed or not _is_heir(step, carrier, old, new):
            yield f"check {check.id} of {place} is another check now"


def _looser_rule(what: str, old: str | None, new: str | None) -> Iterator[str]:
    """Yield how a rule that must hold asks for less now, or may do so."""
    if old is None or (new is not None and implies(new, old)):
        return
    if new is None or implies(old, new):
        yield f"{what} is looser ({new or 'no rule'}, was {old})"
    else:
        yield f"{what} has another rule now ({new}, was {old})"


def _is_heir(old: Step | None, new: Step | None, before: Plan, plan: Plan) -> bool:
    """True if a check still looks at the same step, or at one that took its place when it left."""
    if old is None or new is None:
        return old is new
    if old.id in plan.by_id or old.question is not None:
        return old.id == new.id and old.capability == new.capability
    added = (step for step in plan.steps if step.id not in before.by_id)
    renamed = any(step.capability == old.capability for step in added)
    return new.capability == old.capability or not renamed


def _obligations(old: Plan, new: Plan) -> Iterator[str]:
    kinds: tuple[tuple[str, tuple[Duty, ...], tuple[Duty, ...]], ...] = (
        ("constraint", old.constraints, new.constraints),
        ("abort condition", old.abort_conditions, new.abort_conditions),
        ("replan condition", old.replan_conditions, new.replan_conditions),
    )
    for name, before, after in kinds:
        now = {each.id: each for each in after}
        for each in before:
            yield from _lighter(f"{name} {each.id}", each, now.get(each.id))
    yield from _assumed(old, new)
    if old.goal != new.goal or old.task_type != new.task_type:
        yield "the goal is another one"


def _assumed(old: Plan, new: Plan) -> Iterator[str]:
    """Yield the assumptions that are no longer looked at, or stop less when they prove false."""
    now = {each.id: each for each in new.assumptions}
    for each in old.assumptions:
        after = now.get(each.id)
        if each.rule is None or (after is not None and after.status == "invalidated"):
            continue  # nobody looked, or what it stopped is stopped and planned anew
        if after is None or after.rule != each.rule:
            yield f"assumption {each.id} is not looked at as it was ({each.statement})"
            continue
        kept = {step for step in each.invalidates if step in new.by_id} - {*after.invalidates}
        yield from (f"assumption {each.id} no longer stops {step}" for step in sorted(kept))


def _lighter(what: str, old: Duty, new: Duty | None) -> Iterator[str]:
    if new is None:
        yield f"{what} is dropped"
    elif same(new, old):
        return
    elif set(differing(new, old)) != {"rule"}:
        yield f"{what} is changed"
    elif isinstance(old, Constraint):
        yield from _looser_rule(what, old.rule, new.rule)
    elif new.rule is None or not implies(old.rule, new.rule):
        yield f"{what} stops less than it did ({new.rule}, was {old.rule})"


def _labels(two: _Versions) -> Iterator[str]:
    more = _labels_of(two.new, two.catalog) - _labels_of(two.old, two.catalog)
    yield from (f"data labelled {label} is read as well" for label in sorted(more))


def _labels_of(plan: Plan, catalog: Catalog | None) -> set[str]:
    specs = (contract_of(step, catalog) for step in plan.steps)
    return {label for spec in specs if spec for label in spec.labels.confidentiality}


def _limits(old: Budget, new: Budget) -> Iterator[str]:
    for name in ("max_usd", "max_tokens", "max_seconds", "max_model_calls", "max_tool_calls"):
        yield from _more(name, getattr(old, name), getattr(new, name))
    yield from _more("max_replans", old.max_replans, new.max_replans)
    yield from _more("deadline", old.deadline, new.deadline)
    if new.min_level < old.min_level:
        yield f"budget: min_level is weaker ({new.min_level}, was {old.min_level})"


def _more(name: str, old: object, new: object) -> Iterator[str]:
    if old is not None and (new is None or new > old):  # type: ignore[operator]
        yield f"budget: {name} is larger ({'no limit' if new is None else new}, was {old})"
