"""Which question stands next, read off the journal: an approval, a failure, or a human step."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias

from plangate.journal.events import DecisionTaken, QuestionAsked
from plangate.journal.session import Session
from plangate.nodes.kit import Kit
from plangate.nodes.payloads import ask_approval, ask_failure, ask_step
from plangate.plan.flow.authority import grown
from plangate.plan.value.frozen import digest
from plangate.plan.value.plan import Plan
from plangate.plan.value.step import Step

Kind: TypeAlias = Literal["approval", "step", "effect", "escalation"]


def next_question(session: Session, kit: Kit, plan: Plan) -> QuestionAsked | None:
    """Return what a person must be asked before the run can go on; None: nothing.

    The payload is put into the journal; its digest and the plan's hash bind the answer.
    """
    view = session.view
    question_id = f"{session.run.run_id}-q{len(view.questions) + 1}"
    expires = kit.now() + timedelta(seconds=kit.policy.approval_ttl_s)
    fired = view.open_trigger
    if needs_approval(session, plan) or (fired is not None and fired.kind == "person"):
        payload = ask_approval(session, kit, plan, question_id, expires)
        return _asked(session, plan, "approval", payload, None)
    if fired is not None:
        payload = ask_failure(session, plan, fired, question_id, expires)
        kind: Kind = "effect" if fired.kind == "effect_unknown" else "escalation"
        return _asked(session, plan, kind, payload, fired.step)
    step = waiting_step(session, plan)
    if step is None:
        return None
    payload = ask_step(session, plan, step, question_id, expires)
    return _asked(session, plan, "step", payload, step.id)


def _asked(
    session: Session, plan: Plan, kind: Kind, payload: dict[str, Any], step: str | None
) -> QuestionAsked:
    return QuestionAsked(
        question_id=payload["question_id"],
        kind=kind,
        audience=payload.get("audience", "operator"),
        payload=session.put(payload),
        payload_sha256=digest(payload),
        plan_version=plan.version,
        content_hash=plan.content_hash,
        step=step,
        expires_at=datetime.fromisoformat(payload["expires_at"]),
    )


def needs_approval(session: Session, plan: Plan) -> bool:
    """True if this very content has no approval and its tier asks for one."""
    view = session.view
    checked = view.validated[plan.version]
    if plan.content_hash in view.approved:
        return False
    return checked.tier != "auto"


def carried(session: Session, kit: Kit, plan: Plan) -> DecisionTaken | None:
    """Let a repaired version go on under the approval it comes from, if its authority fits inside.

    Returns:
        The decision to record; None where there is nothing to carry or the boundary grew.
    """
    view = session.view
    if plan.content_hash in view.approved or plan.author.kind != "replanner":
        return None
    for version in range(plan.version - 1, 0, -1):
        granted = view.approved.get(view.plans[version].content_hash)
        if granted is None:
            continue
        if grown(kit.plan(session, version), plan, kit.catalog(session)):
            return None
        return DecisionTaken(
            question_id=granted.question_id,
            decision="carried",
            by="plangate",
            comment=f"inside the authority granted for version {version}",
            content_hash=plan.content_hash,
            steps=granted.steps,
            expires_at=granted.expires_at,
        )
    return None


def waiting_step(session: Session, plan: Plan) -> Step | None:
    """Return the first human step that could go on with an answer."""
    statuses = {step: each.status for step, each in session.view.steps.items()}
    answered = {
        each.step
        for key, each in session.view.questions.items()
        if each.kind == "step" and _is_answered(session, key)
    }
    for step in plan.steps:
        if step.kind != "human" or step.id in answered:
            continue
        if statuses.get(step.id, "pending") not in ("pending", "waiting"):
            continue
        if all(statuses.get(need) in ("done", "skipped") for need in step.needs):
            return step
    return None


def _is_answered(session: Session, question_id: str) -> bool:
    decision = session.view.decisions.get(question_id)
    return decision is not None and decision.decision == "answer"
