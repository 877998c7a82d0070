"""One function takes every answer: from Python, the CLI, a console or an agent inbox.

An answer is recorded first-wins by compare and swap. One that is late, doubled, mistargeted or of
the wrong kind changes nothing and says why. Silence, errors and unknown words are never consent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from pydantic import JsonValue

from plangate.graph.payload import Answer
from plangate.journal.decisions import Decision
from plangate.journal.events import QuestionAsked
from plangate.journal.journal import Journal
from plangate.plan.value.frozen import Json, thaw

ALLOWED: Mapping[str, tuple[str, ...]] = {
    "approval": ("approve", "reject", "changes"),
    "step": ("answer",),
    "effect": ("settle", "retry", "stop"),
    "escalation": ("retry", "stop"),
}
"""Decisions by kind of question; anything else is refused."""


@dataclass(frozen=True, slots=True)
class Refused:
    """An answer that changes nothing."""

    why: str


def decide(
    journal: Journal,
    run_id: str,
    question: QuestionAsked,
    answer: Answer,
    *,
    now: datetime,
    ttl_s: float | None = None,
) -> Decision | Refused:
    """Record an answer, if it is one.

    Args:
        journal: Where the decision is written.
        run_id: The run that asks.
        question: The question as it stands in the log.
        answer: What the person said; see `plangate.graph.payload.read_answer`.
        now: Time of the decision (aware, UTC).
        ttl_s: How long an approval holds.

    Returns:
        The decision that counts, or why this answer does not.
    """
    if why := _fault(question, answer, now):
        return Refused(why)
    expires = None
    if answer.decision == "approve" and ttl_s is not None:
        expires = now + timedelta(seconds=ttl_s)
    mine = Decision(
        question_id=question.question_id,
        run_id=run_id,
        decision=answer.decision,
        by=answer.by or "unknown",
        at=now,
        answer=_plain(answer.answer),
        comment=answer.comment,
        content_hash=question.content_hash,
        steps=(),
        expires_at=expires,
    )
    recorded = journal.decisions.record(mine)
    if recorded.won or recorded.decision.by == "" or recorded.decision == mine:
        return recorded.decision
    first = recorded.decision
    return Refused(f"decided already: {first.decision} by {first.by} at {first.at:%H:%M:%S} UTC")


def _fault(question: QuestionAsked, answer: Answer, now: datetime) -> str:
    """Say why an answer does not fit its question; empty if it does."""
    allowed = ALLOWED[question.kind]
    expires = question.expires_at
    faults = (
        (
            answer.question_id not in ("", question.question_id),
            f"it answers {answer.question_id}, but {question.question_id} is asked",
        ),
        (
            answer.plan_hash.removeprefix("sha256:") not in ("", question.content_hash),
            "it was given for another version of the plan",
        ),
        (expires is not None and now >= expires, f"it came after {expires}"),
        (
            answer.decision not in allowed,
            f"{answer.decision!r} is not one of {', '.join(allowed)}",
        ),
        (
            bool(answer.steps or answer.edits),
            "approving single steps and edits are not supported in this version",
        ),
        (
            answer.decision == "changes" and not answer.comment.strip(),
            "asking for changes needs a comment that says which",
        ),
        (
            answer.decision in ("answer", "settle") and not isinstance(answer.answer, Mapping),
            "it holds no answer object",
        ),
    )
    return next((says for wrong, says in faults if wrong), "")


def _plain(answer: Json) -> dict[str, JsonValue]:
    return (
        {key: thaw(value) for key, value in answer.items()} if isinstance(answer, Mapping) else {}
    )
