"""What a step waits for, who takes over when it fails, and how many predecessors are enough.

A step that a `fallback` route names stands in for the step with that route: it runs only if that
one fails so, and then gives its output in that one's place. Whoever waits for the one waits for
both, so that nobody starts on a result that is not there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plangate.plan.outcome import Outcome
    from plangate.plan.value.plan import Plan
    from plangate.plan.value.step import Route, Step

Word: TypeAlias = Literal["wait", "go", "never"]


def stand_ins(plan: Plan) -> Mapping[str, str]:
    """Return, by the id of each stand-in, the step that it stands in for.

    A step that names itself, or none that there is, has no stand-in; of two that name the same one
    the first has it. Layer 2 reports each.
    """
    found: dict[str, str] = {}
    for step in plan.steps:
        for route in step.routes:
            named = route.step if route.action == "fallback" else None
            if named is not None and named != step.id and named in plan.by_id:
                found.setdefault(named, step.id)
    return found


def waits(plan: Plan) -> Mapping[str, frozenset[str]]:
    """Return, for each step, all that has to settle before it can start; not all of it need exist.

    That is what its own fields name, what it stands in for, and the stand-ins of both.
    """
    principals = stand_ins(plan)
    own = {step.id: step.needs for step in plan.by_id.values()}
    if not principals:
        return own
    after: dict[str, list[str]] = {}
    for stand_in, principal in principals.items():
        after.setdefault(principal, []).append(stand_in)
    return {
        step: _with_stand_ins(needs, after, principals.get(step), step)
        for step, needs in own.items()
    }


def _with_stand_ins(
    needs: frozenset[str], after: Mapping[str, list[str]], principal: str | None, step: str
) -> frozenset[str]:
    found = set(needs)
    waiting = list(needs)
    while waiting:
        for stand_in in after.get(waiting.pop(), ()):
            if stand_in not in found and stand_in != step:
                found.add(stand_in)
                waiting.append(stand_in)
    return frozenset(found if principal is None else found | {principal})


def route_of(step: Step, code: str, outcome: Outcome) -> Route | None:
    """Return where the plan sends a failure of a step: by its code first, then by its class."""
    by = {route.on: route for route in step.routes}
    return by.get(code) or by.get(outcome)


def is_strict(step: Step) -> bool:
    """True if the step starts only when all that it waits for is done or was skipped.

    So does one whose join asks for all of its predecessors by number, or for a number that cannot
    be (an issue of layer 2).
    """
    join = step.join
    wants_all = join.mode == "all" or (
        join.mode == "at_least" and not 1 <= (join.n or 0) < len(step.needs)
    )
    return wants_all and join.on_failure == "fail"


def judge(step: Step, *, done: int, left: int, holds: bool) -> Word:
    """Decide whether a step whose join is not strict may start.

    Args:
        step: The step.
        done: How many of its predecessors are done.
        left: How many have not settled.
        holds: Whether the rule of a `when` join holds now.
    """
    join = step.join
    enough = {"all": not left, "any": done >= 1, "at_least": done >= (join.n or 1), "when": holds}
    if enough[join.mode]:
        return "go"
    if left:
        return "wait"
    return "go" if join.on_failure == "partial" else "never"
