"""Which step may start now: one whose own predecessors have settled; there are no waves.

Pure bookkeeping over one plan; each operation costs the number of edges it touches.
"""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from plangate.plan.joins import is_strict, judge, stand_ins, waits
from plangate.plan.outcome import PASSED
from plangate.plan.schedule import longest_remaining

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from plangate.plan.outcome import StepStatus
    from plangate.plan.value.plan import Plan
    from plangate.plan.value.step import Step


@dataclass(frozen=True, slots=True)
class Needs:
    """What a step holds while it runs."""

    tool: str = ""
    slots: int = 1
    """Calls that it may make at the same time."""

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
        if self.running + needs.slots > limits.parallel:
            return False
        limit = limits.tools.get(needs.tool)
        if limit is not None and self.tools[needs.tool] + needs.slots > limit:
            return False
        return not any(self.writes[key] for key in needs.reads | needs.writes) and not any(
            self.reads[key] for key in needs.writes
        )

    def take(self, needs: Needs, sign: int) -> None:
        """Add (+1) or give back (-1) what a step holds."""
        self.running += sign * needs.slots
        self.tools[needs.tool] += sign * needs.slots
        for key in needs.reads:
            self.reads[key] += sign
        for key in needs.writes:
            self.writes[key] += sign


@dataclass(frozen=True, slots=True)
class Limits:
    """How much may run at a time."""

    parallel: int = 64
    tools: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Gone:
    """A step that will never run, for a reason that lies in the plan."""

    step: str
    because: str
    """The step whose end decided it."""

    why: Literal["reads_skipped", "not_needed", "join_not_met"]


class ReadyQueue:
    """Steps of one plan that may start, longest remaining path first.

    Args:
        plan: The plan.
        seconds: Expected seconds by step.
        limits: How much may run at a time.
        holds: Tells whether the rule of a `when` join holds now.
    """

    def __init__(
        self,
        plan: Plan,
        seconds: Mapping[str, float],
        limits: Limits,
        holds: Callable[[Step], bool] = lambda _: False,
    ) -> None:
        self._plan = plan
        self._limits = limits
        self._holds = holds
        self._rank = longest_remaining(plan, seconds)
        self._order = {step.id: n for n, step in enumerate(plan.steps)}
        self._principals = stand_ins(plan)
        self._needs = waits(plan)
        self._missing = {step: len(each) for step, each in self._needs.items()}
        self._done: Counter[str] = Counter()
        """By step, how many of its predecessors are done."""

        self._followers: dict[str, list[str]] = {step: [] for step in self._needs}
        for step, each in self._needs.items():
            for need in each:
                self._followers[need].append(step)
        self._heap: list[tuple[float, int, str]] = []
        self._pushed: set[str] = set()
        self._in_use = InUse()
        self._holding: dict[str, Needs] = {}
        self._settled: set[str] = set()
        self._called: set[str] = set()
        """Stand-ins whose step failed."""

        self._doomed: dict[str, str] = {}
        """Steps that read the output of a skipped one, and which."""

        for step_id, missing in self._missing.items():
            if not missing:
                self._push(step_id)

    def restore(
        self, statuses: Mapping[str, StepStatus], called: Collection[str] = ()
    ) -> list[Gone]:
        """Take over what an earlier owner settled; call once, before the first `take`.

        What was started had its join met, whatever came after it.

        Args:
            statuses: By step, as far as something is known of it.
            called: Stand-ins that take over from a step that ended `handed_over`.

        Returns:
            Steps that can never run any more and have not ended: the owner before may have died
            between that and the end that decided it.
        """
        gone: list[Gone] = []
        for step in self._plan.steps:
            if statuses.get(step.id) == "running" and not is_strict(step):
                self._push(step.id)
        self._called.update(called)
        for step in self._plan.steps:
            status = statuses.get(step.id, "pending")
            if status not in ("pending", "running", "waiting"):
                gone += self.settle(step.id, status)
        return [each for each in gone if each.step not in self._settled]

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

    def settle(self, step_id: str, status: StepStatus, stand_in: str = "") -> list[Gone]:
        """Record how a step ended and free what it held.

        `done`, `skipped` and `handed_over` let followers go on; any other end blocks what depends
        on it and nothing else, but for followers whose join can do without it.

        Args:
            step_id: The step.
            status: How it ended.
            stand_in: For `handed_over`: the one step that takes over, whatever other ones its
                routes name for other failures.

        Returns:
            Steps that can never run now. One that reads the output of a skipped step is told only
            when all it waits for has settled: what follows it must not start before that.
        """
        if (needs := self._holding.pop(step_id, None)) is not None:
            self._in_use.take(needs, -1)
        self._settled.add(step_id)
        if stand_in:
            self._called.add(stand_in)
        gone: list[Gone] = []
        for follower in self._followers[step_id]:
            if follower in self._settled:
                continue
            is_mine = self._principals.get(follower) == step_id
            if not is_mine or (status == "handed_over" and follower in self._called):
                gone += self._tell(follower, step_id, status)
            elif status in PASSED:
                gone.append(Gone(follower, step_id, "not_needed"))
        return gone

    def held(self, step_id: str) -> Needs:
        """Return what a started step holds."""
        return self._holding[step_id]

    @property
    def unsettled(self) -> list[str]:
        """Steps that have not ended, in plan order."""
        return [step.id for step in self._plan.steps if step.id not in self._settled]

    def losers(self, step_id: str, spared: Callable[[str], bool] = lambda _: False) -> list[str]:
        """Return what nobody needs any more once a step has started without it, in plan order.

        Args:
            step_id: The step that started.
            spared: Tells of a step that it goes on in any case, and so do those that it needs.
        """
        found: set[str] = set()
        waiting = [step_id]
        while waiting:
            new = self._needs[waiting.pop()] - self._settled - found
            found |= new
            waiting += new
        found = {each for each in found if not spared(each)}
        while kept := {each for each in found if self._followed(each) - found - {step_id}}:
            found -= kept
        return sorted(found, key=self._order.__getitem__)

    def _followed(self, step_id: str) -> set[str]:
        return {each for each in self._followers[step_id] if each not in self._settled}

    def _tell(self, follower: str, ended: str, status: StepStatus) -> list[Gone]:
        step = self._plan.by_id[follower]
        tell = self._strict if is_strict(step) else self._lenient
        return tell(step, ended, status)

    def _strict(self, step: Step, ended: str, status: StepStatus) -> list[Gone]:
        if status not in PASSED:
            return []
        if status == "skipped" and ended in step.data_needs:
            self._doomed.setdefault(step.id, ended)
        self._missing[step.id] -= 1
        if self._missing[step.id]:
            return []
        if step.id in self._doomed:
            return [Gone(step.id, self._doomed[step.id], "reads_skipped")]
        self._push(step.id)
        return []

    def _lenient(self, step: Step, ended: str, status: StepStatus) -> list[Gone]:
        self._missing[step.id] -= 1
        self._done[step.id] += status == "done"
        if step.id in self._pushed:
            return []  # a rule that held may not hold any more; what was started goes on
        holds = step.join.mode == "when" and self._holds(step)
        word = judge(step, done=self._done[step.id], left=self._missing[step.id], holds=holds)
        if step.id in self._principals and step.id not in self._called:
            return []
        if word == "go":
            self._push(step.id)
        return [Gone(step.id, ended, "join_not_met")] if word == "never" else []

    def _push(self, step_id: str) -> None:
        if step_id not in self._pushed:
            self._pushed.add(step_id)
            heapq.heappush(self._heap, (-self._rank[step_id], self._order[step_id], step_id))
