"""The reflector: what went wrong and what could mend it. Known codes first, no model for those.

It reads plan, error codes, verdicts and triggers; never the story that a model told. It does not
reflect on denials, and never proposes a blind repeat of an effect.
"""

from __future__ import annotations

from typing import Any

from plangate.engine.triggers import MOST_SAME, same_failure
from plangate.graph.state import State
from plangate.journal.events import Reflected, TriggerFired
from plangate.journal.points import reached
from plangate.journal.session import Session
from plangate.nodes.kit import Kit
from plangate.nodes.said import changed_by_people
from plangate.plan.repair import RepairRule, find
from plangate.plan.value.plan import Plan

_PERSON = frozenset({"effect_unknown", "verdict_unknown", "goal_unknown", "goal_fail"})
"""Triggers for which the truth is not known; no patch of a plan can make it known."""

_LINE = 500
"""Characters of one change by a person that an event keeps; the plan versions have all of it."""


async def reflector(_: State, session: Session, kit: Kit) -> dict[str, Any]:
    """Judge the last trigger, and send it to the replanner, to a person, or to the end."""
    plan = kit.plan(session)
    fired = session.view.open_trigger
    if fired is None:
        return {"go": "validator"}  # answered by an owner that died before its checkpoint
    rule = _rule(kit, plan, fired)
    reached("reflection.made")
    session.emit(_reflection(session, fired, rule))
    if rule is not None and not rule.needs_person and rule.scope == "local":
        return {"go": "replanner" if _may_repair(session, kit, plan) else "human_gate"}
    if fired.kind == "tool_gone" or (rule is not None and rule.scope == "terminate"):
        return {"go": "settle"}
    return {"go": "human_gate"}


def _may_repair(session: Session, kit: Kit, plan: Plan) -> bool:
    """True while the cap on repairs is not reached and repairing leads anywhere; nobody else asks.

    The cap is the run's: what the plan says, what a person raised, never above the policy.
    """
    if session.view.replans >= kit.limits(session, plan.budget).max_replans:
        return False
    if not same_failure(session.view):
        return True
    category = session.view.reflections[-1].failure_category
    says = f"{category} came back after {MOST_SAME} repairs of it"
    session.emit(TriggerFired(kind="diverging", code="same_failure", says=says))
    return False


def _rule(kit: Kit, plan: Plan, fired: TriggerFired) -> RepairRule | None:
    if fired.kind in _PERSON or fired.step is None or fired.step not in plan.by_id:
        return None
    return find(kit.repairs, fired.code, plan.by_id[fired.step].capability)


def _reflection(session: Session, fired: TriggerFired, rule: RepairRule | None) -> Reflected:
    evidence = [f"error://{fired.code}"] if fired.code else []
    evidence += [
        f"obs://{each.started.attempt_id}"
        for each in session.view.attempts.values()
        if each.started.step == fired.step
    ]
    failed = (fired.step,) if fired.step else ()
    people = tuple(line[:_LINE] for line in changed_by_people(session))
    if rule is None:
        return Reflected(
            failure_category=fired.kind,
            failed_steps=failed,
            evidence=tuple(evidence),
            people=people,
            confidence=0.0,
            needs_person=fired.kind != "tool_gone",
            scope="terminate" if fired.kind == "tool_gone" else "local",
        )
    return Reflected(
        failure_category=rule.category,
        failed_steps=failed,
        evidence=tuple(evidence),
        people=people,
        hypotheses=rule.hypotheses,
        confidence=rule.confidence,
        repairs=(rule.code,),
        lesson=rule.lesson,
        needs_person=rule.needs_person,
        scope=rule.scope,
    )
