"""Tool bodies run where they can neither stop the event loop nor be waited for too long.

A blocking body runs in a thread of its own. Not `asyncio.to_thread`: its pool holds a handful of
threads, so a few hanging tools would starve all others, and the interpreter waits for them at exit.
A daemon thread for each call has neither fault. A call that is cancelled or past its deadline goes
on in its thread, since Python cannot stop it; its result is dropped, and what it did outside is for
the ledger to find out. An async body runs in a task of its own, so that one which does not let
itself be cancelled is left behind as well.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import threading
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

R = TypeVar("R")
_GRACE_S = 1.0
"""How long a cancelled body may clean up before nobody waits for it any more."""

_left_behind: set[asyncio.Task[object]] = set()
"""Tasks that did not end when they were cancelled; the event loop alone would forget them."""


async def run(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a tool's function, async or blocking, where it can do no harm."""
    if inspect.iscoroutinefunction(function):
        return await in_task(function(*args, **kwargs))
    result = await in_thread(partial(function, *args, **kwargs))
    return await in_task(result) if inspect.isawaitable(result) else result


async def in_thread(function: Callable[[], R]) -> R:
    """Call a blocking function without blocking the loop, in a copy of the current context."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[R] = loop.create_future()
    context = contextvars.copy_context()

    def settle(result: R | None, failure: BaseException | None) -> None:
        if future.done():
            return
        if failure is None:
            future.set_result(result)  # type: ignore[arg-type]
        else:
            future.set_exception(failure)

    def work() -> None:
        result: R | None = None
        failure: BaseException | None = None
        try:
            result = context.run(function)
        except BaseException as exc:  # noqa: BLE001 - it is raised again where it is awaited
            failure = exc if _travels(exc) else _wrapped(exc)
        with contextlib.suppress(RuntimeError):  # the loop is gone, and so is whoever waited
            loop.call_soon_threadsafe(settle, result, failure)

    threading.Thread(target=work, name="plangate-tool", daemon=True).start()
    return await future


async def in_task(work: Awaitable[R]) -> R:
    """Await what a tool gave us to await; it cannot cancel us, end our loop or refuse to stop."""
    task = asyncio.create_task(_contained(work))
    try:
        await asyncio.wait({task})
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait({task}, timeout=_GRACE_S)
        raise
    finally:
        _left_behind.add(task)
        task.add_done_callback(_forget)
    return task.result()


async def _contained(work: Awaitable[R]) -> R:
    task = asyncio.current_task()
    try:
        return await work
    except BaseException as exc:
        ours = isinstance(exc, asyncio.CancelledError) and task is not None and task.cancelling()
        if ours or _travels(exc):
            raise
        raise _wrapped(exc) from exc


def _forget(task: asyncio.Task[object]) -> None:
    _left_behind.discard(task)
    if not task.cancelled():
        task.exception()  # looked at, so that nobody is told of what is nobody's any more


def _travels(exc: BaseException) -> bool:
    # A future refuses StopIteration, and SystemExit or CancelledError of a tool must not end ours.
    return isinstance(exc, Exception) and not isinstance(exc, StopIteration)


def _wrapped(exc: BaseException) -> RuntimeError:
    wrapped = RuntimeError(f"a tool raised {type(exc).__name__}")
    wrapped.__cause__ = exc
    return wrapped
