"""What a policy says about a plan: which rule decides on each step, what it demands, who agrees.

For people who write policies and wonder; it decides nothing that the layers do not decide.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from plangate.plan.contract import contract_of, tools_of
from plangate.plan.layers.business import required
from plangate.plan.layers.ground import Ground
from plangate.plan.tier import over_limit, tier_of
from plangate.plan.value.frozen import Frozen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plangate.plan.catalog import ToolSpec
    from plangate.plan.facts import Facts
    from plangate.plan.policy_rules import Require, ToolRule
    from plangate.plan.value.plan import Plan
    from plangate.plan.value.step import Step


class StepSaid(Frozen):
    """What the policy says about one step."""

    step: str
    capability: str
    allowed: bool
    by: str
    """The rule that allows or denies it, or why none does."""

    requires: tuple[str, ...] = ()
    """What must stand around it, and whether it does."""

    limits: tuple[str, ...] = ()
    """Thresholds for its arguments, and whether they are passed."""


class PolicySaid(Frozen):
    """What the policy says about a plan."""

    steps: tuple[StepSaid, ...]
    tier: str
    reasons: tuple[str, ...]
    confirm: tuple[str, ...]
    quorum: int
    """How many different people must approve."""

    quorum_roles: tuple[str, ...] = ()
    ceiling: str
    """What no plan may go beyond."""


def explain(plan: Plan, facts: Facts) -> PolicySaid:
    """Say of each step which rule decides, and of the plan who must agree.

    Args:
        plan: A plan without cycles.
        facts: Policy, contracts and rights to explain it by.
    """
    tiering, policy = tier_of(plan, facts), facts.policy
    acting = [step.tool for step in plan.steps if step.tool is not None]
    ceiling = policy.autonomy
    most = [f"effect {ceiling.max_effect.value}"]
    most += [f"{ceiling.max_steps} steps"] if ceiling.max_steps is not None else []
    most += [f"{ceiling.max_usd:f} USD"] if ceiling.max_usd is not None else []
    return PolicySaid(
        steps=tuple(_step(step, plan, facts) for step in plan.steps),
        tier=tiering.tier,
        reasons=tiering.reasons,
        confirm=tiering.confirm,
        quorum=policy.quorum_for(acting),
        quorum_roles=tuple(
            dict.fromkeys(role for rule in policy.quorums_of(acting) for role in rule.roles)
        ),
        ceiling=", ".join(most),
    )


def _step(step: Step, plan: Plan, facts: Facts) -> StepSaid:
    allowed, by = _by(step, facts)
    return StepSaid(
        step=step.id,
        capability=step.capability,
        allowed=allowed,
        by=by,
        requires=tuple(_requires(step, plan, facts)),
        limits=tuple(_limits(step, plan, facts)),
    )


def _by(step: Step, facts: Facts) -> tuple[bool, str]:
    spec = contract_of(step, facts.catalog)
    if spec is None and step.tool is None:
        return True, "calls no tool"
    if spec is None:
        return False, facts.catalog.forbidden.get(step.tool or "", "there is no such tool")
    for each in tools_of(step, facts.catalog):
        allowed, by = _rule(each, facts)
        if not allowed:
            return False, f"{each.name}, which it may call: {by}"
    return _rule(spec, facts)


def _rule(spec: ToolSpec, facts: Facts) -> tuple[bool, str]:
    policy, rights = facts.policy, facts.rights
    for at, rule in enumerate(policy.denies, 1):
        if rule.matches(spec, rights):
            return False, _named("deny", at, rule)
    if refusal := policy.permits(spec, rights):
        return False, refusal
    at, allow = next(
        (at, rule) for at, rule in enumerate(policy.allows, 1) if rule.matches(spec, rights)
    )
    return True, _named("allow", at, allow)


def _named(kind: str, at: int, rule: ToolRule) -> str:
    said = rule.model_dump(mode="json", exclude_defaults=True)
    return f"[[{kind}]] {at}: " + ", ".join(f"{name} = {value}" for name, value in said.items())


def _requires(step: Step, plan: Plan, facts: Facts) -> Iterator[str]:
    for rule in facts.policy.requires:
        if rule.before == step.capability:
            yield from _held(rule, step, plan, facts)


def _held(rule: Require, step: Step, plan: Plan, facts: Facts) -> Iterator[str]:
    parts = [("ancestors", "before", name) for name in rule.ancestors]
    parts += [("followed_by", "after", name) for name in rule.followed_by]
    for field, where, name in parts:
        one = rule.model_copy(update={"ancestors": (), "followed_by": (), field: (name,)})
        policy = facts.policy.model_copy(update={"requires": (one,)})
        broken = [
            each.says
            for each in required(Ground(plan, replace(facts, policy=policy)))
            if each.step == step.id
        ]
        yield f"{name} {where} it: " + (f"missing: {broken[0]}" if broken else "holds")


def _limits(step: Step, plan: Plan, facts: Facts) -> Iterator[str]:
    for limit in facts.policy.thresholds:
        if limit.tool == step.tool:
            over = over_limit(limit, step, plan, facts)
            says = f"{over} → {limit.tier}" if over else "within"
            yield f"{limit.arg} up to {limit.over}: {says}"
