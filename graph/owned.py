"""A node owns its run while it works: it holds the lease, and has the run's log folded.

LangGraph locks nothing. Two processes that resume one thread both run every node, and the history
forks without a word. So each node asks the journal for the run first, and only one gets it; the
others end with `RunBusy`. Which run a thread is on is the journal's to say, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, TypeAlias, cast

from langchain_core.runnables import RunnableConfig

from plangate.graph.desk import Call, Desk
from plangate.graph.fenced import need_name
from plangate.graph.heed import heeding
from plangate.graph.late import refuse_late
from plangate.graph.state import STATE_VERSION, Input, Node, State, blank
from plangate.journal.artifacts import ref_of
from plangate.journal.events import RunStarted
from plangate.journal.journal import Journal
from plangate.journal.points import reached
from plangate.journal.runs import Run, is_at_work
from plangate.journal.session import Session
from plangate.plan.errors import ConfigError, RunBusy, WaitingForPerson

__all__ = ["Body", "Desk", "find_run", "owned"]

Body: TypeAlias = Callable[[State, Session], Coroutine[Any, Any, Mapping[str, Any]]]
"""What a node does with the run it holds; gives the keys of the state to change."""


def owned(name: str, body: Body, desk: Desk) -> Node:
    """Return the node that runs `body` while it owns the run.

    The body's records are on the disk before its update reaches a checkpoint: a checkpoint is never
    ahead of the journal. A run that has ended is not worked on again, whatever checkpoint somebody
    goes back to; its nodes lead to `settle`.

    Args:
        name: The node's name. `planner` is where new goals come in, `settle` where runs end.
        body: What it does; may call `interrupt`.
        desk: The sessions of this process.

    Raises:
        Denied: (The node) an answer came that cannot count any more.
        GraphDrained: (The node) this process stops; the run can be resumed.
        RunBusy: (The node) another invocation is at work on the run.
        WaitingForPerson: (The node) a new goal came while the thread's run has not ended.
    """

    async def node(state: State, config: RunnableConfig) -> Mapping[str, Any]:
        _need_known(state)
        call = Call.of(config)
        session = await desk.take(call, lambda: find_run(name, state, call, desk))
        try:
            reached("node.entered")
            base = _base(state, session)
            seen = _seen(state, base, session)
            update = await _work(name, lambda: body(seen, session), session, call)
            reached("node.worked")
            await session.aflush()
            reached("node.recorded")
        except BaseException as error:
            await desk.leave(call, because=error)
            raise
        if name == "settle":
            await desk.leave(call)
        else:
            await desk.rest(call)
        return {**base, **update}

    return node


def _need_known(state: State) -> None:
    found = state.get("schema_version", STATE_VERSION)
    if found > STATE_VERSION:
        raise ConfigError(
            f"the checkpoint is of state version {found}, and this plangate knows {STATE_VERSION}",
            hint="upgrade plangate; the run's journal has all that was done",
        )
    need_name(state.get("run_id"))


def find_run(name: str, state: State, call: Call, desk: Desk) -> str:
    """Return the id of the run that a node works on; `planner` makes it if there is none.

    A new goal starts a run unless the thread has one that did not end: a message to a paused run is
    neither an approval nor a new task. The same goal again, where nobody is asked, goes on with it.

    Raises:
        ConfigError: There is neither a run nor a goal, or the run is another thread's.
        RunBusy, WaitingForPerson: As `owned`.
    """
    latest = desk.journal.runs.latest_of_thread(call.thread_id) if call.thread_id else None
    if name != "planner" or not _goal(state):
        # A resume whose checkpoint is lost begins at the planner with nothing but its thread.
        lost = "run_id" not in state and latest is not None and latest.status != "ended"
        return latest.run_id if lost and latest else _own_run(state, call, desk.journal)
    if latest is not None and _goes_on(latest, state, call, desk.journal):
        return latest.run_id
    if latest is not None and latest.status != "ended":
        raise _refusal(latest, desk.journal)
    return desk.start(_new(state, desk.journal), call.thread_id, call.context)


def _own_run(state: State, call: Call, journal: Journal) -> str:
    run_id = state.get("run_id")
    if not run_id:
        what = "the graph was called without a goal"
        raise ConfigError(what, hint='call it with {"goal": "...", "inputs": {...}}')
    thread = journal.runs.get(run_id).thread_id
    if thread != call.thread_id:
        what = f"run {run_id!r} belongs to thread {thread!r}, not to {call.thread_id!r}"
        raise ConfigError(what, hint="call the graph with that thread_id")
    return run_id


def _goes_on(latest: Run, state: State, call: Call, journal: Journal) -> bool:
    """Return True if an input is no news: a node that crashed, a replay, the same request again."""
    if latest.status == "ended":
        return call.resuming and _same_goal(latest, state, journal)
    if call.resuming:
        return True
    return latest.status != "waiting" and _same_goal(latest, state, journal)


def _same_goal(run: Run, state: State, journal: Journal) -> bool:
    if run.goal.strip() != _goal(state) or state.get("goal_id") not in (None, "", run.goal_id):
        return False
    first = journal.log.read(run.run_id, limit=1)
    started = first[0].event if first else None
    inputs = ref_of(state.get("inputs") or {}).ref
    return not isinstance(started, RunStarted) or started.inputs == inputs


def _refusal(run: Run, journal: Journal) -> RunBusy | WaitingForPerson:
    if is_at_work(run, journal.clock()):
        what = f"run {run.run_id!r} of this thread is worked on by {run.owner}"
        return RunBusy(what, hint="wait for it, or use another thread_id for another goal")
    return WaitingForPerson(
        f"run {run.run_id!r} of this thread has not ended ({run.status}); a new goal changes that"
        " as little as it answers a question",
        hint="answer with Command(resume=...), go on with invoke(None, ...), or use another thread",
    )


def _goal(state: State) -> str:
    return str(state.get("goal") or "").strip()


def _without(state: State, keys: Iterable[str]) -> State:
    left = {key: value for key, value in state.items() if key not in keys}
    return cast("State", left)


def _new(state: State, journal: Journal) -> State:
    """Drop the id of an earlier run, which the state of a thread or of a parent graph still has."""
    try:
        journal.runs.get(state.get("run_id") or "")
    except ConfigError:
        return state
    return _without(state, ["run_id"])


def _base(state: State, session: Session) -> State:
    """Return what each update says; at a new run, what the one before left behind is emptied."""
    run_id = session.run.run_id
    goes_on = state.get("run_id") == run_id and not _goal(state)
    base = State() if goes_on else blank()
    return State(**{**base, "run_id": run_id, "schema_version": STATE_VERSION})


def _seen(state: State, base: State, session: Session) -> State:
    """Return what the body may see: a goal that was refused before is not this run's."""
    foreign = () if _goal(state) == session.run.goal.strip() else tuple(Input.__annotations__)
    return State(**{**_without(state, foreign), **base})


async def _work(
    name: str,
    work: Callable[[], Coroutine[Any, Any, Mapping[str, Any]]],
    session: Session,
    call: Call,
) -> Mapping[str, Any]:
    if name == "settle":
        return await work()
    if call.resuming and call.answer is not None:
        await asyncio.to_thread(refuse_late, call.answer, session)
    if session.view.ended is not None or session.view.revised is not None:
        return {"go": "settle"}
    return await heeding(name, work, session, call)
