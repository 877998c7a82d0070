"""A node heeds what its owner is told from outside: a drain, or that a person ended the run.

A drain leaves the run where it stands, with LangGraph's own word for it (`GraphDrained`); the same
node goes on when the run is resumed. A cancel leads to `settle`. What acts is never broken off: the
executor stops by itself once its effects have ended, and any other node can be done again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, Final

from langgraph.errors import GraphDrained

from plangate.graph.desk import Call
from plangate.journal.questions import StopAsked
from plangate.journal.session import Session
from plangate.journal.stop import cancellation
from plangate.plan.errors import PlangateError

EVERY_S: Final = 0.2
"""How often a node that is at work looks whether its run was cancelled."""

_AT_ONCE: Final = frozenset({"validator", "human_gate"})
"""Nodes that end by themselves in no time; only a cancel keeps them from starting."""

_BY_ITSELF: Final = _AT_ONCE | {"executor"}
"""Nodes that are not broken off."""


async def heeding(
    name: str,
    work: Callable[[], Coroutine[Any, Any, Mapping[str, Any]]],
    session: Session,
    call: Call,
) -> Mapping[str, Any]:
    """Do a node's work, unless or until the run is told to stop.

    Args:
        name: The node's.
        work: Begins its body.
        session: The run, held.
        call: The invocation.

    Raises:
        GraphDrained: This process stops; the run can be resumed.
    """
    await asyncio.to_thread(_look, session, call)
    asked = session.stop.asked
    if asked is not None and (asked.kind == "cancel" or name not in _AT_ONCE):
        return stopped(session, asked)
    over = asyncio.Event()
    watch = asyncio.create_task(_watch(session, call, over))
    try:
        return await (work() if name in _BY_ITSELF else _until_told(work(), session))
    finally:
        over.set()
        await watch


def stopped(session: Session, asked: StopAsked) -> Mapping[str, Any]:
    """Record that the run was told to stop, and return where a node leads then.

    Raises:
        GraphDrained: It was to drain.
    """
    session.record_stop()
    if asked.kind == "drain":
        raise GraphDrained(asked.reason or "shutdown")
    return {"go": "settle", "waiting": []}


async def _until_told(
    work: Coroutine[Any, Any, Mapping[str, Any]], session: Session
) -> Mapping[str, Any]:
    loop, task = asyncio.get_running_loop(), asyncio.ensure_future(work)
    with session.stop.telling(lambda: loop.call_soon_threadsafe(task.cancel)):
        try:
            return await task
        except asyncio.CancelledError:
            this, asked = asyncio.current_task(), session.stop.asked
            if asked is None or (this is not None and this.cancelling()):
                raise
            return stopped(session, asked)


async def _watch(session: Session, call: Call, over: asyncio.Event) -> None:
    """Look again and again; a look that fails is no order to stop, and the next one may not."""
    while not over.is_set():
        with suppress(TimeoutError):
            await asyncio.wait_for(over.wait(), EVERY_S)
            return
        with suppress(PlangateError):
            await asyncio.to_thread(_look, session, call)


def _look(session: Session, call: Call) -> None:
    reason = getattr(call.control, "drain_reason", None)
    if reason is not None:
        session.stop.ask(StopAsked(kind="drain", by="host", reason=reason))
    cancelled = cancellation(session.journal.decisions, session.run.run_id)
    if cancelled is not None:
        session.stop.ask(cancelled)
