"""Events about what a plan takes for true: what the results of its steps said of it."""

from __future__ import annotations

from typing import Literal

from plangate.plan.value.frozen import Frozen


class AssumptionSettled(Frozen):
    """An assumption of the plan was shown to be true, or to be false."""

    type: Literal["assumption_settled"] = "assumption_settled"
    assumption: str
    status: Literal["verified", "invalidated"]
    plan_version: int
    says: str
    """The statement."""

    rule: str
    evidence: tuple[str, ...] = ()
    """Attempts whose results the rule read, as `obs://S2-A1`."""

    stops: tuple[str, ...] = ()
    """Steps that are not released any more."""
