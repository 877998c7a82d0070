"""Effects that this process is at work on: one call at a time for one business identity.

The ledger tells an intent from its outcome, but not a call that was abandoned from one that goes
on: a body that ran past its deadline may still act, and until it has ended, an outside that knows
of nothing proves nothing. So an effect is held from its intent to its outcome, and it is known
whether a body of it runs in any thread or task of this process, whoever has stopped waiting for it.
What another process may still do is in the ledger's row: an effect is let go of there once no body
of it runs here.
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
    from collections.abc import Callable

    from plangate.journal.ledger import EffectRow
    from plangate.tools.tool import Tool

Key: TypeAlias = tuple[str, str]
"""URL of the journal and effect key."""

_POLL_S = 0.02

_lock = threading.Lock()
_attempts: set[Key] = set()
_bodies: Counter[Key] = Counter()
_afterwards: dict[Key, list[Callable[[], None]]] = {}


@dataclass(slots=True)
class Hold:
    """An effect in the hands of one attempt; end it with `release`."""

    key: Key
    in_ledger: bool = False
    """True while the ledger's row says that the effect is in the hands of this owner."""

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
                for each in self._leave():
                    asyncio.get_running_loop().run_in_executor(None, each)

        @wraps(body)
        def blocking(*args: Any, **values: Any) -> Any:
            self._enter()
            try:
                return body(*args, **values)
            finally:
                for each in self._leave():
                    each()

        return replace(tool, body=waited if inspect.iscoroutinefunction(body) else blocking)

    def _enter(self) -> None:
        with _lock:
            if self._ended:
                raise TooLate("the call was over before it began")
            _bodies[self.key] += 1

    def _leave(self) -> list[Callable[[], None]]:
        """Return what is to be done now that no body runs."""
        with _lock:
            _bodies[self.key] -= 1
            if _bodies[self.key]:
                return []
            del _bodies[self.key]
            return _afterwards.pop(self.key, [])


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


def when_quiet(key: Key, act: Callable[[], None]) -> None:
    """Do something once no body of the effect runs: now, or in the thread of the last one.

    Args:
        key: The effect.
        act: May block, must not raise.
    """
    with _lock:
        if key in _bodies:
            _afterwards.setdefault(key, []).append(act)
            return
    act()


def may_still_act(journal_url: str, row: EffectRow) -> str:
    """Say who may still carry out an effect of unknown outcome, here or beside; empty: nobody."""
    if caller := row.silent_caller:
        return f"{caller} of this machine has it in hand, and may still make the call"
    with _lock:
        runs = (journal_url, row.effect_key) in _bodies
    return "a call of it goes on in this process" if runs else ""
