"""The answer to a human step: one that was given to exactly what the step asks now.

A question that was shown with other values was another question, whatever the step is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plangate.engine.outputs import Outputs
from plangate.plan.value.frozen import digest, thaw
from plangate.plan.value.refs import resolve_all

if TYPE_CHECKING:
    from plangate.journal.questions import (
        DecisionTaken,
    )
    from plangate.journal.session import Session
    from plangate.plan.value.frozen import Json
    from plangate.plan.value.plan import Plan
    from plangate.plan.value.step import Step


def details_of(session: Session, plan: Plan, step: Step) -> dict[str, Json]:
    """Return the values that a question shows, with references replaced.

    Raises:
        KeyError: A value is not there.
    """
    values = Outputs(plan, lambda: session.view, session.load).read_by(step)
    details = step.question.details if step.question else {}
    return {name: resolve_all(value, values) for name, value in details.items()}


def question_digest(session: Session, plan: Plan, step: Step) -> str:
    """Return the digest of what a human step asks and shows; empty if a value is not there."""
    try:
        details = details_of(session, plan, step)
    except KeyError:
        return ""
    asks = step.question.model_dump(mode="json") if step.question is not None else {}
    return digest({**asks, "details": thaw(details)})


def answer_to(session: Session, plan: Plan, step: Step) -> DecisionTaken | None:
    """Return the newest answer that was given to what the step asks now."""
    view = session.view
    now = question_digest(session, plan, step)
    for key, asked in reversed(view.questions.items()):
        decision = view.decisions.get(key)
        if asked.kind != "step" or asked.step != step.id or decision is None:
            continue
        is_same = (
            asked.args.get(step.id) == now
            if asked.args
            else asked.content_hash
            in (
                "",
                plan.content_hash,
            )
        )
        if decision.decision == "answer" and now and is_same:
            return decision
    return None
