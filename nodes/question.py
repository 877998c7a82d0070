"""Which question stands next, read off the journal: an approval, a failure, or a human step."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from plangate.journal.events import DecisionTaken, QuestionAsked
from plangate.journal.session import Session
from plangate.nodes.kit import Kit
from plangate.nodes.payloads import approval_payload, failure_payload, step_payload
from plangate.plan.flow.authority import grown
from plangate.plan.value.frozen import Json, digest
from plangate.plan.value.plan import Plan
from plangate.plan.value.step import Step

_APPROVAL_TRIGGER = "person"


@dataclass(frozen=True, slots=True)
class Ask:
    """A question that has to be asked."""

    kind: Literal["approval", "step", "effect", "escalation"]
    audience: str
    payload: dict[str, Json]
    step: str | None = None


def next_question(session: Session, kit: Kit, plan: Plan, question_id: str) -> Ask | None:
    """Return what a person must be asked before the run can go on; None: nothing."""
    view = session.view
    fired = view.open_trigger
    if needs_approval(session, plan) or (fired is not None and fired.kind == _APPROVAL_TRIGGER):
        return Ask("approval", "operator", approval_payload(session, kit, plan, question_id))
    if fired is not None:
        kind: Literal["effect", "escalation"] = (
            "effect" if fired.kind == "effect_unknown" else "escalation"
        )
        payload = failure_payload(session, plan, fired, kind, question_id)
        return Ask(kind, "operator", payload, fired.step)
    step = waiting_step(session, plan)
    if step is None or step.question is None:
        return None
    return Ask(
        "step", step.question.audience, step_payload(session, plan, step, question_id), step.id
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
        if key in session.view.decisions and each.kind == "step"
    }
    for step in plan.steps:
        if step.kind != "human" or step.id in answered:
            continue
        if statuses.get(step.id, "pending") not in ("pending", "waiting"):
            continue
        if all(statuses.get(need) in ("done", "skipped") for need in step.needs):
            return step
    return None


def asked(session: Session, kit: Kit, plan: Plan, ask: Ask, question_id: str) -> QuestionAsked:
    """Build the event; the payload is an artifact, and its digest binds the answer."""
    return QuestionAsked(
        question_id=question_id,
        kind=ask.kind,
        audience=ask.audience,
        payload=session.put(ask.payload),
        payload_sha256=digest(ask.payload),
        plan_version=plan.version,
        content_hash=plan.content_hash,
        step=ask.step,
        expires_at=kit.now() + timedelta(seconds=kit.policy.approval_ttl_s),
    )
