"""The replanner: a patch as small as the damage, and never a plan that was tried before."""

from __future__ import annotations

from typing import Any

from plangate.engine.assumed import KIND
from plangate.graph.state import State
from plangate.journal.events import PlanProposed, TriggerFired
from plangate.journal.points import reached
from plangate.journal.session import Session
from plangate.nodes.kit import Kit
from plangate.plan.errors import PlanRejected
from plangate.plan.outcome import PASSED
from plangate.plan.repair import find
from plangate.plan.revise.patch import Patched, apply
from plangate.plan.value.plan import Author, Plan


async def replanner(_: State, session: Session, kit: Kit) -> dict[str, Any]:
    """Apply the repair that the reflector chose; what cannot be repaired goes to a person."""
    plan = kit.plan(session)
    fired = session.view.open_trigger
    if fired is None:
        return {"go": "validator"}  # answered by an owner that died before its checkpoint
    try:
        patched = _patched(session, kit, plan, fired)
    except PlanRejected as exc:
        says = "; ".join(issue.says for issue in exc.issues)
        return _give_up(session, fired, f"the repair does not fit this plan: {says}")
    if patched.orphaned_effects:
        named = ", ".join(patched.orphaned_effects)
        return _give_up(session, fired, f"done effects would lose their ground: {named}")
    if any(each.content_hash == patched.plan.content_hash for each in session.view.plans.values()):
        return _give_up(session, fired, "this plan was tried before")
    reached("patch.made")
    session.emit(
        PlanProposed(
            version=patched.plan.version,
            plan=session.put(patched.plan.model_dump(mode="json")),
            content_hash=patched.plan.content_hash,
            parent_hash=plan.content_hash,
            author=patched.plan.author,
            diff=session.put(patched.diff.model_dump(mode="json")),
            carried=patched.carried,
            trigger=f"{fired.kind}:{fired.code}",
        )
    )
    return {"go": "validator"}


def _patched(session: Session, kit: Kit, plan: Plan, fired: TriggerFired) -> Patched:
    step = fired.step or ""
    rule = find(kit.repairs, fired.code, plan.by_id[step].capability)
    assert rule is not None, "the reflector sends only what a rule covers"  # noqa: S101 (ours)
    done = frozenset(name for name, each in session.view.steps.items() if each.status in PASSED)
    author = Author(kind="replanner", name=f"rule:{rule.code}")
    got = apply(plan, rule.patch_for(plan, step), author, done=done, catalog=kit.catalog(session))
    if fired.kind != KIND:
        return got
    return got.model_copy(update={"plan": _given_up(plan, got.plan, fired.code.partition(":")[2])})


def _given_up(old: Plan, new: Plan, name: str) -> Plan:
    """Note in the new version that an assumption is false: what takes a step's place knows it."""
    kept = {step for each in old.assumptions for step in each.invalidates if step in new.by_id}
    assumptions = tuple(
        each.model_copy(
            update={
                "status": "invalidated",
                "invalidates": tuple(step for step in each.invalidates if step in kept),
            }
        )
        if each.id == name
        else each
        for each in new.assumptions
    )
    return new.model_copy(update={"assumptions": assumptions})


def _give_up(session: Session, fired: TriggerFired, why: str) -> dict[str, Any]:
    session.emit(TriggerFired(kind="repair_failed", step=fired.step, code=fired.code, says=why))
    return {"go": "human_gate"}
