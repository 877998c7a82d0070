"""What events about limits change in a view of their run, and how what acts took is added up."""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING

from plangate.journal.spending import (
    BudgetStopped,
    LimitRaised,
    PartlyReported,
    Reestimated,
    SpendingLost,
)
from plangate.plan.spent import Spent

if TYPE_CHECKING:
    from plangate.journal.view import RunView


@singledispatch
def change_spending(event: object, view: RunView) -> None:
    """Change `view` as `event` says; one that is about no limit changes nothing."""
    del event, view


@change_spending.register(BudgetStopped)
def _stopped(event: BudgetStopped, view: RunView) -> None:
    view.stopped = event


@change_spending.register(PartlyReported)
def _partly_reported(event: PartlyReported, view: RunView) -> None:
    view.partial = event.report


@change_spending.register(LimitRaised)
def _raised(event: LimitRaised, view: RunView) -> None:
    view.raised.append(event)


@change_spending.register(SpendingLost)
def _spending_lost(event: SpendingLost, view: RunView) -> None:
    lost = Spent(
        usd=event.usd,
        tokens=event.tokens,
        model_calls=event.model_calls,
        tool_calls=event.tool_calls,
    )
    spend(view, lost, event.step)


@change_spending.register(Reestimated)
def _reestimated(event: Reestimated, view: RunView) -> None:
    view.reestimated.append(event)


def spend(view: RunView, cost: Spent, step: str | None) -> None:
    """Add what an act took to its run, and to its step where it has one."""
    total = view.spent + cost
    view.spent_usd, view.tokens = total.usd, total.tokens
    view.tool_calls, view.model_calls = total.tool_calls, total.model_calls
    if step is not None:
        view.by_step[step] = view.by_step.get(step, Spent()) + cost
