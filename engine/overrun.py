"""Calls that nobody waits for any more: counted while they go on, reported when they end.

Python cannot stop a blocking body. So that none is forgotten, each one that outlives its deadline
is told of twice: when it is left behind, and when it ends after all, since by then it may have
acted. Where too many hang, no further call is begun.
"""

from __future__ import annotations

import inspect
import threading
from dataclasses import dataclass, field, replace
from functools import wraps
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from plangate.tools.context import ToolContext
    from plangate.tools.tool import Tool

MOST_LEFT = 100
"""Calls of this process that may go on unattended; beyond it nothing more is begun."""

How: TypeAlias = Literal["going_on", "returned", "raised"]
_lock = threading.Lock()
_left: dict[int, Overrun] = {}


class TooLate(Exception):
    """The body was about to start after nobody waited for it any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrun:
    """A call past its deadline."""

    run_id: str
    step: str
    attempt_id: str
    tool: str
    effect_key: str | None
    how: How = "going_on"
    after_s: float = 0.0
    """Seconds from the start of the body."""


Tell: TypeAlias = "Callable[[Overrun], None]"


def left_behind() -> tuple[Overrun, ...]:
    """Return the calls of this process that go on and that nobody waits for."""
    with _lock:
        return tuple(_left.values())


@dataclass(slots=True)
class Watch:
    """One call of a body; `abandon` it when nobody waits any more."""

    tool: Tool
    context: ToolContext
    tell: Tell
    _began_s: float | None = field(default=None, init=False)
    _abandoned: bool = field(default=False, init=False)

    def watched(self) -> Tool:
        """Return the tool with a body that is seen to begin and to end."""
        body = self.tool.body

        @wraps(body)
        async def waited(*args: Any, **values: Any) -> Any:
            self._enter()
            how: How = "raised"
            try:
                result = await body(*args, **values)
                how = "returned"
            finally:
                self._leave(how)
            return result

        @wraps(body)
        def blocking(*args: Any, **values: Any) -> Any:
            self._enter()
            how: How = "raised"
            try:
                result = body(*args, **values)
                how = "returned"
            finally:
                self._leave(how)
            return result

        return replace(self.tool, body=waited if inspect.iscoroutinefunction(body) else blocking)

    def abandon(self) -> None:
        """Wait no more: a body that runs is left behind, one that has not begun never will."""
        with _lock:
            self._abandoned = True
            if self._began_s is None:
                return
            _left[id(self)] = overrun = self._seen("going_on")
        self.tell(overrun)

    def _enter(self) -> None:
        with _lock:
            if self._abandoned:
                raise TooLate("the call was over before it began")
            self._began_s = monotonic()

    def _leave(self, how: How) -> None:
        with _lock:
            overrun = self._seen(how)
            self._began_s = None
            late = id(self) in _left
        if not late:
            return
        try:
            self.tell(overrun)
        finally:  # whoever sees it gone may rely on its end being told
            with _lock:
                del _left[id(self)]

    def _seen(self, how: How) -> Overrun:
        context = self.context
        return Overrun(
            run_id=context.run_id,
            step=context.step,
            attempt_id=context.attempt_id,
            tool=self.tool.spec.name,
            effect_key=context.effect_key,
            how=how,
            after_s=round(monotonic() - (self._began_s or monotonic()), 3),
        )
