"""The planner: from a goal to a candidate plan. What it writes is data, never a licence to act."""

from __future__ import annotations

from typing import Any

from langgraph.config import get_config
from pydantic import JsonValue

from plangate.graph.desk import Call
from plangate.graph.state import State
from plangate.journal.events import (
    DraftRefused,
    PlanProposed,
    RunEnded,
    RunStarted,
    TriggerFired,
)
from plangate.journal.session import Session
from plangate.models.planning import Brief, Drafted, draft_plan
from plangate.nodes.ending import Ending
from plangate.nodes.hear import heard
from plangate.nodes.kit import Kit
from plangate.nodes.madeof import CONTRACTS_CHANGED, begin, readable_plan
from plangate.nodes.report import report_of
from plangate.nodes.rounds import may_draft
from plangate.nodes.said import said_by_people
from plangate.nodes.undo import compensation_plan, is_compensation
from plangate.plan.errors import ConfigError, ModelFailed, PlanRejected
from plangate.plan.issue import Issue
from plangate.plan.revise.diff import diff
from plangate.plan.secrets import refuse_secrets
from plangate.plan.templates import choose
from plangate.plan.value.plan import Plan

_MOST_SAID = 5


async def planner(state: State, session: Session, kit: Kit) -> dict[str, Any]:
    """Write the next version of the plan.

    A model plans where one is set up, and answers the issues of its own draft in bounded rounds;
    a template plans where none is, and takes over where a model keeps failing.

    Raises:
        ConfigError: There is neither, or the template does not take the inputs.
        ModelFailed: The model gave no answer and there is no template.
        PlanRejected: What it wrote was no plan, as often as it was asked, and there is no template.
    """
    _begin(state, session, kit)
    if session.view.pending_questions and not _to_be_made_anew(session):
        return await _asked_already(session, kit)
    if not _resumes(session):
        drafted = await _drafted(session, kit)
        if drafted is not None and drafted.plan is not None:
            _propose(session, kit, drafted.plan, drafted.text)
        else:
            _propose(session, kit, _filled(session, kit), "")
    return {"go": "validator"}


async def _asked_already(session: Session, kit: Kit) -> dict[str, Any]:
    """A question that waits is not overtaken by a new plan, and an answer that comes here is heard.

    It comes here where another goal was refused after the question was asked: the thread's newest
    checkpoint is the one of that goal.
    """
    question = session.view.pending_questions[0]
    is_answered = Call.of(get_config()).answer is not None
    if is_answered and session.view.version in session.view.validated:
        await heard(session, kit, question)
    return {"go": "human_gate", "waiting": [question.question_id]}


def _begin(state: State, session: Session, kit: Kit) -> None:
    """The first events of a run: the goal as it was given, and what the run is made of."""
    if not session.view.seq:
        if not state.get("goal"):
            what = f"run {session.run.run_id!r} had not begun, and its inputs are lost"
            raise ConfigError(what, hint="Start another run, on another thread.")
        session.emit(
            RunStarted(
                goal_id=session.run.goal_id,
                goal=session.run.goal,
                inputs=session.put(state.get("inputs") or {}),
                principal=session.run.principal.principal,
                agent=session.run.agent,
                task=state.get("task", ""),
            )
        )
        begin(session, kit)


async def _drafted(session: Session, kit: Kit) -> Drafted | None:
    """Let the model write a draft that compiles; None where it cannot and a template has to."""
    issues = _last_issues(session)
    writes = kit.model is not None and not is_compensation(session.view)
    while writes and may_draft(session.view):
        try:
            drafted = await draft_plan(
                kit.model,
                _brief(session, kit, issues),
                book=kit.book,
                on_call=session.emit,
                keep=session.put,
                meter=kit.meter(session, kit.budget),
            )
        except ModelFailed:
            if not kit.templates:
                raise
            return None
        if drafted.plan is not None:
            return drafted
        issues = drafted.issues
        session.emit(DraftRefused(draft=session.put(drafted.text), issues=issues))
    return None


def _brief(session: Session, kit: Kit, issues: tuple[Issue, ...]) -> Brief:
    return Brief(
        goal=session.run.goal,
        goal_id=session.run.goal_id,
        inputs=_inputs(session),
        catalog=kit.catalog(session),
        policy=kit.policy,
        budget=kit.budget,
        issues=issues,
        feedback="\n".join((*said_by_people(session), *_to_compress(session))),
    )


def _to_compress(session: Session) -> tuple[str, ...]:
    """Tell a planner that plans anew what the last look at the limits said."""
    weighed = session.view.reestimated[-1:]
    return tuple(
        f"Plan less: {each.says}" for each in weighed if each.decision in ("compress", "ask")
    )


def _resumes(session: Session) -> bool:
    """A plan that nobody found fault with is taken up again as it stands, while it can be."""
    view = session.view
    if not view.version or _to_be_made_anew(session):
        return False
    if is_compensation(view):
        return True
    checked = view.validated.get(view.version)
    asked_for_changes = any(
        (decision.decision == "changes" or "inputs" in decision.answer)
        and decision.decision in ("changes", "edit")
        and view.questions[key].plan_version == view.version
        for key, decision in view.decisions.items()
        if key in view.questions
    )
    return not asked_for_changes and (checked is None or checked.valid)


def _to_be_made_anew(session: Session) -> bool:
    redo = session.view.redo
    return redo is not None and redo.word == "replan"


def _propose(session: Session, kit: Kit, plan: Plan, text: str) -> None:
    refuse_secrets("the plan", plan.model_dump(mode="json"))
    view = session.view
    changes, redo = None, view.redo
    if view.version:
        parent = view.plans[view.version].content_hash
        plan = plan.model_copy(update={"version": view.version + 1, "parent_hash": parent})
        old = readable_plan(session, kit)
        if old is not None:
            said = diff(old, plan, catalog=kit.catalog(session))
            changes = session.put(said.model_dump(mode="json"))
    session.emit(
        PlanProposed(
            version=plan.version,
            plan=session.put(plan.model_dump(mode="json")),
            content_hash=plan.content_hash,
            parent_hash=plan.parent_hash,
            author=plan.author,
            draft=session.put(text) if text else None,
            diff=changes,
            trigger="" if redo is None else f"fingerprint:{redo.word}",
        )
    )
    if redo is not None and plan.content_hash in view.approved:
        # The same content under other contracts is not what was approved.
        session.emit(TriggerFired(kind="person", code=CONTRACTS_CHANGED, says=redo.reasons[0]))


def _filled(session: Session, kit: Kit) -> Plan:
    """Fill the template; where it cannot be, the run is over, and its thread free for another."""
    try:
        return _fill(session, kit)
    except (ConfigError, PlanRejected) as exc:
        issues: tuple[Issue, ...] = getattr(exc, "issues", ())
        said = [f"{each.code} {each.field or 'plan'}: {each.says}" for each in issues]
        why = "; ".join(said[:_MOST_SAID]) or str(exc)
        report = report_of(session, None, Ending("failed", "fail", why), [], ())
        ended = RunEnded(ending="failed", verdict="fail", why=why, report=session.put(report))
        session.emit(ended)
        raise


def _fill(session: Session, kit: Kit) -> Plan:
    if is_compensation(session.view):
        return compensation_plan(session, kit)
    if kit.model is not None and not kit.templates:
        refused = session.view.refused
        issues = refused[-1].issues if refused else _last_issues(session)
        raise PlanRejected(issues, hint="Try another model, or give the agent a template.")
    return choose(kit.templates, session.view.task).fill(
        session.run.goal,
        _inputs(session),
        session.run.goal_id,
        catalog_hash=kit.catalog(session).content_hash,
        policy_hash=kit.policy.content_hash,
    )


def _inputs(session: Session) -> dict[str, JsonValue]:
    """What the user gave, as the first event has it, and what a person changed at the gate."""
    given = session.load(session.view.inputs)
    return {**(given if isinstance(given, dict) else {}), **session.view.inputs_changed}


def _last_issues(session: Session) -> tuple[Issue, ...]:
    view = session.view
    checked = view.validated.get(view.version)
    if checked is not None and not checked.valid:
        return checked.issues
    return view.refused[-1].issues if view.refused else ()
