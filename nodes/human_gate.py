"""The gate: where a person is asked, and where what they decided is followed.

An answer that does not count changes nothing, and the gate asks again.
"""

from __future__ import annotations

from typing import Any

from plangate.graph.state import State
from plangate.journal.decisions import Decision
from plangate.journal.events import TriggerFired
from plangate.journal.points import reached
from plangate.journal.questions import QuestionAsked
from plangate.journal.session import Session
from plangate.nodes.follow import (
    cancel_denied,
    declined_goal,
    edit_to_make,
    settle_asked,
    taken,
)
from plangate.nodes.hear import heard
from plangate.nodes.info import read_more
from plangate.nodes.kit import Kit
from plangate.nodes.question import carried, next_question
from plangate.nodes.verdicts import judge_asked
from plangate.plan.outcome import OVER
from plangate.plan.value.plan import Plan


async def human_gate(_: State, session: Session, kit: Kit) -> dict[str, Any]:
    """Ask what must be asked; without a question the run goes on."""
    plan = kit.plan(session)
    pending = session.view.pending_questions
    if pending and plan.version in session.view.validated:
        return await _answered(session, kit, pending[0])
    if (go := edit_to_make(session, kit)) is not None:
        return {"go": go, "waiting": []}
    if (why := declined_goal(session, kit, plan)) is not None:
        session.emit(TriggerFired(kind="declined", code="denied_by_person", says=why))
        return {"go": "settle", "waiting": []}
    if (decision := carried(session, kit, plan)) is not None:
        session.emit(decision)
    cancel_denied(session, plan)
    question = next_question(session, kit, plan)
    if question is None:
        return {"go": "executor", "waiting": []}
    session.emit(question)
    reached("question.asked")
    return {"go": "human_gate", "waiting": [question.question_id]}


async def _answered(session: Session, kit: Kit, question: QuestionAsked) -> dict[str, Any]:
    decision = await heard(session, kit, question)
    if decision is None:
        return {"go": "human_gate", "waiting": [question.question_id]}
    return await _follow(session, kit, question, decision)


async def _follow(
    session: Session, kit: Kit, question: QuestionAsked, decision: Decision
) -> dict[str, Any]:
    plan = kit.plan(session)
    if decision.decision == "request_more_info":  # before the decision is taken in: a crash here
        reads = decision.answer.get("reads")  # reads again, and one after it has the result
        for read in await read_more(session, kit, plan, question.question_id, reads):
            session.emit(read)
    if decision.decision == "judge":  # as well: a word that is taken in is on the record
        judge_asked(session, question, decision)
    reached("decision.read")
    session.emit(taken(session, kit, question, decision))
    reached("decision.followed")
    cancel_denied(session, plan)
    if decision.decision == "settle":
        await settle_asked(session, question, decision)
    return {"go": _next(session, plan, decision.decision), "waiting": []}


def _next(session: Session, plan: Plan, decision: str) -> str:
    if decision in ("reject", "stop"):
        return "settle"
    if decision == "changes":
        return "planner"
    if decision in ("expired", "approve", "edit", "escalate", "request_more_info"):
        return "human_gate"  # ask again, ask the next question, or make the edit
    all_done = all(
        each.id in session.view.steps and session.view.steps[each.id].status in OVER
        for each in plan.steps
    )
    return "verifier" if decision in ("retry", "judge") and all_done else "executor"
