"""The validator: every version passes the same layers, whoever wrote it."""

from __future__ import annotations

from typing import Any

from plangate.graph.state import State
from plangate.journal.events import PlanValidated
from plangate.journal.session import Session
from plangate.journal.view import RunView
from plangate.nodes.case import literals_of
from plangate.nodes.kit import Kit
from plangate.nodes.madeof import put_print, readable_plan
from plangate.nodes.rounds import may_draft
from plangate.plan.layers.run import validate
from plangate.plan.tier import tier_of
from plangate.plan.value.frozen import Json
from plangate.plan.value.plan import Plan
from plangate.plan.value.refs import Ref
from plangate.plan.value.step import Step


async def validator(_: State, session: Session, kit: Kit) -> dict[str, Any]:
    """Check the current version, price it, and compute its tier.

    An invalid version goes back to its planner, as often as
    `plangate.nodes.rounds` allows; then a template takes over, or the run ends with the issues.
    """
    plan = kit.plan(session)
    priced = kit.estimate(session, plan)
    facts = kit.facts(session, priced)
    report = validate(plan, facts, sourced=_accepted_literals(session, kit, plan))
    tiering = tier_of(plan, facts)
    session.emit(
        PlanValidated(
            version=plan.version,
            content_hash=plan.content_hash,
            valid=report.valid,
            issues=report.issues,
            not_evaluated=report.not_evaluated,
            catalog_hash=facts.catalog.content_hash,
            policy_hash=kit.policy.content_hash,
            fingerprint=put_print(session, kit),
            tier=tiering.tier,
            reasons=tiering.reasons,
            confirm=tiering.confirm,
            estimate=priced,
        )
    )
    update = {"plan_version": plan.version, "plan_hash": plan.content_hash}
    if report.valid:
        return {**update, "go": "critic"}
    return {**update, "go": _after_issues(session.view, kit, plan.author.kind)}


def _accepted_literals(session: Session, kit: Kit, plan: Plan) -> list[Json]:
    """Literals of an accepted version of this run: a repair is not blamed for its template's.

    What a person typed into an edit has that person as its source.
    """
    said: list[Json] = literals_of(plan) if plan.author.kind == "human" else []
    for version, checked in session.view.validated.items():
        if checked.valid and version < plan.version:
            said += [
                value
                for step in _steps(session, kit, version)
                for value in step.args.values()
                if Ref.parse(value) is None
            ]
    return said


def _steps(session: Session, kit: Kit, version: int) -> tuple[Step, ...]:
    plan = readable_plan(session, kit, version)
    return plan.steps if plan is not None else ()


def _after_issues(view: RunView, kit: Kit, author: str) -> str:
    """A model may repair its draft; a template, a patch or a person's edit is not tried again.

    Unless what the run is made of has changed since: then each planner may try once more.
    """
    if view.redo is not None:
        return "planner"
    if author != "planner":
        return "settle"
    return "planner" if may_draft(view) or kit.templates else "settle"
