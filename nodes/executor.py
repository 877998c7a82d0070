"""The executor: puts the approved version on the bench, and says where its end leads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plangate.engine.dataflow import run_plan
from plangate.engine.triggers import Halt, Reason
from plangate.graph.state import State
from plangate.journal.events import BudgetStopped, TriggerFired
from plangate.journal.session import Session
from plangate.nodes.kit import Kit

_GO: Mapping[Reason, str] = {
    "done": "verifier",
    "question": "human_gate",
    "approval": "human_gate",
    "declined": "settle",
    "trigger": "reflector",
    "abort": "settle",
    "budget": "settle",
    "drained": "settle",
    "stranded": "settle",
}


async def executor(_: State, session: Session, kit: Kit) -> dict[str, Any]:
    """Run what can run; everything that happened is in the journal before this returns."""
    halt = await run_plan(kit.bench(session, kit.plan(session)), parallel=kit.parallel)
    _record(session, halt)
    await session.aflush()
    return {"go": _GO[halt.reason]}


def _record(session: Session, halt: Halt) -> None:
    if halt.limit is not None:
        limit, spent, allowed = halt.limit
        session.emit(BudgetStopped(limit=limit, spent=spent, allowed=allowed))
    elif halt.reason not in ("done", "question"):
        session.emit(
            TriggerFired(
                kind=halt.kind or halt.reason,
                step=halt.step or None,
                code=halt.code,
                says=halt.says,
            )
        )
