"""Steps that a run leaves undone: each ends once, with why; what may have happened is unknown."""

from __future__ import annotations

from collections.abc import Sequence

from plangate.journal.events import StepEnded
from plangate.journal.ledger import UNSETTLED, EffectRow
from plangate.journal.session import Session
from plangate.plan.value.plan import Plan

BY_GOAL_CHANGE = "cancelled_by_goal_change"
"""Code of a step that will not run since the goal is another now."""

_OPEN = ("pending", "running", "waiting")


def end_revised(session: Session) -> None:
    """End the steps that a change of goal leaves undone, unless one of them has ended by now."""
    revised = session.view.revised
    if revised is None:
        return
    for step in revised.cancelled_step_ids:
        _end(
            session,
            step,
            code=BY_GOAL_CHANGE,
            why=f"the goal was changed by {revised.confirmed_by}",
        )


def end_rest(session: Session, plan: Plan | None, effects: Sequence[EffectRow]) -> None:
    """End the steps of a cancelled run; what may have happened outside is not called off.

    Args:
        session: The run.
        plan: The current version; None: it cannot be read, so only steps that were begun end.
        effects: The run's rows of the ledger.
    """
    unsettled = {row.step for row in effects if row.state in UNSETTLED}
    begun = [*session.view.steps, *sorted(unsettled - session.view.steps.keys())]
    for step in begun if plan is None else [step.id for step in plan.steps]:
        says = "the run was cancelled"
        if step in unsettled:
            _end(session, step, code="outcome_unknown", why=says, unknown=True)
        else:
            _end(session, step, code="run_cancelled", why=says)


def _end(session: Session, step: str, *, code: str, why: str, unknown: bool = False) -> None:
    seen = session.view.steps.get(step)
    if seen is not None and seen.status not in _OPEN:
        return
    session.emit(
        StepEnded(
            step=step,
            plan_version=session.view.version,
            status="unknown" if unknown else "cancelled",
            outcome="unknown" if unknown else "cancelled",
            error_code=code,
            why=why,
        )
    )
