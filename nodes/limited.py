"""A limit that a node runs into stops the run where it stands, and leads to the partial report.

Whichever node it is: nothing was begun that the limit does not allow, and the run can be resumed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from plangate.graph.state import State
from plangate.journal.session import Session
from plangate.journal.spending import BudgetStopped
from plangate.nodes.kit import Kit
from plangate.plan.errors import BudgetExceeded

Node: TypeAlias = Callable[[State, Session, Kit], Awaitable[Mapping[str, Any]]]


async def within_limits(body: Node, state: State, session: Session, kit: Kit) -> Mapping[str, Any]:
    """Do a node's work, unless a limit stops it."""
    try:
        return await body(state, session, kit)
    except BudgetExceeded as exc:
        session.emit(stop_of(exc, None))
        return {"go": "settle", "waiting": []}


def stop_of(limit: BudgetExceeded, step: str | None) -> BudgetStopped:
    """Return the event of a stop at a limit."""
    return BudgetStopped(
        limit=limit.limit,
        spent=limit.spent,
        allowed=limit.allowed,
        needs=limit.needs,
        step=step or None,
        hint=limit.hint,
    )
