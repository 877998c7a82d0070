"""The planner: from a goal to a candidate plan. What it writes is data, never a licence to act."""

from __future__ import annotations

from typing import Any

from pydantic import JsonValue

from plangate.graph.state import State
from plangate.journal.events import DraftRefused, PlanProposed, RunStarted
from plangate.journal.session import Session
from plangate.models.call import ask_model
from plangate.models.chat import model_name
from plangate.models.draft import PlanDraft, compile_draft
from plangate.models.render import render_catalog, render_issues, render_policy
from plangate.nodes.kit import Kit
from plangate.nodes.validator import MOST_REPAIRS
from plangate.plan.errors import ConfigError, ModelFailed
from plangate.plan.issue import Issue
from plangate.plan.templates import Template
from plangate.plan.value.diff import diff
from plangate.plan.value.frozen import parse
from plangate.plan.value.plan import Author, Plan
from plangate.prompts.loader import load


async def planner(state: State, session: Session, kit: Kit) -> dict[str, Any]:
    """Write the next version of the plan.

    A model plans where one is set up, and answers the issues of its own draft in bounded rounds;
    a template plans where none is, and takes over where a model keeps failing.

    Raises:
        ConfigError: Neither can plan this goal.
        ModelFailed: The model failed and no template fits.
    """
    _begin(state, session)
    if session.view.pending_questions:
        return {"go": "human_gate"}  # a question that waits is not overtaken by a new plan
    if not _resumes(session):
        plan = await _drafted(session, kit) or _fill(session, kit)
        _propose(session, kit, plan)
    return {"go": "validator"}


def _begin(state: State, session: Session) -> None:
    """The first event of a run: the goal as it was given."""
    if not session.view.seq:
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


async def _drafted(session: Session, kit: Kit) -> Plan | None:
    """Let the model write a draft that compiles; None where it cannot and a template has to."""
    while kit.model is not None and _rounds(session) <= MOST_REPAIRS:
        try:
            plan = await _draft(session, kit)
        except ModelFailed:
            if not kit.templates:
                raise
            return None
        if plan is not None:
            return plan
    return None


def _resumes(session: Session) -> bool:
    """A plan that nobody found fault with is taken up again as it stands."""
    view = session.view
    if not view.version:
        return False
    checked = view.validated.get(view.version)
    asked_for_changes = any(
        decision.decision == "changes" and view.questions[key].plan_version == view.version
        for key, decision in view.decisions.items()
        if key in view.questions
    )
    return not asked_for_changes and (checked is None or checked.valid)


def _rounds(session: Session) -> int:
    """Drafts that a model has written for this run, usable or not."""
    return sum(1 for each in session.view.plans.values() if each.author.kind == "planner") + len(
        session.view.refused
    )


def _propose(session: Session, kit: Kit, plan: Plan) -> None:
    view = session.view
    changes = None
    if view.version:
        before = view.plans[view.version]
        old = parse(Plan, session.load(before.plan))
        plan = plan.model_copy(
            update={"version": view.version + 1, "parent_hash": old.content_hash}
        )
        said = diff(old, plan, catalog=kit.catalog(session))
        changes = session.put(said.model_dump(mode="json"))
    session.emit(
        PlanProposed(
            version=plan.version,
            plan=session.put(plan.model_dump(mode="json")),
            content_hash=plan.content_hash,
            parent_hash=plan.parent_hash,
            author=plan.author,
            diff=changes,
        )
    )


def _fill(session: Session, kit: Kit) -> Plan:
    inputs = _inputs(session)
    template = choose(kit.templates, session.view.task)
    return template.fill(
        session.run.goal,
        inputs,
        session.run.goal_id,
        catalog_hash=kit.catalog(session).content_hash,
        policy_hash=kit.policy.content_hash,
    )


def choose(templates: tuple[Template, ...], task: str) -> Template:
    """Pick the template that the caller named, or the only one there is.

    Raises:
        ConfigError: No template has that name, or several could be meant.
    """
    names = ", ".join(each.template for each in templates)
    if not templates:
        raise ConfigError(
            "there is no model and no template to plan with",
            hint="Give create_plan_agent a model or templates=.",
        )
    if task:
        for each in templates:
            if each.template == task:
                return each
        raise ConfigError(f"no template named {task!r}", hint=f"There are: {names}.")
    if len(templates) > 1:
        raise ConfigError("several templates could be meant", hint=f"Name one task of: {names}.")
    return templates[0]


async def _draft(session: Session, kit: Kit) -> Plan | None:
    """Ask the model; None where its answer could not be compiled (the issues are in the log)."""
    catalog, prompt = kit.catalog(session), load("planner")
    reply = await ask_model(
        kit.model,
        prompt,
        {
            "catalog": render_catalog(catalog),
            "policy": render_policy(kit.policy),
            "goal": session.run.goal,
            "inputs": _inputs(session),
            "issues": render_issues(_last_issues(session)),
            "feedback": _feedback(session),
        },
        role="planner",
        schema=PlanDraft,
        book=kit.book,
        on_call=session.emit,
        meter=kit.meter(session, kit.budget),
    )
    compiled = compile_draft(
        reply.value or reply.text,
        catalog,
        goal=session.run.goal,
        goal_id=session.run.goal_id,
        inputs=_inputs(session),
        budget=kit.budget,
        policy_hash=kit.policy.content_hash,
        author=Author(kind="planner", name=model_name(kit.model), prompt_sha256=prompt.sha256),
    )
    if isinstance(compiled, Plan):
        return compiled
    session.emit(DraftRefused(draft=session.put(reply.text), issues=compiled))
    return None


def _inputs(session: Session) -> dict[str, JsonValue]:
    """What the user gave, as the first event has it."""
    given = session.load(session.view.inputs)
    return given if isinstance(given, dict) else {}


def _last_issues(session: Session) -> tuple[Issue, ...]:
    view = session.view
    checked = view.validated.get(view.version)
    if checked is not None and not checked.valid:
        return checked.issues
    return view.refused[-1].issues if view.refused else ()


def _feedback(session: Session) -> str:
    said = [each.comment for each in session.view.decisions.values() if each.comment]
    return "\n".join(said)
