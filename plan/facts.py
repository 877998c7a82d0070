"""What validation may know beside the plan: one frozen value, so that a check can ask nobody."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from plangate.plan.forecast import Forecast, PlanEstimate, Range, RoleEstimate, StepEstimate
from plangate.plan.limits import in_force
from plangate.plan.value.frozen import Frozen

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from plangate.plan.catalog import Catalog
    from plangate.plan.flow.denial import Denial
    from plangate.plan.policy import Policy
    from plangate.plan.value.plan import Budget


__all__ = [
    "Facts",
    "Forecast",
    "History",
    "PlanEstimate",
    "Range",
    "Rights",
    "RoleEstimate",
    "StepEstimate",
]


class Rights(Frozen):
    """Who the run acts for, and what they may do."""

    principal: str
    roles: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    tenant: str | None = None


@dataclass(frozen=True, slots=True)
class History:
    """Verified runs of the past, by task type, with the same policy and catalog and not expired."""

    verified: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything that the validation layers may read.

    Args:
        catalog: The contracts that the principal sees.
        rights: The principal.
        policy: The rules; there is no default policy.
        budget: The agent's limits, which hold where a plan says nothing.
        estimate: None before the plan was estimated: then layer 6 checks what it can without it.
        history: Past success, for the tier.
        denied: What was denied earlier in the same run.
        turned_down: Who asked for another plan than the last one they saw, if nothing was approved
            since; empty: nobody.
        step_model: Name of the chat model that carries out model steps; None: there is none.
        raised: Limits of this run that a person raised, by name.
        now: The current time (aware, UTC).
    """

    catalog: Catalog
    rights: Rights
    policy: Policy
    budget: Budget | None = None
    estimate: PlanEstimate | None = None
    history: History = field(default_factory=History)
    denied: tuple[Denial, ...] = ()
    turned_down: str = ""
    step_model: str | None = None
    raised: Mapping[str, Any] = field(default_factory=dict)
    now: datetime

    def limits(self, budget: Budget) -> Budget:
        """Return a plan's budget as it holds, see `plangate.plan.limits.in_force`."""
        return in_force(budget, agent=self.budget, raised=self.raised, policy=self.policy)
