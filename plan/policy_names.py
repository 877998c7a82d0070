"""A policy speaks of tools that the agent has: a rule for another protects nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plangate.plan.errors import ConfigError
from plangate.plan.shape.scope import near
from plangate.plan.shape.shape import compile_shape

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from plangate.plan.catalog import ToolSpec
    from plangate.plan.policy import Policy

_KINDS = ("*", "model", "agent")
_ABOUT_EFFECTS = ("[[threshold]] tool", "[[quorum]] tool")
"""Rules that weigh what acts, which steps of these kinds never do."""


def need_known(policy: Policy, tools: Mapping[str, ToolSpec]) -> None:
    """Refuse a policy that speaks of a tool, or of an argument, that the agent does not have.

    Args:
        policy: As read.
        tools: All tools of the agent, by name, whoever may call them.

    Raises:
        ConfigError: It names each rule, what it names, and what comes near.
    """
    faults = [*_unknown_tools(policy, tools), *_unknown_arguments(policy, tools)]
    if faults:
        raise ConfigError(
            f"the policy speaks of what the agent does not have: {'; '.join(faults)}",
            hint="Correct the names; a rule for a tool that is not there protects nothing.",
        )


def _unknown_tools(policy: Policy, tools: Mapping[str, ToolSpec]) -> Iterator[str]:
    for key, name in _named(policy):
        kinds = _KINDS[:1] if key in _ABOUT_EFFECTS else _KINDS
        if name in tools or name in kinds or name.startswith("human:"):
            continue
        found = ", ".join(near(name, tuple(tools)))
        yield f"{key} {name!r}" + (f" (near: {found})" if found else "")


def _unknown_arguments(policy: Policy, tools: Mapping[str, ToolSpec]) -> Iterator[str]:
    for each in policy.thresholds:
        spec = tools.get(each.tool)
        known = compile_shape(spec.params).fields if spec is not None else (each.arg,)
        if each.arg not in known:
            yield f"[[threshold]] arg {each.arg!r} of {each.tool} (it has {', '.join(known)})"


def _named(policy: Policy) -> Iterator[tuple[str, str]]:
    """Yield each key of the file that names a tool, and the name."""
    yield from (("[[allow]] tool", each.tool) for each in policy.allows)
    yield from (("[[deny]] tool", each.tool) for each in policy.denies)
    yield from (("[[threshold]] tool", each.tool) for each in policy.thresholds)
    yield from (("[[quorum]] tool", each.tool) for each in policy.quorums)
    yield from (("[[label]] tool", each.tool) for each in policy.labels)
    for rule in policy.requires:
        yield "[[require]] before", rule.before
        yield from (("[[require]] ancestors", name) for name in rule.ancestors)
        yield from (("[[require]] followed_by", name) for name in rule.followed_by)
