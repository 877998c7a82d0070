"""Effects that this process is at work on: one call at a time for one business identity.

The ledger tells an intent from its outcome, but not a call that was abandoned from one that goes
on: a body that ran past its deadline may still act, and until it has ended, an outside that knows
of nothing proves nothing. So an effect is held from its intent to its outcome, and it is known
whether a body of it runs in any thread or task of this process, whoever has stopped waiting for it.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeAlias

from plangate.engine.overrun import TooLate

if TYPE_CHECKING:
    from plangate.tools.tool import Tool

Key: TypeAlias = tuple[str, str]
"""URL of the journal and effect key."""

_POLL_S = 0.02

_lock = threading.Lock()
_attempts: set[Key] = set()
_bodies: Counter[Key] = Counter()


@dataclass(slots=True)
class Hold:
    """An effect in the hands of one attempt; end it with `release`."""

    key: Key
    _ended: bool = field(default=False, init=False)

    def release(self) -> None:
        """Let go. What still runs of the body holds the effect until it has ended."""
        with _lock:
            self._ended = True
            _attempts.discard(self.key)

    def watched(self, tool: Tool) -> Tool:
        """Return the tool with a body that holds the effect while it runs."""
        body = tool.body

        @wraps(body)
        async def waited(*args: Any, **values: Any) -> Any:
            self._enter()
            try:
                return await body(*args, **values)
            finally:
                self._leave()

        @wraps(body)
        def blocking(*args: Any, **values: Any) -> Any:
            self._enter()
            try:
                return body(*args, **values)
            finally:
                self._leave()

        return replace(tool, body=waited if inspect.iscoroutinefunction(body) else blocking)

    def _enter(self) -> None:
        with _lock:
            if self._ended:
                raise TooLate("the call was over before it began")
            _bodies[self.key] += 1

    def _leave(self) -> None:
        with _lock:
            _bodies[self.key] -= 1
            if not _bodies[self.key]:
                del _bodies[self.key]


async def hold(key: Key, *, within_s: float) -> Hold | None:
    """Take an effect; None where another attempt still has it after `within_s` seconds."""
    until = time.monotonic() + within_s
    while True:
        with _lock:
            if key not in _attempts:
                _attempts.add(key)
                return Hold(key)
        if time.monotonic() >= until:
            return None
        await asyncio.sleep(_POLL_S)


async def quiet(key: Key, *, within_s: float) -> bool:
    """Return True once no body of the effect runs; False if one still does after `within_s`."""
    until = time.monotonic() + within_s
    while True:
        with _lock:
            if key not in _bodies:
                return True
        if time.monotonic() >= until:
            return False
        await asyncio.sleep(_POLL_S)
