"""Layer 2: can each step start, and does each failure lead somewhere?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plangate.plan.codes import issue
from plangate.plan.joins import stand_ins
from plangate.plan.schedule import ancestors, descendants_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from plangate.plan.issue import Issue
    from plangate.plan.layers.ground import Ground, LayerCheck
    from plangate.plan.schedule import AncestorSet

_SHOWN = 8


def known_steps(ground: Ground) -> Iterator[Issue]:
    """Each `after`, route and compensation names a step of this plan."""
    ids = ground.plan.by_id
    for step in ground.plan.steps:
        named = [(f"after[{at}]", name) for at, name in enumerate(step.after)]
        named += [(f"routes[{at}].step", route.step or "") for at, route in enumerate(step.routes)]
        named.append(("compensation", step.compensation or ""))
        for field, name in named:
            if name and name not in ids:
                says = f"{field} names {name!r}, which is not a step of this plan"
                hint = ground.nearest(name, ids)
                yield issue("unknown_step", says, step=step.id, field=field, hint=hint)


def no_cycles(ground: Ground) -> Iterator[Issue]:
    """Nothing waits for itself, directly or in a circle."""
    for cycle in cycles(ground):
        shown = [*cycle[:_SHOWN], "…"] if len(cycle) > _SHOWN else [*cycle, cycle[0]]
        yield issue(
            "cycle",
            f"{shown[0]} waits for {', which waits for '.join(shown[1:])}",
            step=cycle[0],
            field="after",
        )


def reachable(ground: Ground) -> Iterator[Issue]:
    """No step waits for something that can never be."""
    looping = {step for cycle in cycles(ground) for step in cycle}
    broken = _waits_for_nothing(ground)
    for step in unreachable(ground):
        if step not in looping and step not in broken:
            yield issue("unreachable_step", f"step {step!r} can never start", step=step)


def joins_can_be_met(ground: Ground) -> Iterator[Issue]:
    """No join asks for more predecessors than there are."""
    for step in ground.plan.steps:
        if step.join.mode == "at_least":
            wanted, there = step.join.n or 0, len(step.needs)
            if not 1 <= wanted <= there:
                says = f"join asks for {wanted} of {there} predecessors"
                yield issue("impossible_join", says, step=step.id, field="join.n")


def routes_lead_on(ground: Ground) -> Iterator[Issue]:
    """A step that takes over is named, and is another one."""
    before = _stand_ins_wait_for(ground)
    for step in ground.plan.steps:
        for at, route in enumerate(step.routes):
            field = f"routes[{at}]"
            if route.action in ("fallback", "compensate") and route.step is None:
                says = f"{route.action} on {route.on!r} names no step"
                yield issue("route_without_step", says, step=step.id, field=field)
            if route.step == step.id:
                says = f"{route.action} on {route.on!r} leads back to {step.id!r} itself"
                yield issue("fallback_to_itself", says, step=step.id, field=field)
            elif step.id in before.get(route.step or "", ()):
                says = f"{route.action} on {route.on!r} leads to {route.step!r}, which waits for"
                yield issue("fallback_to_itself", f"{says} {step.id!r}", step=step.id, field=field)
        if step.compensation == step.id:
            says = f"{step.id!r} would compensate itself"
            yield issue("fallback_to_itself", says, step=step.id, field="compensation")


def stand_ins_serve_one(ground: Ground) -> Iterator[Issue]:
    """Each stand-in stands in for one step: for whom it ran must never be a guess."""
    principals = stand_ins(ground.plan)
    for step in ground.plan.steps:
        for at, route in enumerate(step.routes):
            mine = principals.get(route.step or "", step.id) if route.action == "fallback" else ""
            if mine not in ("", step.id):
                says = f"{route.step!r} stands in for {mine!r} already"
                yield issue("stand_in_shared", says, step=step.id, field=f"routes[{at}].step")


CHECKS: tuple[LayerCheck, ...] = (
    known_steps,
    no_cycles,
    reachable,
    joins_can_be_met,
    routes_lead_on,
    stand_ins_serve_one,
)


def _stand_ins_wait_for(ground: Ground) -> Mapping[str, AncestorSet]:
    """For each step, what its own fields make it wait for: a stand-in must not wait for a failure.

    As a stand-in it waits for its principal in any case.
    """
    plan = ground.plan
    if not stand_ins(plan):
        return ground.shapes.ancestors
    return ancestors(plan, {step.id: step.needs for step in plan.by_id.values()})


def unreachable(ground: Ground) -> tuple[str, ...]:
    """Return the steps that can never start, in order of the plan."""
    placed = frozenset(ground.order)
    broken = _waits_for_nothing(ground)
    behind = descendants_of(ground.plan, broken) if broken else frozenset()
    lost = (ground.plan.by_id.keys() - placed) | broken | behind
    return tuple(dict.fromkeys(step.id for step in ground.plan.steps if step.id in lost))


def cycles(ground: Ground) -> Iterator[tuple[str, ...]]:
    """Yield a cycle for each group of steps that wait for each other, whatever stands before it."""
    unplaced = ground.plan.by_id.keys() - frozenset(ground.order)
    needs = {step: sorted(ground.needs[step] & unplaced) for step in sorted(unplaced)}
    for group in _groups(needs):
        here, walk = min(group), dict[str, int]()
        while here not in walk:
            walk[here] = len(walk)
            here = next((need for need in needs[here] if need in group), "")
            if not here:
                break  # a step alone, that only waits for a circle
        else:
            yield tuple(walk)[walk[here] :]


def _groups(needs: Mapping[str, Sequence[str]]) -> Iterator[set[str]]:
    """Yield the strongly connected components (Kosaraju, without recursion: plans are long)."""
    back: dict[str, list[str]] = {step: [] for step in needs}
    for step, each in needs.items():
        for need in each:
            back[need].append(step)
    seen: set[str] = set()
    finished = [step for start in needs for step in _finish(start, needs, seen)]
    seen.clear()
    for start in reversed(finished):
        if start not in seen:
            yield set(_finish(start, back, seen))


def _finish(start: str, edges: Mapping[str, Sequence[str]], seen: set[str]) -> Iterator[str]:
    """Yield what can be reached from a step and was not seen, each after all it leads to."""
    if start in seen:
        return
    seen.add(start)
    trail = [(start, iter(edges[start]))]
    while trail:
        step, rest = trail[-1]
        ahead = next((each for each in rest if each not in seen), None)
        if ahead is None:
            trail.pop()
            yield step
        else:
            seen.add(ahead)
            trail.append((ahead, iter(edges[ahead])))


def _waits_for_nothing(ground: Ground) -> frozenset[str]:
    ids = ground.plan.by_id.keys()
    return frozenset(step for step, needs in ground.needs.items() if not needs <= ids)
