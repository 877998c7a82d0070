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
from plangate.journal.events import AnswerRefused, DecisionTaken, QuestionAsked
from plangate.journal.ledger import Settlement
from plangate.journal.session import Session
from plangate.nodes.decide import Refused, decide
from plangate.nodes.kit import Kit
from plangate.nodes.question import carried, next_question
from plangate.plan.outcome import EffectState
from plangate.plan.value.plan import Plan


async def human_gate(_: State, session: Session, kit: Kit) -> dict[str, Any]:
    """Ask what must be asked; without a question the run goes on."""
    plan = kit.plan(session)
    pending = session.view.pending_questions
    if pending:
        return await _answered(session, kit, pending[0])
    if (decision := carried(session, kit, plan)) is not None:
        session.emit(decision)
    question = next_question(session, kit, plan)
    if question is None:
        return {"go": "executor", "waiting": []}
    session.emit(question)
    return {"go": "human_gate", "waiting": [question.question_id]}


async def _answered(session: Session, kit: Kit, question: QuestionAsked) -> dict[str, Any]:
    stored = await asyncio.to_thread(session.journal.decisions.get, question.question_id)
    if stored is None and question.expires_at is not None and kit.now() >= question.expires_at:
        stored = await asyncio.to_thread(_expire, session, kit, question)
    if stored is None:
        await session.aflush()
        shown = session.load(question.payload)
        answer = read_answer(interrupt(shown), shown if isinstance(shown, dict) else None)
        got: Decision | Refused = (
            Refused(answer)
            if isinstance(answer, str)
            else (await asyncio.to_thread(_decide, session, kit, question, answer))
        )
        if isinstance(got, Refused):
            session.emit(AnswerRefused(question_id=question.question_id, why=got.why))
            return {"go": "human_gate", "waiting": [question.question_id]}
        stored = got
    return await _follow(session, kit, question, stored)


def _decide(
    session: Session, kit: Kit, question: QuestionAsked, answer: Answer
) -> Decision | Refused:
    return decide(
        session.journal,
        session.run.run_id,
        question,
        answer,
        now=kit.now(),
        ttl_s=kit.policy.approval_ttl_s,
    )


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
    session.emit(
        DecisionTaken(
            question_id=question.question_id,
            decision=decision.decision,
            by=decision.by,
            answer=decision.answer,
            comment=decision.comment,
            content_hash=decision.content_hash,
            steps=decision.steps,
            expires_at=decision.expires_at,
        )
    )
    if decision.decision == "settle":
        await _settle_effect(session, question, decision)
    go = _next(session, kit.plan(session), question, decision.decision)
    return {"go": go, "waiting": []}


def _next(session: Session, plan: Plan, question: QuestionAsked, decision: str) -> str:
    if decision in ("reject", "stop"):
        return "settle"
    if decision == "changes":
        return "planner"
    if decision in ("expired", "approve"):
        return "human_gate"  # ask again, or ask the next question
    all_done = all(
        each.id in session.view.steps and session.view.steps[each.id].status in ("done", "skipped")
        for each in plan.steps
    )
    return "verifier" if decision == "retry" and all_done else "executor"


async def _settle_effect(session: Session, question: QuestionAsked, decision: Decision) -> None:
    """A person says what became of an effect; the ledger keeps who said so."""
    output = decision.answer.get("output")
    said = Settlement(
        output=session.put(output) if output is not None else None,
        by=decision.by,
        note=decision.comment,
    )
    state: EffectState = "done" if decision.answer.get("state") == "done" else "failed"
    await session.aflush()
    await asyncio.to_thread(_settle_open, session, question.step or "", state, said)


def _settle_open(session: Session, step: str, state: EffectState, said: Settlement) -> None:
    ledger = session.journal.ledger
    for row in ledger.list(run_id=session.run.run_id):
        if row.step == step and row.state in ("intended", "accepted", "unknown"):
            ledger.settle(session.lease, row.effect_key, state, **said)
