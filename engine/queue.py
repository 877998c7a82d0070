"""Which step may start now: one whose own predecessors have settled; there are no waves.

Pure bookkeeping over one plan; each operation costs the number of edges it touches.
"""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from plangate.plan.schedule import longest_remaining

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from plangate.plan.outcome import StepStatus
    from plangate.plan.value.plan import Plan


@dataclass(frozen=True, slots=True)
class Needs:
    """What a step holds while it runs."""

    tool: str = ""
    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()


@dataclass(slots=True)
class InUse:
    """What all running steps hold together."""

    running: int = 0
    tools: Counter[str] = field(default_factory=Counter)
    reads: Counter[str] = field(default_factory=Counter)
    writes: Counter[str] = field(default_factory=Counter)

    def admits(self, needs: Needs, limits: Limits) -> bool:
        """True if the step can start beside what runs now.

        Two steps that write one claim, or read and write it, never overlap.
        """
        if self.running >= limits.parallel:
            return False
        limit = limits.tools.get(needs.tool)
        if limit is not None and self.tools[needs.tool] >= limit:
            return False
        return not any(self.writes[key] for key in needs.reads | needs.writes) and not any(
            self.reads[key] for key in needs.writes
        )

    def take(self, needs: Needs, sign: int) -> None:
        """Add (+1) or give back (-1) what a step holds."""
        self.running += sign
        self.tools[needs.tool] += sign
        for key in needs.reads:
            self.reads[key] += sign
        for key in needs.writes:
            self.writes[key] += sign


@dataclass(frozen=True, slots=True)
class Limits:
    """How much may run at a time."""

    parallel: int = 64
    tools: Mapping[str, int] = field(default_factory=dict)


class ReadyQueue:
    """Steps of one plan that may start, longest remaining path first."""

    def __init__(self, plan: Plan, seconds: Mapping[str, float], limits: Limits) -> None:
        self._plan = plan
        self._limits = limits
        self._rank = longest_remaining(plan, seconds)
        self._order = {step.id: n for n, step in enumerate(plan.steps)}
        self._missing = {step.id: len(step.needs) for step in plan.steps}
        self._followers: dict[str, list[str]] = {step.id: [] for step in plan.steps}
        for step in plan.steps:
            for need in step.needs:
                self._followers[need].append(step.id)
        self._heap: list[tuple[float, int, str]] = []
        self._in_use = InUse()
        self._holding: dict[str, Needs] = {}
        self._settled: set[str] = set()
        self._doomed: set[str] = set()
        for step_id, missing in self._missing.items():
            if not missing:
                self._push(step_id)

    def restore(self, statuses: Mapping[str, StepStatus]) -> dict[str, str]:
        """Take over what an earlier owner settled; call once, before the first `take`.

        Returns:
            Steps that can never run any more and have not ended, by them the skipped step that
            they read: the owner before may have died between the two.
        """
        gone: dict[str, str] = {}
        for step in self._plan.steps:
            status = statuses.get(step.id, "pending")
            if status not in ("pending", "running", "waiting"):
                gone |= dict.fromkeys(self.settle(step.id, status), step.id)
        return {step: because for step, because in gone.items() if step not in self._settled}

    def take(self, needs_of: Callable[[str], Needs]) -> list[str]:
        """Return the steps that start now, and hold what they need until `settle`."""
        started: list[str] = []
        put_back: list[tuple[float, int, str]] = []
        while self._heap and self._in_use.running < self._limits.parallel:
            item = heapq.heappop(self._heap)
            step_id = item[2]
            if step_id in self._settled:
                continue
            needs = needs_of(step_id)
            if not self._in_use.admits(needs, self._limits):
                put_back.append(item)
                continue
            self._in_use.take(needs, +1)
            self._holding[step_id] = needs
            started.append(step_id)
        for item in put_back:
            heapq.heappush(self._heap, item)
        return started

    def settle(self, step_id: str, status: StepStatus) -> list[str]:
        """Record how a step ended and free what it held.

        Only `done` and `skipped` let followers go on; any other end blocks what depends on it and
        nothing else.

        Returns:
            Steps that can never run because they read the output of a skipped one. Each is told
            only when all it waits for has settled: what follows it must not start before that.
        """
        if (needs := self._holding.pop(step_id, None)) is not None:
            self._in_use.take(needs, -1)
        self._settled.add(step_id)
        if status not in ("done", "skipped"):
            return []
        gone: list[str] = []
        for follower in self._followers[step_id]:
            if follower in self._settled:
                continue
            if status == "skipped" and step_id in self._plan.by_id[follower].data_needs:
                self._doomed.add(follower)
            self._missing[follower] -= 1
            if self._missing[follower]:
                continue
            if follower in self._doomed:
                gone.append(follower)
            else:
                self._push(follower)
        return gone

    @property
    def unsettled(self) -> list[str]:
        """Steps that have not ended, in plan order."""
        return [step.id for step in self._plan.steps if step.id not in self._settled]

    def _push(self, step_id: str) -> None:
        heapq.heappush(self._heap, (-self._rank[step_id], self._order[step_id], step_id))
