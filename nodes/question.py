"""Which question stands next, read off the journal: an approval, a failure, or a human step."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Literal, TypeAlias

from plangate.engine.asked import answer_to, question_digest
from plangate.graph.payload import approval_payload
from plangate.journal.questions import (
    DecisionTaken,
    QuestionAsked,
)
from plangate.journal.session import Session
from plangate.journal.view import RunView
from plangate.nodes.kit import Kit
from plangate.nodes.payloads import Asking, approval_card, ask_failure, ask_step, known_digests
from plangate.nodes.verdicts import ask_verdict, undecided
from plangate.plan.flow.authority import grown
from plangate.plan.joins import waits
from plangate.plan.tier import acting
from plangate.plan.value.frozen import digest
from plangate.plan.value.plan import Plan
from plangate.plan.value.step import Step

Kind: TypeAlias = Literal["approval", "step", "effect", "escalation", "verdict"]
_HANDED_ON = ("escalate", "request_more_info")


def next_question(session: Session, kit: Kit, plan: Plan) -> QuestionAsked | None:
    """Return what a person must be asked before the run can go on; None: nothing.

    The payload is put into the journal; its digest and the plan's hash bind the answer.
    """
    fired = session.view.open_trigger
    if needs_approval(session, plan) or (fired is not None and fired.kind == "person"):
        return _approval(session, kit, plan)
    if fired is not None and (asks := undecided(session.view, fired)) is not None:
        asking = _asking(session, kit, plan, "verdict", fired.step)
        payload = ask_verdict(session, plan, kit.bench(session, plan), asks, asking)
        check = asks.verdict.check_id
        return _asked(session, plan, "verdict", payload, asking, step=fired.step, check=check)
    if fired is not None:
        kind: Kind = "effect" if fired.kind == "effect_unknown" else "escalation"
        asking = _asking(session, kit, plan, kind, fired.step)
        payload = ask_failure(session, plan, fired, asking)
        return _asked(session, plan, kind, payload, asking, step=fired.step)
    step = waiting_step(session, plan)
    if step is None:
        return None
    asking = _asking(session, kit, plan, "step", step.id)
    payload = ask_step(session, plan, step, asking)
    shown = {step.id: question_digest(session, plan, step)}
    return _asked(session, plan, "step", payload, asking, step=step.id, args=shown)


def _approval(session: Session, kit: Kit, plan: Plan) -> QuestionAsked:
    asking = _asking(session, kit, plan, "approval", None)
    card = approval_card(session, kit, plan, asking)
    return _asked(
        session,
        plan,
        "approval",
        approval_payload(card),
        asking,
        allowed=card.allowed,
        confirm=card.to_confirm,
        quorum=card.quorum,
        args=known_digests(card),
    )


def _asking(session: Session, kit: Kit, plan: Plan, kind: Kind, step: str | None) -> Asking:
    """Say whom a question is for and until when; one that was handed on keeps both."""
    view = session.view
    question_id = f"{session.run.run_id}-q{len(view.questions) + 1}"
    expires = kit.now() + timedelta(seconds=kit.policy.approval_ttl_s)
    before = _before(view, plan, kind, step)
    if before is None:
        rules = kit.policy.quorums_of(s.tool or "" for s in acting(plan, kit.catalog(session)))
        roles = tuple(dict.fromkeys(role for rule in rules for role in rule.roles))
        if kind == "verdict":
            return Asking(question_id, expires, "operator", kit.policy.verifier.roles)
        return Asking(question_id, expires, "operator", roles if kind == "approval" else ())
    decision = view.decisions.get(before.question_id)
    audience, roles = before.audience, before.roles
    if decision is not None and decision.decision == "escalate":
        audience, roles = str(decision.answer.get("to")), (str(decision.answer.get("to")),)
    if decision is not None and decision.decision in _HANDED_ON and before.expires_at is not None:
        expires = before.expires_at
    return Asking(question_id, expires, audience, roles)


def _before(view: RunView, plan: Plan, kind: Kind, step: str | None) -> QuestionAsked | None:
    """Return the newest question about the same thing."""
    for asked in reversed(view.questions.values()):
        if (asked.kind, asked.step, asked.content_hash) == (kind, step, plan.content_hash):
            return asked
    return None


def _asked(
    session: Session,
    plan: Plan,
    kind: Kind,
    payload: dict[str, Any],
    asking: Asking,
    **more: Any,
) -> QuestionAsked:
    return QuestionAsked(
        question_id=asking.question_id,
        kind=kind,
        audience=payload.get("audience", "operator"),
        payload=session.put(payload),
        payload_sha256=digest(payload),
        plan_version=plan.version,
        content_hash=plan.content_hash,
        expires_at=asking.expires_at,
        roles=asking.roles,
        **more,
    )


def needs_approval(session: Session, plan: Plan) -> bool:
    """True if this very content has no approval, and its tier or its author asks for one."""
    view = session.view
    checked = view.validated[plan.version]
    if plan.content_hash in view.approved:
        return False
    return checked.tier != "auto" or plan.author.kind == "human"


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
        catalog = kit.catalog(session)
        acts = {step.id for step in acting(plan, catalog)}
        if granted.steps and not acts <= {*granted.steps, *granted.denied}:
            return None  # it approved single steps, and this is none of them
        if grown(kit.plan(session, version), plan, catalog):
            return None
        return DecisionTaken(
            question_id=granted.question_id,
            decision="carried",
            by="plangate",
            comment=f"inside the authority granted for version {version}",
            content_hash=plan.content_hash,
            steps=granted.steps,
            expires_at=granted.expires_at,
            denied=granted.denied,
            args=granted.args,
        )
    return None


def waiting_step(session: Session, plan: Plan) -> Step | None:
    """Return the first human step that could go on with an answer to what it asks now."""
    statuses = {step: each.status for step, each in session.view.steps.items()}
    needs = waits(plan)
    for step in plan.steps:
        if step.kind != "human" or statuses.get(step.id, "pending") not in ("pending", "waiting"):
            continue
        if any(
            statuses.get(need) not in ("done", "skipped", "handed_over") for need in needs[step.id]
        ):
            continue
        if answer_to(session, plan, step) is None:
            return step
    return None
