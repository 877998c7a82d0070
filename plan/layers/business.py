"""Layer 4: what the organisation allows, and what it demands around a protected step."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from plangate.plan.codes import issue

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from plangate.plan.issue import Issue
    from plangate.plan.layers.ground import Ground, LayerCheck
    from plangate.plan.policy import Require
    from plangate.plan.value.step import Step


def allowed(ground: Ground) -> Iterator[Issue]:
    """Policy lets the principal use each tool, in steps and in checks."""
    said: dict[str, str | None] = {}
    policy, rights = ground.facts.policy, ground.facts.rights
    for site in ground.sites:
        if site.spec is None:
            continue
        if site.tool not in said:
            said[site.tool] = policy.permits(site.spec, rights)
        if reason := said[site.tool]:
            says = f"policy refuses {site.tool!r} to {rights.principal!r}: {reason}"
            yield issue("policy_denied", says, step=site.id, field=f"{site.prefix}tool")


def required(ground: Ground) -> Iterator[Issue]:
    """Each protected step has what policy demands before and after it."""
    by_capability: dict[str, list[Step]] = defaultdict(list)
    for step in ground.plan.steps:
        by_capability[step.capability].append(step)
    for rule in ground.facts.policy.requires:
        for capability in rule.ancestors:
            yield from _before(ground, rule, capability, by_capability)
        for capability in rule.followed_by:
            yield from _after(ground, rule, capability, by_capability)


CHECKS: tuple[LayerCheck, ...] = (allowed, required)


def _before(
    ground: Ground, rule: Require, capability: str, by_capability: Mapping[str, Sequence[Step]]
) -> Iterator[Issue]:
    guards = by_capability.get(capability, ())
    there = ground.mask(guard.id for guard in guards)
    firm = ground.mask(guard.id for guard in guards if not _can_be_skipped(guard))
    for step in by_capability.get(rule.before, ()):
        before = ground.shapes.ancestors[step.id].bits
        if before & firm:
            continue
        code, what = "wrong_order", f"{_ids(guards)} need not settle first"
        if not guards:
            code, what = "missing_ancestor", "no step does that"
        elif before & there:
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


def _can_be_skipped(step: Step) -> bool:
    return step.when is not None or any(route.action == "skip" for route in step.routes)


def _because(says: str, rule: Require) -> str:
    return f"{says} ({rule.reason})" if rule.reason else says


def _ids(steps: Sequence[Step]) -> str:
    more = ", …" if len(steps) > 3 else ""  # noqa: PLR2004
    return ", ".join(step.id for step in steps[:3]) + more
