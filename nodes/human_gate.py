"""The gate: where a person is asked. The journal is the truth; the interrupt is only the bell.

It looks for a recorded decision first and rings only if there is none, so an answer given through
the CLI, another process or before a crash counts all the same. An answer that does not count is
recorded, and the gate asks again.
"""

from __future__ import annotations

import asyncio
from typing import Any

from langgraph.types import interrupt

from plangate.graph.payload import Answer, read_answer
from plangate.graph.state import State
from plangate.journal.decisions import Decision
from plangate.journal.events import TriggerFired
from plangate.journal.points import reached
from plangate.journal.questions import (
    AnswerCounted,
    AnswerRefused,
    QuestionAsked,
)
from plangate.journal.session import Session
from plangate.nodes.case import Case
from plangate.nodes.decide import Counted, Refused, decide
from plangate.nodes.follow import (
    cancel_denied,
    declined_goal,
    edit_to_make,
    settle_effect,
    taken,
)
from plangate.nodes.info import read_more
from plangate.nodes.kit import Kit
from plangate.nodes.question import carried, next_question
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
    stored = await asyncio.to_thread(session.journal.decisions.get, question.question_id)
    if stored is None and question.expires_at is not None and kit.now() >= question.expires_at:
        stored = await asyncio.to_thread(_expire, session, kit, question)
    if stored is None:
        await session.aflush()
        shown = session.load(question.payload)
        answer = read_answer(interrupt(shown), shown if isinstance(shown, dict) else None)
        got: Decision | Refused | Counted = (
            Refused(answer)
            if isinstance(answer, str)
            else (await asyncio.to_thread(_decide, session, kit, question, answer))
        )
        if not isinstance(got, Decision):
            session.emit(_no_decision(question, got))
            return {"go": "human_gate", "waiting": [question.question_id]}
        stored = got
    return await _follow(session, kit, question, stored)


def _no_decision(question: QuestionAsked, got: Refused | Counted) -> AnswerRefused | AnswerCounted:
    if isinstance(got, Refused):
        return AnswerRefused(question_id=question.question_id, why=got.why)
    return AnswerCounted(
        question_id=question.question_id, by=got.by, have=got.have, needs=got.needs
    )


def _decide(
    session: Session, kit: Kit, question: QuestionAsked, answer: Answer
) -> Decision | Refused | Counted:
    return decide(session.journal, Case.of(session, kit, question), answer)


def _expire(session: Session, kit: Kit, question: QuestionAsked) -> Decision:
    """Nobody answered in time: recorded like any decision, so that a late answer finds it."""
    gone = Decision(
        question_id=question.question_id,
        run_id=session.run.run_id,
        decision="expired",
        by="clock",
        at=kit.now(),
        answer={},
        comment="",
        content_hash=question.content_hash,
        steps=(),
        expires_at=None,
    )
    return session.journal.decisions.record(gone).decision


async def _follow(
    session: Session, kit: Kit, question: QuestionAsked, decision: Decision
) -> dict[str, Any]:
    plan = kit.plan(session)
    if decision.decision == "request_more_info":  # before the decision is taken in: a crash here
        reads = decision.answer.get("reads")  # reads again, and one after it has the result
        for read in await read_more(session, kit, plan, question.question_id, reads):
            session.emit(read)
    reached("decision.read")
    session.emit(taken(session, kit, question, decision))
    reached("decision.followed")
    cancel_denied(session, plan)
    if decision.decision == "settle":
        await settle_effect(session, question, decision)
    return {"go": _next(session, plan, decision.decision), "waiting": []}


def _next(session: Session, plan: Plan, decision: str) -> str:
    if decision in ("reject", "stop"):
        return "settle"
    if decision == "changes":
        return "planner"
    if decision in ("expired", "approve", "edit", "escalate", "request_more_info"):
        return "human_gate"  # ask again, ask the next question, or make the edit
    all_done = all(
        each.id in session.view.steps
        and session.view.steps[each.id].status in ("done", "skipped", "cancelled")
        for each in plan.steps
    )
    return "verifier" if decision == "retry" and all_done else "executor"
