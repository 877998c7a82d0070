"""The sync door: coroutines run on one event loop in a thread of its own, one per process.

Node bodies are written once, async. Sync callers send them to the portal and wait; a caller that
stops waiting (Ctrl-C above all) first cancels the coroutine and sees it end, since an effect that
goes on behind a dead prompt could never be accounted for.

The thread starts at first use. A forked child makes its own: fork before the first call, or when no
other thread is in the middle of one, as with every threaded library.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import Future, wait
from contextlib import suppress
from contextvars import copy_context
from queue import SimpleQueue
from typing import Any, Final, Generic, Self, TypeVar

from langchain_core.runnables import Runnable, RunnableConfig

from plangate.graph.state import Node, State

T = TypeVar("T")
PATIENCE: Final = 3
"""How often a person must press Ctrl-C until the clean-up of a coroutine is not waited for."""

GOODBYE_S: Final = 10.0
"""How long the end of the process waits for what is still running on the portal, in seconds."""


class Job(Generic[T]):
    """A coroutine on its way through the portal; leaving its block sees it end.

    Ctrl-C can come at any moment, so nothing is scheduled before the block is entered, and what is
    scheduled on the way out may be scheduled twice.
    """

    def __init__(self, portal: Portal, work: Coroutine[Any, Any, T]) -> None:
        self._loop = portal.loop
        self._tasks = portal.tasks
        self._work = work
        self._done: Future[T] = Future()
        self._task: asyncio.Task[None] | None = None
        self._context = copy_context()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def begin(self) -> None:
        """Start the coroutine; inside the block, once."""
        self._loop.call_soon_threadsafe(self._begin)

    def result(self) -> T:
        """Wait for the coroutine, which has begun."""
        return self._done.result()

    def stop(self) -> None:
        """Cancel the coroutine and wait until its clean-up has run; nothing if it has ended.

        It is cancelled once: a second Ctrl-C must not break off the clean-up after the first.
        """
        if not self._done.done():
            _patiently(self._stopped)

    def _stopped(self) -> None:
        self._loop.call_soon_threadsafe(self._cancel)
        wait([self._done])

    def _begin(self) -> None:
        self._task = self._loop.create_task(self._settle(), context=self._context)
        self._tasks.add(self._task)
        self._task.add_done_callback(self._tasks.discard)

    def _cancel(self) -> None:
        if self._task is not None:
            _cancel_once(self._task)
        elif not self._done.done():  # it never began
            self._work.close()
            self._done.set_exception(asyncio.CancelledError())

    async def _settle(self) -> None:
        try:
            self._done.set_result(await self._work)
        except BaseException as error:  # noqa: BLE001 - all of it is the caller's, even SystemExit
            self._done.set_exception(error)


class Portal:
    """An event loop in a daemon thread, which ends with the process."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.thread = threading.Thread(target=self._serve, name="plangate-portal", daemon=True)
        self._ready: Future[asyncio.AbstractEventLoop] = Future()
        self._stop = asyncio.Event()
        self.tasks: set[asyncio.Task[None]] = set()
        """Of the jobs that have not ended; touched on the portal's thread alone."""

        self.thread.start()
        self.loop = self._ready.result()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Send a coroutine through, in a copy of the caller's context, and wait for its result."""
        with Job(self, work) as job:
            job.begin()
            return job.result()

    def close(self) -> None:
        """Cancel what still runs, let it clean up, and end the thread."""
        if self.pid == os.getpid():
            _patiently(self._closed)

    def _closed(self) -> None:
        with suppress(RuntimeError):  # the loop is closed already
            self.loop.call_soon_threadsafe(self._stop.set)
        self.thread.join(GOODBYE_S)

    def _serve(self) -> None:
        asyncio.run(self._live())

    async def _live(self) -> None:
        self._ready.set_result(asyncio.get_running_loop())
        await self._stop.wait()
        for task in self.tasks:
            _cancel_once(task)
        if self.tasks:
            await asyncio.wait(self.tasks)


def _cancel_once(task: asyncio.Task[None]) -> None:
    """Cancel a task unless it was cancelled: a second time would break off its clean-up."""
    if not task.cancelling():
        task.cancel()


def _patiently(wait_once: Callable[[], object]) -> None:
    """Wait, and go on waiting where Ctrl-C breaks in, up to the last press that counts."""
    for _ in range(PATIENCE - 1):
        try:
            wait_once()
        except KeyboardInterrupt:
            continue
        return


_lock = threading.Lock()
_portal: Portal | None = None


def portal() -> Portal:
    """Return the portal of this process; start it if there is none."""
    global _portal  # noqa: PLW0603 - one per process is the point
    with _lock:
        if _portal is None or _portal.pid != os.getpid():
            _portal = Portal()
            atexit.register(_portal.close)
        return _portal


def run_blocking(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine from sync code and return its result.

    Works in any thread, also in one whose event loop is running (that loop stands still until the
    result is there) and in the portal's own (then on a loop made for this one call).
    """
    here = portal()
    if threading.current_thread() is not here.thread:
        return here.run(work)
    once = Portal()
    try:
        return once.run(work)
    finally:
        once.close()


def iterate(source: AsyncIterator[T]) -> Iterator[T]:
    """Read an async iterator from sync code; leaving the loop early cancels it.

    `graph.stream` with the modes `custom` and `messages` runs a node in a pool thread, where Ctrl-C
    does not reach it until it has ended. `iterate(graph.astream(...))` has no such delay.
    """
    box: SimpleQueue[tuple[T] | None] = SimpleQueue()  # None: no more

    async def pump() -> None:
        try:
            async for item in source:
                box.put((item,))
        finally:
            box.put(None)

    with Job(portal(), pump()) as job:
        job.begin()
        while (packed := box.get()) is not None:
            yield packed[0]
        job.result()


def after(seconds: float, act: Callable[[], None]) -> None:
    """Call `act` in a worker thread, some time from now, unless the process ends before."""
    loop = portal().loop

    def due() -> None:
        with suppress(RuntimeError):  # the process is ending, and its worker threads have gone
            loop.run_in_executor(None, act)

    with suppress(RuntimeError):  # as above, and the loop is closed
        loop.call_soon_threadsafe(lambda: loop.call_later(seconds, due))


class Bridged(Runnable[State, dict[str, Any]]):
    """A node for both doors: on the caller's loop if there is one, else through the portal."""

    def __init__(self, name: str, node: Node) -> None:
        self.name = name
        self._node = node

    def invoke(
        self,
        input: State,
        config: RunnableConfig | None = None,
        **_: Any,
    ) -> dict[str, Any]:
        """Run the node on the portal, in the caller's context."""
        return run_blocking(self._run(input, config))

    async def ainvoke(
        self,
        input: State,
        config: RunnableConfig | None = None,
        **_: Any,
    ) -> dict[str, Any]:
        """Run the node on the caller's loop."""
        return await self._run(input, config)

    async def _run(self, state: State, config: RunnableConfig | None) -> dict[str, Any]:
        return dict(await self._node(state, config or RunnableConfig()))


def bridged(name: str, node: Node) -> Bridged:
    """Return what `StateGraph.add_node` takes for a node written once, async."""
    return Bridged(name, node)
