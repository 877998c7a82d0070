"""The caps of a policy file: on one step, on one run, on one day of a principal.

A cap that is not there is no limit of that kind; one that makes no sense is refused as the file is
read. No plan, agent or person goes over what stands here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, Field

from plangate.plan.value.amounts import Count, Moment, Seconds, Usd
from plangate.plan.value.frozen import Frozen

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from plangate.plan.policy import Policy
    from plangate.plan.value.plan import Budget, Plan


def _aware(said: datetime) -> datetime:
    if said.tzinfo is None:
        raise ValueError("has no time zone: write 2026-11-30T12:00:00Z")
    return said


class DayCaps(Frozen):
    """Most that the runs of one principal may take in one day, from midnight to midnight UTC."""

    max_usd: Usd | None = None
    max_tokens: Count | None = None
    max_model_calls: Count | None = None
    max_tool_calls: Count | None = None


class StepCaps(DayCaps):
    """Most that one step may take in one run, all its attempts and checks together."""

    max_seconds: Annotated[Seconds, Field(gt=0)] | None = None
    """In attempts; the pauses between them are the run's time."""


class RunCaps(StepCaps):
    """Most that a run may take, whatever its plan, its agent or a person who raises it says."""

    max_replans: Count | None = None
    deadline: Annotated[Moment, AfterValidator(_aware)] | None = None


class Limits(Frozen):
    """`[limits.step]`, `[limits.run]` and `[limits.day]` of a policy file."""

    step: StepCaps = Field(default_factory=StepCaps)
    run: RunCaps = Field(default_factory=RunCaps)
    day: DayCaps = Field(default_factory=DayCaps)


def own_caps(plan: Plan) -> dict[str, StepCaps]:
    """Return the limits that steps of a plan bring with them: the envelopes of its agents."""
    return {
        step.id: StepCaps(max_usd=step.autonomy.max_usd, max_model_calls=step.autonomy.max_steps)
        for step in plan.steps
        if step.autonomy is not None
    }


RUN_CAPS = tuple(RunCaps.model_fields)
"""Names of what a policy can cap in a plan's budget."""


def in_force(
    said: Budget, *, agent: Budget | None, raised: Mapping[str, Any], policy: Policy
) -> Budget:
    """Return the limits that hold for a run.

    Args:
        said: What its plan says.
        agent: What its agent says: counts where the plan says nothing.
        raised: What a person raised, by name.
        policy: Nothing goes over its caps.
    """
    silent = {
        name: getattr(agent, name)
        for name in type(said).model_fields
        if agent is not None and getattr(said, name) is None
    }
    return policy.capped(with_raises(said.model_copy(update=silent), raised))


def with_raises(budget: Budget, raised: Mapping[str, Any]) -> Budget:
    """Return a budget with limits that a person raised; one that is larger by itself stays."""
    more = {
        name: amount
        for name, amount in raised.items()
        if (holds := getattr(budget, name)) is not None and amount > holds
    }
    return budget.model_copy(update=more)
