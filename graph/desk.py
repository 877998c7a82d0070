"""The sessions of this process: one for each invocation of the graph that is at work on a run.

A session is opened at the first node of an invocation and kept for the following ones, so that a
run is folded once and not nine times. It is closed when the invocation pauses, fails, is cancelled
or settles (`plangate.graph.owned` sees to that). An invocation can also end between two nodes
without a word: a drain, a breakpoint, a caller who stops reading a stream. Then the session goes
after `idle_s`, or before if it can be told that the invocation is over.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import Runtime, get_runtime

from plangate.graph.bridge import after
from plangate.graph.state import State
from plangate.journal.journal import Journal
from plangate.journal.lease import Lease
from plangate.journal.owner import owner_name
from plangate.journal.questions import StopAsked
from plangate.journal.session import Session
from plangate.plan.errors import PlangateError, RunBusy

Start: TypeAlias = Callable[[State, str, Any], str]
"""Creates the row of a new run and returns its id.

Given are the state (with the goal, and with `run_id` only if the caller wants that very id), the
thread as `thread_of` writes it, and what came as `context=`.
"""

_INSIDE: Final = re.compile(r"(.+?)\|[^|]+:[0-9a-f]{8}-[0-9a-f-]{27}(\||$)", re.DOTALL)
"""A thread, and a place in its graph as LangGraph writes it: node and task."""

_POLL_S: Final = 0.01
_REMEMBERED: Final = 256
"""Invocations that let go of their run, whose last checkpoint may still be on its way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One invocation of the graph, as seen from inside a node."""

    control: object
    """LangGraph's control object: made once an invocation, or handed in by the caller. Held here,
    so that no later one can have its identity. None under a host that gives none."""

    writer: Callable[[], object]
    """Weak reference to the invocation's stream writer: None tells that the invocation is over
    (the opposite tells nothing; the control object itself cannot be referred to weakly)."""

    thread_id: str
    """As `thread_of`."""

    context: Any
    """What the caller gave as `context=`."""

    resuming: bool
    """True in the first node of an invocation that goes on where the thread stood."""

    answer: Any = None
    """What came with `Command(resume=...)`, as long as nobody took it."""

    @classmethod
    def of(cls, config: RunnableConfig) -> Call:
        """Read it off the context of the node that is running."""
        runtime: Runtime[Any] | None = get_runtime()
        given = config.get("configurable", {})
        return cls(
            control=None if runtime is None else runtime.control,
            writer=weakref.ref(cls if runtime is None else runtime.stream_writer),
            thread_id=thread_of(config),
            context=None if runtime is None else runtime.context,
            # Not public, and pinned by a test: without it a resume would pass for a new goal.
            resuming=bool(given.get("__pregel_resuming", False)),
            answer=_answer(given.get("__pregel_scratchpad")),
        )

    @property
    def key(self) -> tuple[int, str]:
        """What nodes of one invocation have in common, and no two invocations do."""
        return (id(self.control or self), self.thread_id)


def _answer(scratchpad: Any) -> Any:
    """Read what LangGraph holds for the next interrupt; not public, and pinned by a test."""
    if scratchpad is None:
        return None
    said = scratchpad.get_null_resume(False)  # noqa: FBT003 (to look, not to take)
    return scratchpad.resume[-1] if said is None and scratchpad.resume else said


def thread_of(config: RunnableConfig) -> str:
    """Return the thread as a run records it; empty if the graph runs without one.

    As a subgraph, the place in the parent is part of it: two subgraphs of one thread are two runs.
    """
    given = config.get("configurable", {})
    thread, inside = given.get("thread_id"), given.get("checkpoint_ns", "").rpartition("|")[0]
    if thread is None:
        return ""
    return f"{thread}|{inside}" if inside else str(thread)


def outer_thread(thread_id: str) -> str:
    """Return the thread of the graph around a run, by the run's own; empty: the run has its own.

    Its checkpoints lie among those of that graph, with its saver; LangGraph deletes whole threads
    only, so they go when whoever owns the outer thread deletes it.
    """
    inside = _INSIDE.match(thread_id)
    return "" if inside is None else inside[1]


@dataclass(slots=True)
class _Held:
    call: Call
    session: Session
    busy: bool = True
    turn: int = 0
    """Counts the nodes that used the session."""


class Desk:
    """The sessions of this process.

    Args:
        journal: Where runs are recorded.
        start: How a new run is made.
        ttl_s: Seconds until another process may take a run over from one that stopped answering.
        idle_s: Seconds that a session may wait for the next node of its invocation.
    """

    def __init__(
        self, journal: Journal, *, start: Start, ttl_s: float = 15.0, idle_s: float = 2.0
    ) -> None:
        self.journal = journal
        self.start = start
        self._ttl_s = ttl_s
        self._idle_s = idle_s
        self._held: dict[tuple[int, str], _Held] = {}
        self._closing: list[_Held] = []
        self._left: OrderedDict[tuple[int, str], _Held] = OrderedDict()
        self._stop: StopAsked | None = None
        self._lock = threading.Lock()
        # Two new goals of one thread at once: the second must see the run of the first.
        self._starting = threading.Lock()

    async def take(self, call: Call, find: Callable[[], str]) -> Session:
        """Return the invocation's session; open one if it has none.

        Args:
            call: The invocation.
            find: Returns the id of its run; called in a worker thread, one at a time.

        Raises:
            RunBusy: Another invocation, here or elsewhere, is at work on the run.
            PlangateError: What `find` raises.
        """
        with self._lock:
            held = self._held.get(call.key)
            if held is not None and held.busy:
                what = f"another invocation is at work on run {held.session.run.run_id!r}"
                raise RunBusy(what, hint="wait for it, and use one RunControl for one invocation")
            if held is not None:
                held.busy, held.turn = True, held.turn + 1
                return held.session
        gone = threading.Event()
        try:
            return await asyncio.to_thread(self._open, call, find, gone)
        except asyncio.CancelledError:
            with self._lock:
                gone.set()
                orphan = self._held.pop(call.key, None)
            if orphan is not None:
                after(0, orphan.session.close)
            raise

    def lease_of(self, config: RunnableConfig) -> Lease | None:
        """Return the newest hold that an invocation had, by the config of its checkpoints."""
        given = config.get("configurable", {})
        control = getattr(given.get("__pregel_runtime"), "control", None)
        inside = given.get("checkpoint_ns", "")
        thread = str(given.get("thread_id"))
        key = (id(control), f"{thread}|{inside}" if inside else thread)
        with self._lock:
            held = self._held.get(key) or self._left.get(key)
        return None if control is None or held is None else held.session.lease

    async def rest(self, call: Call) -> None:
        """Keep the session for the next node of the invocation."""
        if call.control is None:
            await self.leave(call)
            return
        with self._lock:
            held = self._held.get(call.key)
            if held is None:
                return  # the desk was closed
            held.busy = False
            turn = held.turn
        after(self._idle_s, lambda: self._expire(held, turn))

    async def leave(self, call: Call, because: BaseException | None = None) -> None:
        """Close the session: write what is queued, let go of the run.

        Args:
            call: The invocation.
            because: The error that ended the node. It is not replaced by one of closing; a pause
                is, since a question that was not written was never asked.

        Raises:
            JournalError: Something could not be written.
        """
        with self._lock:
            held = self._held.pop(call.key, None)
            if held is not None:
                self._remember(held)
        if held is None:
            return
        try:
            # Shielded, and no task of its own: a second cancellation, or the end of the loop, must
            # not leave a session behind whose writer renews the lease for ever.
            closing = asyncio.get_running_loop().run_in_executor(None, held.session.close)
            await asyncio.shield(closing)
        except PlangateError as error:
            if because is None or isinstance(because, GraphBubbleUp):
                raise
            because.add_note(f"and closing the run's session failed: {error}")

    def drain(self, by: str, reason: str) -> None:
        """Have all invocations of this process stop where they can, those to come as well."""
        asked = StopAsked(kind="drain", by=by, reason=reason)
        with self._lock:
            self._stop = asked
            all_held = list(self._held.values())
        for held in all_held:
            held.session.stop.ask(asked)

    def close(self) -> None:
        """Close all sessions, also those at work, whose next write then fails."""
        with self._lock:
            all_held = list(self._held.values())
            self._held.clear()
        for held in all_held:
            _close(held)

    def _open(self, call: Call, find: Callable[[], str], gone: threading.Event) -> Session:
        with self._starting:
            run_id = find()
        self._evict(run_id)
        session = Session.open(self.journal, run_id, owner_name(), self._ttl_s)
        with self._lock:
            if not gone.is_set():
                self._held[call.key] = _Held(call, session)
                if self._stop is not None:
                    session.stop.ask(self._stop)
                return session
        session.close()
        return session

    def _evict(self, run_id: str) -> None:
        """Wait until no invocation of this process holds the run between two of its nodes.

        It goes on (then the run is busy), or it is over: then its session is closed here, at once
        if that can be told, else by `_expire`; one that is being closed has the run until it is.
        """
        while idle := self._idle_on(run_id):
            if idle not in self._closing and idle.call.writer() is None:
                self._expire(idle, idle.turn)
            else:
                time.sleep(_POLL_S)

    def _idle_on(self, run_id: str) -> _Held | None:
        with self._lock:
            for held in (*self._held.values(), *self._closing):
                if held.session.run.run_id == run_id and not held.busy:
                    return held
        return None

    def _expire(self, held: _Held, turn: int) -> None:
        with self._lock:
            if held.busy or held.turn != turn or self._held.get(held.call.key) is not held:
                return
            del self._held[held.call.key]
            self._remember(held)
            self._closing.append(held)
        try:
            _close(held)
        finally:
            with self._lock:
                self._closing.remove(held)

    def _remember(self, held: _Held) -> None:
        self._left[held.call.key] = held
        while len(self._left) > _REMEMBERED:
            self._left.popitem(last=False)


def _close(held: _Held) -> None:
    # Nobody waits for the answer, and each node flushed before it ended.
    with suppress(PlangateError):
        held.session.close()
