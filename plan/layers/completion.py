"""Layer 7: it can be told when each step and the goal are done, and when to give up."""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING

from plangate.plan.catalog import Effect
from plangate.plan.codes import issue
from plangate.plan.layers.effects import is_proved, needs_proof
from plangate.plan.layers.rules import rules_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plangate.plan.catalog import ToolSpec
    from plangate.plan.code import Severity
    from plangate.plan.issue import Issue
    from plangate.plan.layers.ground import Ground, LayerCheck
    from plangate.plan.value.step import Check, Step

_VAGUE = re.compile(
    r"\b(enough|reasonabl[ey]|sufficient(?:ly)?|appropriate(?:ly)?|adequate(?:ly)?|proper(?:ly)?"
    r"|good|well|suitable|acceptable|as needed|if possible|sensible|satisfactory)\b",
    re.IGNORECASE,
)


def checkable_steps(ground: Ground) -> Iterator[Issue]:
    """Each step says when it has succeeded; for an act the shape of its result is not enough."""
    for step, spec in ground.calls:
        if not any(_decides(check) for check in step.success):
            says = f"nothing shows that {spec.name!r} succeeded, beyond the shape of its result"
            severity: Severity | None = "error" if spec.effect.acts else None
            yield issue("no_check", says, step=step.id, field="success", severity=severity)


def decidable_checks(ground: Ground) -> Iterator[Issue]:
    """Each check has what its level needs, and words that can be measured."""
    for step, field, check in _checks(ground):
        lacking = _lacking(check)
        if lacking:
            says = f"check {check.id!r} of level {check.level} has no {lacking}"
            yield issue("uncheckable", says, step=step, field=field)
        vague = _VAGUE.search(check.claim) if check.rule is None else None
        if vague:
            says = f"check {check.id!r} says {vague[0]!r} and has no rule"
            yield issue("vague_check", says, step=step, field=f"{field}.claim")


def goal_is_checked(ground: Ground) -> Iterator[Issue]:
    """The goal has criteria, strong enough, that look at what the run did."""
    plan = ground.plan
    if not plan.success_criteria:
        says = "nothing says when the goal is reached"
        yield issue("no_criteria", says, field="success_criteria")
    for at, check in enumerate(plan.success_criteria):
        field = f"success_criteria[{at}]"
        if check.level < plan.budget.min_level:
            says = f"criterion {check.id!r} is {check.level}; the budget demands"
            says += f" {plan.budget.min_level}"
            yield issue("weak_criterion", says, field=f"{field}.level")
        if check.rule is not None and check.tool is None and not ground.read_by(check.rule):
            says = f"criterion {check.id!r} looks at no step and uses no tool"
            yield issue("no_evidence", says, field=f"{field}.rule")


def an_end(ground: Ground) -> Iterator[Issue]:
    """The plan says when to give up."""
    if not ground.plan.abort_conditions:
        yield issue("no_abort", "nothing says when to give up", field="abort_conditions")


def failures_are_routed(ground: Ground) -> Iterator[Issue]:
    """An act whose outcome only a person could tell says so in the plan."""
    for step, spec in ground.calls:
        asks = spec.effect.acts and not spec.reconciles and not spec.idempotent
        if asks and not any(route.on == "unknown" for route in step.routes):
            says = f"if {spec.name!r} times out, only a person can tell whether it happened"
            severity: Severity | None = "warning" if spec.effect is Effect.WRITE else None
            yield issue("unrouted_failure", says, step=step.id, field="routes", severity=severity)


def no_dead_steps(ground: Ground) -> Iterator[Issue]:
    """Each step changes something, or somebody uses what it gives."""
    used = _used(ground)
    for step, spec in ground.calls:
        if not spec.effect.acts and step.id not in used:
            says = f"nobody uses what {spec.name!r} gives, and it changes nothing"
            yield issue("dead_step", says, step=step.id)


CHECKS: tuple[LayerCheck, ...] = (
    checkable_steps,
    decidable_checks,
    goal_is_checked,
    an_end,
    failures_are_routed,
    no_dead_steps,
)


def missing_verifiers(ground: Ground) -> tuple[str, ...]:
    """Return the steps without a check, or without one strong enough for their effect."""
    return tuple(step.id for step, spec in ground.calls if not _is_verified(step, spec))


def _is_verified(step: Step, spec: ToolSpec) -> bool:
    decides = any(_decides(check) for check in step.success)
    return decides and (is_proved(step) or not needs_proof(spec))


def _checks(ground: Ground) -> Iterator[tuple[str | None, str, Check]]:
    for step in ground.plan.steps:
        for at, check in enumerate(step.success):
            yield step.id, f"success[{at}]", check
    for at, check in enumerate(ground.plan.success_criteria):
        yield None, f"success_criteria[{at}]", check


def _lacking(check: Check) -> str:
    """Return what a check needs and does not have; empty for nothing."""
    if check.level in ("L1", "L2") and check.rule is None:
        return "rule"
    return "tool" if check.level == "L2" and check.tool is None else ""


def _decides(check: Check) -> bool:
    return check.level > "L0" and not _lacking(check)


def _used(ground: Ground) -> frozenset[str]:
    """Ids of steps that somebody needs: for their output, as a guard, or because policy says so."""
    plan = ground.plan
    read = (use.ref.head for use in ground.uses if use.ref.head != use.step)
    ruled = (
        step for each in rules_in(plan) for step in ground.read_by(each.rule) if step != each.step
    )
    guards = {step.id for step in plan.steps if step.success or step.preconditions}
    waited = (need for step in plan.steps for need in step.after if need in guards)
    taken = (
        name
        for step in plan.steps
        for name in (step.compensation, *(route.step for route in step.routes))
        if name is not None
    )
    return frozenset(chain(read, ruled, waited, taken, _demanded(ground)))


def _demanded(ground: Ground) -> Iterator[str]:
    demanded = {
        capability
        for rule in ground.facts.policy.requires
        for capability in (*rule.ancestors, *rule.followed_by)
    }
    return (step.id for step in ground.plan.steps if step.capability in demanded)
