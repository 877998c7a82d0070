"""Checks that a person has to decide, by their level or since nothing else could; and the answer.

A person's word stands in for what is unknown and for nothing else: it never touches a fail. It is
about one attempt, or about one look at the goal; where something else came of it meanwhile, the
question is another one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from plangate.engine.bench import Bench
from plangate.engine.checks import matter_of
from plangate.graph.payload import QuestionCard, question_payload
from plangate.journal.decisions import Decision
from plangate.journal.events import TriggerFired, VerdictReached
from plangate.journal.judged import CriterionJudged
from plangate.journal.questions import QuestionAsked
from plangate.journal.session import Session
from plangate.journal.view import RunView
from plangate.nodes.payloads import Asking
from plangate.plan.outcome import Says
from plangate.plan.value.frozen import Json, digest
from plangate.plan.value.plan import Plan
from plangate.plan.verdict import PERSON, EvidenceRef, Verdict

_UNKNOWN = ("verdict_unknown", "goal_unknown")


class Undecided(NamedTuple):
    """A check that nobody has decided."""

    verdict: Verdict
    unit: str = ""
    """Whose it is: a step, or an element of its list; empty: the goal's."""


def undecided(view: RunView, fired: TriggerFired) -> Undecided | None:
    """Return the check that a trigger is about; None: it is about no check."""
    if fired.kind not in _UNKNOWN:
        return None
    if fired.kind == "goal_unknown":
        said = view.goal_verified.verdicts if view.goal_verified is not None else ()
        found = (Undecided(each) for each in said if each.says == "unknown")
    else:
        found = (
            Undecided(each, unit)
            for unit, verdicts in view.verdicts.items()
            if unit.partition(".")[0] == fired.step
            for each in verdicts
            if each.says == "unknown"
        )
    return next(found, None)


def ask_verdict(
    session: Session, plan: Plan, bench: Bench, asks: Undecided, asking: Asking
) -> dict[str, Any]:
    """Build the question: the claim, why it is not known, and all that is there to decide it by."""
    verdict, step = asks.verdict, asks.unit.partition(".")[0] or None
    where = f"{asks.unit}: " if asks.unit else "The goal: "
    text = (
        f"{where}is this so: {verdict.claim}? It is not known: {verdict.why}. "
        "Say pass or fail, and what you rest it on; or look again (retry), or stop."
    )
    return question_payload(
        QuestionCard(
            question_id=asking.question_id,
            run_id=session.run.run_id,
            kind="verdict",
            text=text,
            audience=asking.audience,
            details={
                "check": verdict.check_id,
                "level": verdict.level,
                "by": verdict.verifier,
                "evidence": [each.ref for each in verdict.evidence],
                **_shown(session, plan, bench, asks),
            },
            step=step,
            plan_version=plan.version,
            plan_hash=plan.content_hash,
            plan_ref=session.view.plans[plan.version].plan,
            expires_at=asking.expires_at,
            roles=asking.roles,
        )
    )


def _shown(session: Session, plan: Plan, bench: Bench, asks: Undecided) -> dict[str, Json]:
    """Return what a judge would be shown: what the step was given and gave, or the goal's."""
    tried = session.view.attempts.get(session.view.judged.get(asks.unit, ""))
    if tried is not None and tried.ended is not None:
        output = tried.ended.output
        given = session.load(tried.started.args)
        return {"given": given, "result": None if output is None else session.load(output)}
    if asks.unit:
        result = session.view.results.get(asks.unit)
        return {} if result is None else {"result": session.load(result)}
    checks = {each.id: each for each in plan.success_criteria}
    check = checks.get(asks.verdict.check_id)
    return {} if check is None else dict(matter_of(bench, check, {}, ()).evidence)


def judge_asked(session: Session, question: QuestionAsked, decision: Decision) -> None:
    """Record what a person says of a check, as a verdict of theirs."""
    view = session.view
    fired = TriggerFired(
        kind="verdict_unknown" if question.step else "goal_unknown", step=question.step
    )
    asks = undecided(view, fired)
    if asks is None or asks.verdict.check_id != question.check:
        return  # what was asked about is not there any more
    said = _said(asks.verdict, question, decision)
    if question.step is None:
        session.emit(
            CriterionJudged(
                question_id=question.question_id,
                content_hash=question.content_hash,
                seen=asks.verdict.evidence,
                verdict=said,
            )
        )
        return
    attempt = view.judged.get(asks.unit, "")
    session.emit(VerdictReached(step=question.step, attempt_id=attempt, verdict=said))


def _said(unknown: Verdict, question: QuestionAsked, decision: Decision) -> Verdict:
    says: Says = "pass" if decision.answer.get("says") == "pass" else "fail"
    ref = EvidenceRef(
        ref=f"decision://{question.question_id}", sha256=digest(dict(decision.answer))
    )
    why = str(decision.answer.get("evidence") or decision.comment)
    return Verdict(
        says=says,
        check_id=unknown.check_id,
        level="L4",
        verifier=f"{PERSON}{decision.by}",
        claim=unknown.claim,
        evidence=(*unknown.evidence, ref),
        failed_constraints=(why,) if says == "fail" else (),
        why=why,
        repairable=says == "fail",
        recommended_route="" if says == "pass" else "replan",
    )


def with_words(view: RunView, plan: Plan, verdicts: list[Verdict]) -> list[Verdict]:
    """Put what people said of criteria in the place of what is unknown on the same evidence."""
    return [_word(view, plan, each) if each.says == "unknown" else each for each in verdicts]


def _word(view: RunView, plan: Plan, unknown: Verdict) -> Verdict:
    said = view.criteria.get((plan.content_hash, unknown.check_id))
    return unknown if said is None or said.seen != unknown.evidence else said.verdict
