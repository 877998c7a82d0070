"""The executor: puts the approved version on the bench, and says where its end leads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plangate.engine.bench import Bench
from plangate.engine.dataflow import run_plan
from plangate.engine.release import refused_now
from plangate.engine.triggers import Halt, Reason
from plangate.graph.heed import stopped
from plangate.graph.state import State
from plangate.journal.events import TriggerFired
from plangate.journal.points import reached
from plangate.journal.session import Session
from plangate.nodes.kit import Kit
from plangate.nodes.limited import stop_of
from plangate.nodes.madeof import CONTRACTS_CHANGED, compared
from plangate.nodes.undo import mark_undone

_GO: Mapping[Reason, str] = {
    "done": "verifier",
    "question": "human_gate",
    "approval": "human_gate",
    "declined": "settle",
    "trigger": "reflector",
    "abort": "settle",
    "budget": "settle",
    "stranded": "settle",
}


async def executor(_: State, session: Session, kit: Kit) -> dict[str, Any]:
    """Run what can run; everything that happened is in the journal before this returns.

    Raises:
        GraphDrained: This process stops; what acted has ended.
    """
    bench = kit.bench(session, kit.plan(session))
    if _outdated(session, kit, bench):
        return {"go": "validator"}
    halt = await run_plan(bench, parallel=kit.parallel)
    reached("plan.halted")
    await mark_undone(session, kit, bench.plan)  # also where the run stops now: it is gone
    if session.stop.asked is not None and halt.reason in ("drained", "cancelled"):
        return dict(stopped(session, session.stop.asked))
    if bench.plan.version != session.view.version:  # what this pass found is about another plan
        await session.aflush()
        return {"go": "validator"}
    _record(session, halt)
    await session.aflush()
    return {"go": _GO[halt.reason]}


def _outdated(session: Session, kit: Kit, bench: Bench) -> bool:
    """Return True if the plan was checked against other contracts or another policy than today's.

    An approval binds all three, so it is asked for again; what was checked is checked again. Not
    so for a change that the rest of the plan does not rely on. Where a step may not run at all any
    more, its release says so, and more exactly.
    """
    view = session.view
    checked = view.validated[bench.plan.version]
    if checked.fingerprint:
        if compared(session, kit, checked.fingerprint).word in ("same", "compatible"):
            return False
    elif (checked.catalog_hash, checked.policy_hash) == (
        bench.catalog.content_hash,
        bench.policy.content_hash,
    ):
        return False
    if any(refused_now(bench, step) for step in bench.plan.steps):
        return False
    if checked.content_hash in view.approved:
        says = "the tools or the policy have changed since this plan was approved"
        session.emit(TriggerFired(kind="person", code=CONTRACTS_CHANGED, says=says))
    return True


def _record(session: Session, halt: Halt) -> None:
    if halt.limit is not None:
        session.emit(stop_of(halt.limit, halt.step))
    elif halt.reason not in ("done", "question"):
        session.emit(
            TriggerFired(
                kind=halt.kind or halt.reason,
                step=halt.step or None,
                code=halt.code,
                says=halt.says,
            )
        )
