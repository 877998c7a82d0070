"""An answer is heard at whichever node a run stands, and recorded before anything follows from it.

The journal is the truth; the interrupt is only the bell. A recorded decision is looked for first
and the bell rings only if there is none, so an answer given through the CLI, another process or
before a crash counts all the same. One that does not count is recorded too, with why.
"""

from __future__ import annotations

import asyncio

from langgraph.types import interrupt

from plangate.graph.payload import asked_again, read_answer
from plangate.journal.decisions import Decision
from plangate.journal.questions import AnswerCounted, AnswerRefused, QuestionAsked
from plangate.journal.session import Session
from plangate.nodes.case import Case
from plangate.nodes.decide import Counted, Refused, decide
from plangate.nodes.kit import Kit


async def heard(session: Session, kit: Kit, question: QuestionAsked) -> Decision | None:
    """Return the decision of a question that waits; pause the graph until there is an answer.

    Returns:
        None where an answer came that decides nothing: the question goes on waiting.
    """
    stored = await asyncio.to_thread(session.journal.decisions.get, question.question_id)
    if stored is not None:
        return stored
    if question.expires_at is not None and kit.now() >= question.expires_at:
        return await asyncio.to_thread(_expire, session, kit, question)
    await session.aflush()
    raw = interrupt(_shown(session, question))
    got = await asyncio.to_thread(_judged, session, kit, question, raw)
    if isinstance(got, Decision):
        return got
    session.emit(_no_decision(question, got))
    return None


def _shown(session: Session, question: QuestionAsked) -> object:
    """Return what is shown: the question as it was asked, and what became of the last answer."""
    payload = session.load(question.payload)
    last = session.view.answered.get(question.question_id)
    if last is None or not isinstance(payload, dict):
        return payload
    if isinstance(last, AnswerRefused):
        return asked_again(payload, last.why, counts=False)
    return asked_again(payload, Counted(last.by, last.have, last.needs).says, counts=True)


def _judged(
    session: Session, kit: Kit, question: QuestionAsked, raw: object
) -> Decision | Refused | Counted:
    shown = session.load(question.payload)
    answer = read_answer(raw, shown if isinstance(shown, dict) else None)
    if isinstance(answer, str):
        return Refused(answer)
    return decide(session.journal, Case.of(session, kit, question), answer)


def _no_decision(question: QuestionAsked, got: Refused | Counted) -> AnswerRefused | AnswerCounted:
    if isinstance(got, Refused):
        return AnswerRefused(question_id=question.question_id, why=got.why)
    return AnswerCounted(
        question_id=question.question_id, by=got.by, have=got.have, needs=got.needs
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
