"""Events about limits: what stopped at one, what was weighed, and what a person raised."""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

from plangate.journal.reference import Ref
from plangate.plan.facts import Range
from plangate.plan.value.frozen import Frozen, FrozenMap


class BudgetStopped(Frozen):
    """A limit would have been passed: the act was not begun, and the run can be resumed."""

    type: Literal["budget_stopped"] = "budget_stopped"
    limit: str
    """As `max_usd`, `step.max_seconds`, `day.max_tool_calls`."""

    spent: str
    allowed: str
    needs: str = ""
    """What the act would have taken."""

    step: str | None = None
    hint: str = ""
    """What to do."""


class PartlyReported(Frozen):
    """The report of a run that stopped at a limit: what is done, what is not."""

    type: Literal["partly_reported"] = "partly_reported"
    report: Ref


class LimitRaised(Frozen):
    """A person raised limits of this run, below the policy's caps."""

    type: Literal["limit_raised"] = "limit_raised"
    by: str
    limits: FrozenMap[str]
    """By name, what is allowed now: `{"max_usd": "2.00"}`."""

    was: FrozenMap[str]
    reason: str = ""


class SpendingLost(Frozen):
    """Acts were cut short before it was known what they cost: what was asked for counts as spent.

    A look that was cancelled, or calls of a model whose owner died.
    """

    type: Literal["spending_lost"] = "spending_lost"
    acts: tuple[str, ...]
    step: str | None = None
    usd: Decimal | None
    tokens: int = 0
    model_calls: int = 0
    tool_calls: int = 0


class Reestimated(Frozen):
    """What is left of the plan was weighed again, at what the steps took so far."""

    type: Literal["reestimated"] = "reestimated"
    trigger: Literal["overdue", "over_plan"]
    """`overdue` a step took more than twice its estimate · `over_plan` so did the money."""

    step: str
    plan_version: int
    time_ratio: float
    """Seconds that the ended steps took, over those that were estimated."""

    usd_ratio: Decimal | None
    seconds: Range
    """Expected of what is left, at that ratio."""

    usd_p50: Decimal | None
    usd_p95: Decimal | None
    left: FrozenMap[str]
    """By limit, what is left of it; a limit that is not set is not here."""

    decision: Literal["continue", "compress", "ask", "stop"]
    says: str
    continue_usd: Decimal | None
    """Expected cost of going on: what is left, at the rate at which steps succeeded."""

    repair_usd: Decimal | None
    """Expected cost of a repair first: a round of planning as measured, then what is left."""
