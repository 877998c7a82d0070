"""What a person is shown, gathered from the journal for `plangate.graph.payload` to lay out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Literal, NamedTuple

from plangate.engine.asked import details_of
from plangate.engine.outputs import Outputs
from plangate.graph.arguments import elements, resolved
from plangate.graph.payload import ApprovalCard, QuestionCard, question_payload
from plangate.journal.events import TriggerFired
from plangate.journal.progress import unit_of
from plangate.journal.session import Session
from plangate.nodes.kit import Kit
from plangate.nodes.preview import previewed
from plangate.nodes.undo import is_compensation
from plangate.plan.issue import Report
from plangate.plan.layers.spend import over_budget
from plangate.plan.outcome import OVER
from plangate.plan.preview import Judged, Preview
from plangate.plan.revise.diff import PlanDiff
from plangate.plan.tier import acting
from plangate.plan.value.frozen import Json, digest, parse
from plangate.plan.value.plan import Plan
from plangate.plan.value.step import Step


class Asking(NamedTuple):
    """One question, whom it is for, and until when."""

    question_id: str
    expires_at: datetime
    audience: str = "operator"
    roles: tuple[str, ...] = ()
    """Consent counts only from one of these; empty: from anyone."""


def approval_card(session: Session, kit: Kit, plan: Plan, asking: Asking) -> ApprovalCard:
    """Gather what asks for the approval of the current version."""
    view = session.view
    proposed, checked = view.plans[plan.version], view.validated[plan.version]
    catalog = kit.catalog(session)
    acts = tuple(step.id for step in acting(plan, catalog))
    preview = _preview(session, kit, plan)
    consent = ("approve",) if preview.approvable else ()
    can_replan = kit.model is not None and not is_compensation(view)
    comments = ("changes",) if can_replan else ()
    return ApprovalCard(
        question_id=asking.question_id,
        run_id=session.run.run_id,
        plan=plan,
        plan_ref=proposed.plan,
        catalog=catalog,
        policy_hash=kit.policy.content_hash,
        tier=checked.tier,
        reasons=checked.reasons,
        confirm=checked.confirm or acts,
        preview=preview,
        diff=parse(PlanDiff, session.load(proposed.diff)) if proposed.diff else None,
        expires_at=asking.expires_at,
        audience=asking.audience,
        allowed=(*consent, "reject", "edit", *comments, "escalate", "request_more_info"),
        roles=asking.roles,
        quorum=kit.policy.quorum_for(plan.by_id[step].tool or "" for step in acts),
        outputs=_outputs(session, plan),
        settled=frozenset(s for s, each in view.steps.items() if each.status in OVER),
        warnings=tuple(_warnings(session, plan)),
        assumed={name: each.status for name, each in view.assumed.items()},
        moved=tuple(_moved(session, plan)),
        info=tuple(_info(session, plan)),
    )


def _preview(session: Session, kit: Kit, plan: Plan) -> Preview:
    """Work out the preview of a checked version, with what has been spent since."""
    checked, view, catalog = (
        session.view.validated[plan.version],
        session.view,
        kit.catalog(session),
    )
    facts = kit.facts(session, checked.estimate.after_planning(view.spent_usd, view.tokens))
    known = {(each.code, each.step, each.field) for each in checked.issues}
    late = (e for e in over_budget(plan, facts) if (e.code, e.step, e.field) not in known)
    report = Report(issues=(*checked.issues, *late), not_evaluated=checked.not_evaluated)
    judged = Judged(report, checked.tier, checked.reasons, checked.confirm)
    return previewed(plan, facts, kit.known(plan, catalog), kit.registry, judged)


def known_digests(card: ApprovalCard) -> dict[str, str]:
    """Return the digest of the arguments of each acting step that is shown as it will run.

    Of a step over a list that is known: of all of it, and of each element under `S3.1`, `S3.2`, ...
    """
    values = {"inputs": card.plan.inputs, **card.outputs}
    known: dict[str, str] = {}
    for step in acting(card.plan, card.catalog):
        if step.id in card.settled:
            continue
        if step.for_each is None:
            given = resolved(step, values)
            known |= {step.id: digest(given.args)} if given.known else {}
        else:
            known |= _elements(step, values)
    return known


def _elements(step: Step, values: Mapping[str, Json]) -> dict[str, str]:
    each = elements(step, values)
    if each is None or not all(given.known for given in each):
        return {}
    units = {unit_of(step.id, at): digest(given.args) for at, given in enumerate(each, 1)}
    return {step.id: digest(list(units.values())), **units}


def ask_step(session: Session, plan: Plan, step: Step, asking: Asking) -> dict[str, Any]:
    """Build the payload of a human step, with the values that it is about."""
    question = step.question
    assert question is not None, "layer 1 lets no human step pass without one"  # noqa: S101 (ours)
    return question_payload(
        QuestionCard(
            question_id=asking.question_id,
            run_id=session.run.run_id,
            kind="step",
            text=question.text,
            audience=question.audience,
            answer_type=question.type,
            options=question.options,
            details=details_of(session, plan, step),
            step=step.id,
            plan_version=plan.version,
            plan_hash=plan.content_hash,
            plan_ref=session.view.plans[plan.version].plan,
            expires_at=asking.expires_at,
        )
    )


_GO_ON = {"over_plan": "Go on up to the limits (`retry`)"}


def ask_failure(
    session: Session, plan: Plan, fired: TriggerFired, asking: Asking
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
    again = _GO_ON.get(fired.kind, "Try again")
    asks = (
        f"{fired.step}: it is not known whether this happened ({fired.says or fired.code}). "
        "Look outside, then settle it as done or failed, or have it asked again, or stop."
        if effect
        else f"{fired.kind}: {fired.says or fired.code}. {again}, or stop?"
    )
    kind: Literal["effect", "escalation"] = "effect" if effect else "escalation"
    return question_payload(
        QuestionCard(
            question_id=asking.question_id,
            run_id=session.run.run_id,
            kind=kind,
            text=asks,
            audience=asking.audience,
            details={**details, "attempts": tried},
            step=fired.step,
            plan_version=plan.version,
            plan_hash=plan.content_hash,
            plan_ref=session.view.plans[plan.version].plan,
            expires_at=asking.expires_at,
            roles=asking.roles,
            info=tuple(_info(session, plan)),
        )
    )


def _outputs(session: Session, plan: Plan) -> dict[str, Json]:
    """Load the results that the arguments still to run read."""
    view = session.view
    read = {
        need
        for step in plan.steps
        if step.id not in view.steps or view.steps[step.id].status not in OVER
        for need in step.data_needs
    }
    known = Outputs(plan, lambda: view, session.load)
    return {name: known[name] for name in read if name in known}


def _warnings(session: Session, plan: Plan) -> Iterator[str]:
    view = session.view
    for key, decision in view.decisions.items():
        asked = view.questions.get(key)
        if asked is None or asked.plan_version >= plan.version or not decision.comment:
            continue
        if decision.decision == "changes" and asked.content_hash == plan.content_hash:
            yield (
                f"{decision.by} asked for changes ({decision.comment!r}), "
                "and the plan says what it said before"
            )
    expired = [d for d in view.decisions.values() if d.decision == "expired"]
    if expired and view.questions[expired[-1].question_id].content_hash == plan.content_hash:
        yield "it was asked before, and nobody answered in time"


def _moved(session: Session, plan: Plan) -> Iterator[dict[str, Json]]:
    """Yield what changed since this very content was approved last."""
    for event in session.view.moved:
        if event.content_hash == plan.content_hash:
            yield from (each.model_dump(mode="json") for each in event.objects)


def _info(session: Session, plan: Plan) -> Iterator[dict[str, Json]]:
    view = session.view
    for read in view.info:
        asked = view.questions.get(read.question_id)
        if asked is not None and asked.content_hash == plan.content_hash:
            yield {
                "tool": read.tool,
                "args": session.load(read.args),
                "output": session.load(read.output) if read.output else None,
                "says": read.says,
                "evidence": list(read.observed),
            }
