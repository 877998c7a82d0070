"""What a person is shown, gathered from the journal for `plangate.graph.payload` to lay out."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from plangate.graph.payload import ApprovalCard, QuestionCard, approval_payload, question_payload
from plangate.journal.events import TriggerFired
from plangate.journal.session import Session
from plangate.nodes.kit import Kit
from plangate.plan.value.diff import PlanDiff
from plangate.plan.value.frozen import Json, parse
from plangate.plan.value.plan import Plan
from plangate.plan.value.refs import resolve_all
from plangate.plan.value.step import Step


def ask_approval(
    session: Session, kit: Kit, plan: Plan, question_id: str, expires_at: datetime
) -> dict[str, Any]:
    """Build the payload that asks for the approval of the current version."""
    proposed = session.view.plans[plan.version]
    checked = session.view.validated[plan.version]
    return approval_payload(
        ApprovalCard(
            question_id=question_id,
            run_id=session.run.run_id,
            plan=plan,
            plan_ref=proposed.plan,
            catalog=kit.catalog(session),
            policy_hash=kit.policy.content_hash,
            tier=checked.tier,
            reasons=checked.reasons,
            confirm=checked.confirm,
            estimate=checked.estimate,
            diff=parse(PlanDiff, session.load(proposed.diff)) if proposed.diff else None,
            expires_at=expires_at,
        )
    )


def ask_step(
    session: Session, plan: Plan, step: Step, question_id: str, expires_at: datetime
) -> dict[str, Any]:
    """Build the payload of a human step, with the values that it is about."""
    question = step.question
    assert question is not None, "layer 1 lets no human step pass without one"  # noqa: S101 (ours)
    return question_payload(
        QuestionCard(
            question_id=question_id,
            run_id=session.run.run_id,
            kind="step",
            text=question.text,
            audience=question.audience,
            answer_type=question.type,
            options=question.options,
            details=_details(session, plan, step),
            step=step.id,
            plan_version=plan.version,
            plan_hash=plan.content_hash,
            plan_ref=session.view.plans[plan.version].plan,
            expires_at=expires_at,
        )
    )


def ask_failure(
    session: Session,
    plan: Plan,
    fired: TriggerFired,
    question_id: str,
    expires_at: datetime,
) -> dict[str, Any]:
    """Build the packet of an escalation: what is done, what is known, what can be decided."""
    done = [name for name, seen in session.view.steps.items() if seen.status == "done"]
    tried = [
        {
            "attempt": key,
            "outcome": each.ended.outcome if each.ended else "unknown",
            "code": each.ended.error_code if each.ended else "",
            "says": each.ended.error if each.ended else "",
        }
        for key, each in session.view.attempts.items()
        if each.started.step == fired.step
    ]
    details: dict[str, Json] = {"trigger": fired.kind, "code": fired.code, "done_steps": done}
    effect = fired.kind == "effect_unknown"
    asks = (
        f"{fired.step}: it is not known whether this happened ({fired.says or fired.code}). "
        "Look outside, then settle it as done or failed, or have it asked again, or stop."
        if effect
        else f"{fired.kind}: {fired.says or fired.code}. Try again, or stop?"
    )
    kind: Literal["effect", "escalation"] = "effect" if effect else "escalation"
    return question_payload(
        QuestionCard(
            question_id=question_id,
            run_id=session.run.run_id,
            kind=kind,
            text=asks,
            details={**details, "attempts": tried},
            step=fired.step,
            plan_version=plan.version,
            plan_hash=plan.content_hash,
            plan_ref=session.view.plans[plan.version].plan,
            expires_at=expires_at,
        )
    )


def _details(session: Session, plan: Plan, step: Step) -> dict[str, Json]:
    values: dict[str, Json] = {"inputs": plan.inputs}
    for need in step.data_needs:
        seen = session.view.steps.get(need)
        if seen is not None and seen.output is not None:
            values[need] = session.load(seen.output)
    details = step.question.details if step.question else {}
    return {name: resolve_all(value, values) for name, value in details.items()}
