"""The critic: a second pair of eyes on meaning. Advisory; never the only gate, never a new step."""

from __future__ import annotations

from typing import Any

from plangate.graph.state import State
from plangate.journal.events import PlanCriticized
from plangate.journal.session import Session
from plangate.models.call import call_model
from plangate.models.critique import Criticism
from plangate.models.form import form_of
from plangate.nodes.kit import Kit
from plangate.plan.errors import ModelFailed
from plangate.plan.issue import Issue
from plangate.plan.mode import is_direct
from plangate.plan.value.plan import Plan
from plangate.prompts.loader import load


async def critic(_: State, session: Session, kit: Kit) -> dict[str, Any]:
    """Let another model read the plan; without one, say that nobody did."""
    plan = kit.plan(session)
    if plan.version in session.view.criticized:
        return {"go": "human_gate"}  # resumed: this version was read before
    if is_direct(plan, kit.catalog(session)):
        session.emit(PlanCriticized(version=plan.version, skipped="one read, nothing to doubt"))
        return {"go": "human_gate"}
    if kit.critic is None:
        session.emit(PlanCriticized(version=plan.version, skipped="no critic model is set up"))
        return {"go": "human_gate"}
    try:
        said = await call_model(
            kit.critic,
            load("critic"),
            {"goal": plan.goal, "plan": plan.model_dump_json(exclude_defaults=True)},
            role="critic",
            schema=form_of(Criticism),
            book=kit.book,
            on_call=session.emit,
            keep=session.put,
            meter=kit.meter(session, plan.budget),
        )
    except ModelFailed as exc:
        session.emit(PlanCriticized(version=plan.version, skipped=f"critic failed: {exc}"))
        return {"go": "human_gate"}
    session.emit(PlanCriticized(version=plan.version, issues=_issues(said, plan)))
    return {"go": "human_gate"}


def _issues(said: Criticism, plan: Plan) -> tuple[Issue, ...]:
    """Keep findings that cite something that is in the plan; a critic cannot invent a step."""
    return tuple(
        Issue(
            layer=8,
            code="semantic",
            step=each.step or None,
            field=each.field,
            says=each.says,
            severity="warning",
        )
        for each in said.findings
        if not each.step or each.step in plan.by_id
    )
