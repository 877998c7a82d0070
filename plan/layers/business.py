"""Layer 4: what the organisation allows, and what it demands around a protected step."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from plangate.plan.codes import issue
from plangate.plan.flow.sure import Sure
from plangate.plan.tier import cost_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from plangate.plan.issue import Issue
    from plangate.plan.layers.ground import Ground, LayerCheck
    from plangate.plan.policy_rules import Require
    from plangate.plan.value.step import Step


def allowed(ground: Ground) -> Iterator[Issue]:
    """Policy lets the principal use each tool, in steps and in checks."""
    said: dict[str, str | None] = {}
    policy, rights = ground.facts.policy, ground.facts.rights
    for site in ground.sites:
        if site.spec is None:
            continue
        if site.tool not in said:
            is_other = policy.wrong_tenant(site.spec, rights)  # layer 5 says that
            said[site.tool] = None if is_other else policy.permits(site.spec, rights)
        if reason := said[site.tool]:
            says = f"policy refuses {site.tool!r} to {rights.principal!r}: {reason}"
            yield issue("policy_denied", says, step=site.id, field=f"{site.prefix}tool")


def required(ground: Ground) -> Iterator[Issue]:
    """Each protected step has what policy demands before and after it."""
    rules = ground.facts.policy.requires
    by_capability: dict[str, list[Step]] = defaultdict(list)
    for step in ground.plan.steps:
        by_capability[step.capability].append(step)
    demanded = {capability for rule in rules for capability in rule.ancestors}
    guards = [guard.id for name in sorted(demanded) for guard in by_capability.get(name, ())]
    sure = Sure(ground.plan, ground.order, guards)
    for rule in rules:
        for capability in rule.ancestors:
            yield from _before(ground, rule, by_capability.get(capability, ()), capability, sure)
        for capability in rule.followed_by:
            yield from _after(ground, rule, capability, by_capability)


def within_ceiling(ground: Ground) -> Iterator[Issue]:
    """No plan goes beyond what policy lets any plan do."""
    ceiling = ground.facts.policy.autonomy
    for step, spec in ground.calls:
        if spec.effect.rank > ceiling.max_effect.rank:
            says = f"{spec.name!r} has effect {spec.effect.value!r}; policy lets no plan go beyond "
            says += repr(ceiling.max_effect.value)
            yield issue("over_autonomy", says, step=step.id, field="tool")
    count, most = len(ground.plan.steps), ceiling.max_steps
    if most is not None and count > most:
        yield issue("over_autonomy", f"has {count} steps; policy allows {most}", field="steps")
    if ceiling.max_usd is not None:
        cost = cost_of(ground.plan, ground.facts)
        if cost is None or cost > ceiling.max_usd:
            known = "an unknown sum" if cost is None else f"{cost:f} USD"
            says = f"may cost {known}; policy allows {ceiling.max_usd:f} USD"
            yield issue("over_autonomy", says, field="budget.max_usd")


CHECKS: tuple[LayerCheck, ...] = (allowed, required, within_ceiling)


def _before(
    ground: Ground, rule: Require, guards: Sequence[Step], capability: str, sure: Sure
) -> Iterator[Issue]:
    steps = [step for step in ground.plan.steps if step.capability == rule.before]
    there = ground.mask(guard.id for guard in guards)
    firm = sure.bits([guard.id for guard in guards])
    for step in steps:
        if sure.holds(step.id, firm):
            continue
        code, what = "wrong_order", f"{_ids(guards)} need not settle first"
        if not guards:
            code, what = "missing_ancestor", "no step does that"
        elif ground.shapes.ancestors[step.id].bits & there:
            code, what = "skippable_guard", f"{_ids(guards)} can be skipped"
        says = f"{rule.before!r} needs {capability!r} before it, and {what}"
        yield issue(code, _because(says, rule), step=step.id, field="after")


def _after(
    ground: Ground, rule: Require, capability: str, by_capability: Mapping[str, Sequence[Step]]
) -> Iterator[Issue]:
    seen_after = 0
    for follower in by_capability.get(capability, ()):
        seen_after |= ground.shapes.ancestors[follower.id].bits
    for step in by_capability.get(rule.before, ()):
        if not ground.holds(seen_after, step.id):
            says = f"{rule.before!r} needs {capability!r} after it, and no step does that"
            yield issue("missing_follow_up", _because(says, rule), step=step.id)


def _because(says: str, rule: Require) -> str:
    return f"{says} ({rule.reason})" if rule.reason else says


def _ids(steps: Sequence[Step]) -> str:
    more = ", …" if len(steps) > 3 else ""  # noqa: PLR2004
    return ", ".join(step.id for step in steps[:3]) + more
