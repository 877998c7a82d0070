"""What follows from a decision that was taken in; read off the journal, so a crash loses nothing.

Each of these can be asked for again at any time: it does what is still missing, and nothing twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from plangate.graph.fallout import Fallout
from plangate.journal.decisions import Decision
from plangate.journal.events import EffectMoved, PlanProposed, StepEnded
from plangate.journal.ledger import EffectRow, Settlement
from plangate.journal.questions import (
    DecisionTaken,
    QuestionAsked,
)
from plangate.journal.session import Session
from plangate.journal.view import RunView
from plangate.nodes.case import Case
from plangate.nodes.edit import carried, edited
from plangate.nodes.kit import Kit
from plangate.nodes.unsettled import unsettled
from plangate.plan.outcome import EffectState
from plangate.plan.revise.diff import diff
from plangate.plan.value.frozen import Json, thaw
from plangate.plan.value.plan import Plan

_OPEN = ("pending", "waiting")
_BY_PERSON, _FOR_ANOTHER = "step_not_approved", "needs_denied_step"


def denied_by(case: Case, decision: Decision) -> dict[str, str]:
    """Return, for each step that an approval leaves out, why; and for those of earlier ones."""
    before = {
        step: seen.why
        for step, seen in case.view.steps.items()
        if seen.status == "cancelled" and seen.error_code in (_BY_PERSON, _FOR_ANOTHER)
    }
    denied: dict[str, str] = {}
    for by, answer in _said(decision):
        words = answer.get("steps")
        for step, word in words.items() if isinstance(words, Mapping) else ():
            if word == "deny":
                denied[step] = by
    return {**before, **(case.fallout.reasons(denied) if denied else {})}


def _said(decision: Decision) -> Iterator[tuple[str, Mapping[str, Json]]]:
    """Yield who said what: of an approval by several people, each of them."""
    votes = decision.answer.get("votes")
    if not isinstance(votes, Sequence) or isinstance(votes, str):
        yield decision.by, decision.answer
        return
    for vote in votes:
        answer = vote.get("answer") if isinstance(vote, Mapping) else None
        if isinstance(vote, Mapping) and isinstance(answer, Mapping):
            yield str(vote.get("by")), answer


def taken(session: Session, kit: Kit, question: QuestionAsked, decision: Decision) -> DecisionTaken:
    """Return the event by which the owner of a run takes a recorded decision in."""
    approves = question.kind == "approval" and decision.decision == "approve"
    return DecisionTaken(
        question_id=question.question_id,
        decision=decision.decision,
        by=decision.by,
        answer=decision.answer,
        comment=decision.comment,
        content_hash=decision.content_hash,
        steps=decision.steps,
        expires_at=decision.expires_at,
        denied=denied_by(Case.of(session, kit, question), decision) if approves else {},
        args=question.args if approves else {},
    )


def cancel_denied(session: Session, plan: Plan) -> None:
    """End the steps that a partial approval leaves out: recorded, with why, before others run."""
    view = session.view
    granted = view.approved.get(plan.content_hash)
    for step in plan.steps if granted is not None and granted.denied else ():
        seen = view.steps.get(step.id)
        why = granted.denied.get(step.id) if granted is not None else None
        if why is None or (seen is not None and seen.status not in _OPEN):
            continue
        by_person = why.startswith("denied by")
        session.emit(
            StepEnded(
                step=step.id,
                plan_version=view.version,
                status="cancelled",
                outcome="denied" if by_person else "cancelled",
                error_code=_BY_PERSON if by_person else _FOR_ANOTHER,
                why=why,
            )
        )


def declined_goal(session: Session, kit: Kit, plan: Plan) -> str | None:
    """Return why the goal was given up, if a person denied the very steps that it missed."""
    view = session.view
    granted, verified = view.approved.get(plan.content_hash), view.goal_verified
    fired = view.open_trigger
    if granted is None or not granted.denied or verified is None or verified.says == "pass":
        return None
    if fired is None or not fired.kind.startswith("goal_"):
        return None
    loss = Fallout(plan, kit.catalog(session)).of(granted.denied)
    missed = {each.check_id for each in verified.verdicts if each.says != "pass"}
    if not missed <= {*loss.cannot_pass, *loss.may_not_pass}:
        return None
    why = "; ".join(f"{step} {why}" for step, why in granted.denied.items())
    return f"{why}; so these did not pass: {', '.join(sorted(missed))}"


def edit_to_make(session: Session, kit: Kit) -> str | None:
    """Make the next version from an edit of the current one; return the node that follows.

    A version that its owner did not live to have checked is checked first.
    """
    if session.view.version not in session.view.validated:
        return "validator"
    found = _last_edit(session.view)
    if found is None:
        return None
    question, decision = found
    if "inputs" in decision.answer:
        return "planner"
    case = Case.of(session, kit, question)
    edits = thaw(decision.answer["edits"])
    old = case.plan
    new = edited(old, edits if isinstance(edits, list) else [], decision.by)
    assert isinstance(new, Plan), f"it was accepted when it came: {new}"  # noqa: S101 (ours)
    said = diff(old, new, catalog=case.catalog)
    session.emit(
        PlanProposed(
            version=new.version,
            plan=session.put(new.model_dump(mode="json")),
            content_hash=new.content_hash,
            parent_hash=old.content_hash,
            author=new.author,
            diff=session.put(said.model_dump(mode="json")),
            carried=carried(case, new),
            trigger=f"edit:{question.question_id}",
        )
    )
    return "validator"


def _last_edit(view: RunView) -> tuple[QuestionAsked, DecisionTaken] | None:
    """Return the edit of the current version, which no later version has taken up yet."""
    for key, decision in reversed(view.decisions.items()):
        question = view.questions.get(key)
        if decision.decision == "edit" and question is not None:
            return (question, decision) if question.plan_version == view.version else None
    return None


async def settle_asked(session: Session, question: QuestionAsked, decision: Decision) -> None:
    """A person says what became of the effects of a step, or of one of them by its key."""
    state: EffectState = "done" if decision.answer.get("state") == "done" else "failed"
    only = decision.answer.get("effect_key")
    evidence = str(decision.answer.get("evidence") or decision.comment)
    word = Word(state, decision.by, evidence, thaw(decision.answer.get("output")))
    for row in await asyncio.to_thread(
        unsettled, session.journal, session.view, question.step, only
    ):
        await settle_row(session, row, word, step=question.step)


class Word(NamedTuple):
    """What a person says of an effect."""

    state: EffectState
    by: str
    evidence: str
    output: Any = None
    """What the tool would have returned; None: that is not known."""


async def settle_row(
    session: Session, row: EffectRow, word: Word, *, step: str | None = None
) -> None:
    """Move a row of the ledger on a person's word, and keep who gave it and what it rests on.

    Args:
        session: The run that the word is given in.
        row: The row.
        word: What is said.
        step: The step of this run that met the effect; None: the one that began it.

    Raises:
        Conflict: Somebody settled it before, or may still carry out what is said to have failed.
        RunBusy: Another run is at work on it.
    """
    output = None if word.output is None else session.put(word.output)
    said = Settlement(output=output, by=word.by, note=word.evidence)
    await session.aflush()
    await asyncio.to_thread(
        lambda: session.journal.ledger.settle(session.lease, row.effect_key, word.state, **said)
    )
    session.emit(
        EffectMoved(
            effect_key=row.effect_key,
            step=step or row.step,
            tool=row.tool,
            state=word.state,
            operation_id=row.operation_id,
            by=word.by,
            evidence=word.evidence,
        )
    )
