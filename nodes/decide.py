"""One function takes every answer: from Python, the CLI, a console or an agent inbox.

An answer is recorded first-wins by compare and swap. One that is late, doubled, mistargeted or of
the wrong kind changes nothing and says why. Silence, errors and unknown words are never consent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from plangate.graph.payload import Answer
from plangate.journal.decisions import Decision
from plangate.journal.journal import Journal
from plangate.journal.questions import (
    QuestionAsked,
)
from plangate.nodes.case import Case
from plangate.nodes.fit import Fitted, fitted
from plangate.nodes.unsettled import may_yet_happen
from plangate.plan.secrets import secret_in
from plangate.plan.value.frozen import thaw

ALLOWED: Mapping[str, tuple[str, ...]] = {
    "approval": ("approve", "reject", "changes", "edit", "escalate", "request_more_info"),
    "step": ("answer",),
    "effect": ("settle", "retry", "stop", "escalate", "request_more_info"),
    "escalation": ("retry", "stop", "escalate", "request_more_info"),
    "verdict": ("judge", "retry", "stop", "escalate", "request_more_info"),
}
"""Decisions by kind of question; anything else is refused."""

_NO_CONSENT = ("reject", "stop", "escalate", "request_more_info")
"""Decisions that let nothing happen, so that anyone may take them."""


@dataclass(frozen=True, slots=True)
class Refused:
    """An answer that changes nothing."""

    why: str


@dataclass(frozen=True, slots=True)
class Counted:
    """An approval that counts, and is not enough by itself."""

    by: str
    have: int
    needs: int

    @property
    def says(self) -> str:
        """In words for whoever approved."""
        return f"{self.have} of {self.needs} approvals; the question goes on waiting"


def decide(journal: Journal, case: Case, answer: Answer) -> Decision | Refused | Counted:
    """Record an answer, if it is one.

    Args:
        journal: Where the decision is written.
        case: The question, and what an answer to it is held against.
        answer: What the person said; see `plangate.graph.payload.read_answer`.

    Returns:
        The decision that counts, or why this answer does not.
    """
    question, now = case.question, case.kit.now()
    if first := journal.decisions.get(question.question_id):
        return _decided_already(first)
    if why := _fault(question, answer, now) or _overtaken(case) or _secret(answer):
        return Refused(why)
    fit = fitted(answer, case)
    if isinstance(fit, Fitted) and (why := _too_early(journal, case, fit)):
        fit = why
    if isinstance(fit, str):
        return Refused(fit)
    mine = _decision(case, answer, fit, now)
    if answer.decision == "approve" and question.quorum > 1:
        return _vote(journal, mine, question.quorum)
    recorded = journal.decisions.record(mine)
    return recorded.decision if recorded.won else _decided_already(recorded.decision)


def _decision(case: Case, answer: Answer, fit: Fitted, now: datetime) -> Decision:
    question, expires = case.question, None
    if answer.decision == "approve":
        expires = now + timedelta(seconds=case.kit.policy.approval_ttl_s)
    said = {name: thaw(value) for name, value in fit.answer.items()}
    return Decision(
        question_id=question.question_id,
        run_id=case.run.run_id,
        decision=answer.decision,
        by=answer.by.strip() or "unknown",
        at=now,
        answer={**said, "role": answer.role} if question.roles and answer.role else said,
        comment=answer.comment,
        content_hash=question.content_hash,
        steps=fit.steps,
        expires_at=expires,
    )


def _too_early(journal: Journal, case: Case, fit: Fitted) -> str:
    """Say who may still carry out what is said to have failed; empty if nobody may."""
    if case.question.kind != "effect" or fit.answer.get("state") != "failed":
        return ""
    only = fit.answer.get("effect_key")
    return may_yet_happen(journal, case.view, case.question.step, only)


def _secret(answer: Answer) -> str:
    """Say where an answer holds a secret, which the log would keep; empty if it does not."""
    where = secret_in(answer.model_dump(mode="json"))
    return f"its {where} holds what looks like a secret, and it would be stored" if where else ""


def _vote(journal: Journal, vote: Decision, needs: int) -> Decision | Refused | Counted:
    if vote.by == "unknown":
        return Refused(f"it takes {needs} different people, so an approval has to say who gives it")
    polled = journal.decisions.vote(vote, needs=needs)
    if polled.recorded is None:
        return Counted(vote.by, len(polled.votes), needs)
    got = polled.recorded
    return got.decision if got.won else _decided_already(got.decision)


def _decided_already(first: Decision) -> Refused:
    return Refused(f"decided already: {first.decision} by {first.by} at {first.at:%H:%M:%S} UTC")


def _overtaken(case: Case) -> str:
    """Say what came in between, if the question is not asked any more; empty if it is."""
    view, question = case.view, case.question
    if question in view.pending_questions:
        return ""
    if view.revised is not None:
        return f"the goal was changed; run {view.revised.run_id} takes the new one on"
    if question.plan_version != view.version:
        return (
            f"it is about plan version {question.plan_version}; the plan is at {view.version} now"
        )
    return "it is not asked any more"


def _fault(question: QuestionAsked, answer: Answer, now: datetime) -> str:
    """Say why an answer does not fit its question; empty if it does."""
    known = ALLOWED[question.kind]
    allowed = question.allowed or known
    expires, roles = question.expires_at, question.roles
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
            answer.decision == "changes" and answer.decision in known and "changes" not in allowed,
            "the template planner cannot use comments; edit or change inputs",
        ),
        (
            answer.decision not in allowed,
            f"{answer.decision!r} is not one of {', '.join(allowed)}",
        ),
        (
            bool(roles) and answer.decision not in _NO_CONSENT and answer.role not in roles,
            f"it is for {' or '.join(roles)} to decide; say in which role you do (role=)",
        ),
        (
            answer.decision == "changes" and not answer.comment.strip(),
            "asking for changes needs a comment that says which",
        ),
    )
    return next((says for wrong, says in faults if wrong), "")
