"""Seeded noise over an example agent: calls that take longer or fail, answers of any length.

Time is virtual: a call ends as long after its start as the noise says, and nobody waits for it. The
same seed gives the same noise to the same calls.
"""

from __future__ import annotations

import inspect
import threading
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import wraps
from random import Random
from typing import TYPE_CHECKING, Any

from plangate.budget.prices import PriceBook

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from plangate.agent import Agent
    from plangate.tools.tool import Tool

SPREAD = 0.35
"""Of the natural logarithm of a call's duration: one in forty takes more than twice the usual."""

TAIL, TAIL_FACTOR = 0.03, 4.0
"""Share of the calls that are very slow, and how slow."""

FAILS = 0.03
"""Share of the reads that break off; they are tried again."""


@dataclass(slots=True)
class VirtualClock:
    """Seconds that pass only in calls. Calls that ran side by side end side by side."""

    _now: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def now(self) -> float:
        """Return the seconds so far."""
        return self._now

    def end(self, began: float, seconds: float) -> None:
        """End a call that began at a time and took so long."""
        with self._lock:
            self._now = max(self._now, began + seconds)


@dataclass(frozen=True, slots=True)
class Noise:
    """The noise of one run.

    Args:
        seed: Of all of it.
        clock: What its calls take time from.
    """

    seed: str
    clock: VirtualClock = field(default_factory=VirtualClock)
    _calls: Counter[str] = field(default_factory=Counter)

    def over(self, agent: Agent) -> Agent:
        """Return an agent whose calls take their declared seconds, more or less."""
        return replace(agent, tools=tuple(self._noisy(each) for each in agent.tools))

    def next(self, name: str) -> Random:
        """Return the chances of the next call of a name: the same in every run of this seed."""
        self._calls[name] += 1
        return Random(f"{self.seed}:{name}:{self._calls[name]}")  # noqa: S311 - noise, no secret

    def _noisy(self, tool: Tool) -> Tool:
        body, spec = tool.body, tool.spec

        def takes() -> tuple[float, float]:
            chances = self.next(spec.name)
            seconds = spec.seconds * chances.lognormvariate(0, SPREAD)
            seconds *= TAIL_FACTOR if chances.random() < TAIL else 1.0
            began = self.clock.now()
            if not spec.effect.acts and chances.random() < FAILS:
                self.clock.end(began, seconds)
                raise ConnectionError("noise")
            return began, seconds

        return replace(tool, body=_timed(body, takes, self.clock))


def _timed(
    body: Callable[..., Any], takes: Callable[[], tuple[float, float]], clock: VirtualClock
) -> Callable[..., Any]:
    @wraps(body)
    async def waited(*args: Any, **values: Any) -> Any:
        began, seconds = takes()
        answer: Awaitable[Any] = body(*args, **values)
        try:
            return await answer
        finally:
            clock.end(began, seconds)

    @wraps(body)
    def blocking(*args: Any, **values: Any) -> Any:
        began, seconds = takes()
        try:
            return body(*args, **values)
        finally:
            clock.end(began, seconds)

    return waited if inspect.iscoroutinefunction(body) else blocking


CRITIC = "noisy-critic"
PRICES = PriceBook({CRITIC: {"input": "3", "output": "15"}})
"""USD per million tokens, as the worked example has them."""


@dataclass(frozen=True, slots=True)
class NoisyCritic:
    """A critic that finds nothing, and says so in more or fewer words."""

    noise: Noise
    model_name: str = CRITIC
    max_retries: int = 0

    async def ainvoke(self, messages: list[dict[str, str]]) -> Any:
        """Answer as a chat model does, with its usage."""
        from langchain_core.messages import AIMessage

        chances = self.noise.next(CRITIC)
        sent = sum(len(each["content"]) for each in messages) // 4
        came = round(150 * chances.lognormvariate(0, 2 * SPREAD))
        usage = {"input_tokens": sent, "output_tokens": came, "total_tokens": sent + came}
        return AIMessage(content='{"findings": []}', usage_metadata=usage)
