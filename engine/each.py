"""A step over a list: each element is tried, recorded, approved and checked by itself.

An element that is done is never done again, whoever comes back to the step. One that fails stops no
other; the step then fails, names it, and what the others did stays on the record. A list that is
longer than its bound, or that waits for a person, begins nothing.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from plangate.engine.ended import Ended, held_back, routed
from plangate.engine.looked import looked_at_list, release, stopped
from plangate.engine.queue import InUse, Limits, Needs
from plangate.engine.release import Held, Ready, known_args, prepare
from plangate.engine.reread import reread
from plangate.journal.progress import unit_of
from plangate.plan.effects import claims_of, effect_key
from plangate.plan.errors import ConfigError
from plangate.plan.value.each import each_of, element
from plangate.plan.value.frozen import digest
from plangate.plan.value.refs import resolve_all

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from plangate.engine.bench import Bench
    from plangate.journal.progress import AttemptView
    from plangate.plan.catalog import ToolSpec
    from plangate.plan.value.step import Step

AT_ONCE = 8
"""Elements at the same time where the tool's contract does not say how many."""

_NAMED = 5


class Part(NamedTuple):
    """One element of the list."""

    number: int
    """From 1."""

    step: Step
    """What it does, as a step of its own."""


One: TypeAlias = "Callable[[Bench, Step, int], Awaitable[Ended]]"
"""Runs one element to its end."""


async def run_each(bench: Bench, step: Step, one: One, *, at_once: int) -> Ended:
    """Run a step over a list.

    Args:
        bench: The run.
        step: A tool step with `for_each`.
        one: Runs one element.
        at_once: How many elements may run at the same time.

    Returns:
        Its end; where it is done, the output is the list of the elements' outputs, in their order.

    Raises:
        BudgetExceeded, LeaseLost: The step stays pending; no element is abandoned half-way.
        asyncio.CancelledError: The run is stopping, and elements are left.
    """
    bench, held = await looked_at_list(bench, step)
    parts = held or parts_of(bench, step)
    if isinstance(parts, Held):
        return await stopped(bench, step, parts)
    ends = await asyncio.to_thread(_done_already, bench, parts)
    left = [part for part in parts if part.number not in ends]
    if (waits := await _waits(bench, step, left)) is not None:
        return held_back(step, waits)
    release(bench, step)
    ends |= await _Elements(bench, one, at_once, deque(left)).run()
    return _together(bench, step, parts, ends)


def parts_of(bench: Bench, step: Step) -> list[Part] | Held:
    """Return the elements of a step's list, or why the step cannot run over it."""
    ref = each_of(step)
    try:
        items = None if ref is None else ref.resolve(bench.values(step))
    except KeyError as exc:
        says = f"for_each of {step.id} found no {exc}"
        return Held("failed", "unexpected_state", "missing_value", says)
    if not isinstance(items, (list, tuple)):
        says = f"{step.for_each} is not a list"
        return Held("failed", "unexpected_state", "not_a_list", says)
    if step.max_items is None or len(items) > step.max_items:
        says = f"{step.for_each} has {len(items)} elements, more than max_items {step.max_items}"
        return Held("failed", "unexpected_state", "too_many_items", f"{says}; nothing was done")
    return [Part(at + 1, element(step, at)) for at in range(len(items))]


def needs_of_list(bench: Bench, step: Step, parallel: int) -> Needs:
    """Return what a step over a list holds: for as many elements as may run at the same time."""
    spec = bench.catalog.tools.get(step.tool or "")
    parts = parts_of(bench, step)
    if spec is None or isinstance(parts, Held):
        return Needs()  # the step says itself what is wrong
    most = AT_ONCE if spec.concurrency is None else spec.concurrency
    each = [_needs(bench, part.step) for part in parts]
    return Needs(
        tool=spec.name,
        slots=max(1, min(most, parallel, len(parts))),
        reads=frozenset().union(*(needs.reads for needs in each)),
        writes=frozenset(step.claims).union(*(needs.writes for needs in each)),
    )


def _needs(bench: Bench, part: Step) -> Needs:
    spec = bench.catalog.tools[part.tool or ""]
    try:
        claims = claims_of(spec, known_args(bench, part))
    except ConfigError:  # as the element will say itself; until then: alone
        return Needs(writes=frozenset((*spec.reads, *spec.writes)))
    return Needs(reads=claims.reads, writes=claims.writes)


def _done_already(bench: Bench, parts: Sequence[Part]) -> dict[int, Ended]:
    """Return the elements that this plan version has done and verified, from log and ledger."""
    tried: dict[str, AttemptView] = {}
    for each in bench.session.view.attempts.values():
        if each.started.plan_version == bench.plan.version:
            tried[each.unit] = each
    ends: dict[int, Ended] = {}
    for part in parts:
        last = tried.get(unit_of(part.step.id, part.number))
        if last is not None and last.ended is not None and _stands(bench, part, last):
            ends[part.number] = Ended(step=part.step.id, status="done", output=last.ended.output)
    return ends


def _stands(bench: Bench, part: Part, tried: AttemptView) -> bool:
    """True if an attempt was this very call, came to its end, passed, and was not undone since."""
    spec, view = bench.catalog.tools.get(part.step.tool or ""), bench.session.view
    ended = tried.ended
    if spec is None or ended is None or ended.output is None or ended.outcome != "success":
        return False
    passed = {
        verdict.check_id
        for verdict in view.verdicts.get(tried.unit, ())
        if verdict.says == "pass" and view.judged.get(tried.unit) == tried.started.attempt_id
    }
    if tried.started.capability != f"{spec.name}@{spec.version}" or not passed.issuperset(
        check.id for check in part.step.success
    ):
        return False
    return _same_arguments(bench, part, tried) and (
        not spec.effect.acts or _is_done(bench, ended.effect_key)
    )


def _same_arguments(bench: Bench, part: Part, tried: AttemptView) -> bool:
    try:
        args = resolve_all(part.step.args, bench.values(part.step))
    except KeyError:
        return False
    return digest(args) == tried.started.args_sha256


def _is_done(bench: Bench, key: str | None) -> bool:
    row = None if key is None else bench.session.journal.ledger.get(key)
    return row is not None and row.state == "done"


async def _waits(bench: Bench, step: Step, left: Sequence[Part]) -> Held | None:
    """Say what a person has to answer before the first element acts; a read waits for nobody."""
    spec = bench.catalog.tools.get(step.tool or "")
    if spec is None or not spec.effect.acts:
        return None
    looks = [prepare(bench, part.step) for part in left]
    for look in looks:
        if isinstance(look, Held) and look.status == "waiting":
            return look
    ready = next((look for look in looks if isinstance(look, Ready)), None)
    if ready is None or await asyncio.to_thread(_was_begun, bench, spec, step, looks):
        return None  # our own effects may be what moved the world
    again = await reread(bench, step, ready)
    return again if isinstance(again, Held) else None


def _was_begun(bench: Bench, spec: ToolSpec, step: Step, looks: Sequence[Ready | Held]) -> bool:
    """True if an element of this list was begun; a step of that name in an older plan is not."""
    with suppress(ConfigError):  # as the element will say itself
        now, goal = [look.args for look in looks if isinstance(look, Ready)], bench.plan.goal_id
        keys = {effect_key(spec, args, goal).key for args in now}
        rows = bench.session.journal.ledger.list(run_id=bench.session.run.run_id)
        mine = (row for row in rows if row.state != "failed")
        version = bench.plan.version
        return any(
            row.effect_key in keys or (row.step, row.plan_version) == (step.id, version)
            for row in mine
        )
    return False


@dataclass(slots=True)
class _Elements:
    """The elements that are left, as many at a time as may be; in order where it matters."""

    bench: Bench
    one: One
    at_once: int
    waiting: deque[Part]
    running: dict[asyncio.Task[Ended], tuple[Part, Needs]] = field(default_factory=dict)
    ends: dict[int, Ended] = field(default_factory=dict)
    in_use: InUse = field(default_factory=InUse)
    error: BaseException | None = None
    cut: bool = False
    """True once an element stopped in the middle because the run is stopping."""

    async def run(self) -> Mapping[int, Ended]:
        try:
            self._start()
            while self.running:
                ended, _ = await asyncio.wait(self.running, return_when="FIRST_COMPLETED")
                for task in sorted(ended, key=lambda each: self.running[each][0].number):
                    self._settle(task)
                self._start()
        finally:
            await self._end_reads()
        if self.error is not None:
            raise self.error
        if self.waiting or self.cut:
            return self._cut_short()
        return self.ends

    def _start(self) -> None:
        limits = Limits(parallel=self.at_once)
        held: list[Part] = []
        while self.waiting and not self._is_stopping:
            part = self.waiting.popleft()
            needs = _needs(self.bench, part.step)
            if not self.in_use.admits(needs, limits):
                held.append(part)
                if self.in_use.running >= self.at_once:
                    break
                continue  # one that writes something else may start before it
            self.in_use.take(needs, +1)
            task = asyncio.ensure_future(self.one(self.bench, part.step, part.number))
            self.running[task] = part, needs
        self.waiting.extendleft(reversed(held))

    @property
    def _is_stopping(self) -> bool:
        return self.error is not None or self.cut or self.bench.brake.pulled

    def _settle(self, task: asyncio.Task[Ended]) -> None:
        part, needs = self.running.pop(task)
        self.in_use.take(needs, -1)
        if task.cancelled():
            self.cut = True
        elif (error := task.exception()) is not None:
            self.error = self.error or error
        else:
            self.ends[part.number] = task.result()

    def _cut_short(self) -> Mapping[int, Ended]:
        """Leave the rest to the next pass; a run that ends here says what is not known."""
        if self.bench.brake.final and any(e.status == "unknown" for e in self.ends.values()):
            return self.ends
        raise asyncio.CancelledError

    async def _end_reads(self) -> None:
        """A step that is cancelled takes its elements with it."""
        for task in self.running:
            task.cancel()
        if self.running:
            await asyncio.gather(*self.running, return_exceptions=True)


def _together(bench: Bench, step: Step, parts: Sequence[Part], ends: Mapping[int, Ended]) -> Ended:
    """Make one end of many: the worst word counts, and says of which elements it is."""
    for status in ("unknown", "failed", "waiting", "skipped"):
        these = {number: each for number, each in sorted(ends.items()) if each.status == status}
        if not these:
            continue
        first, says = next(iter(these.values())), _named(step, these, len(parts))
        if status == "unknown":
            return routed(step, "unknown", first.outcome, first.code, says)
        if status == "waiting":
            return Ended(step=step.id, status="waiting", code=first.code, why=says)
        if status == "skipped" and len(these) == len(parts):
            return Ended(step=step.id, status="skipped", code=first.code, why=says)
        outcome = first.outcome if status == "failed" else "unexpected_state"
        return routed(step, "failed", outcome, first.code, says)
    outputs = [ends[part.number].output for part in parts]
    together = [None if each is None else bench.session.load(each) for each in outputs]
    return Ended(step=step.id, status="done", output=bench.session.put(together))


def _named(step: Step, these: Mapping[int, Ended], count: int) -> str:
    """Name elements with what they came to; after the first few only their numbers."""
    told = [
        f"{unit_of(step.id, number)} {each.code}: {each.why}"
        for number, each in list(these.items())[:_NAMED]
    ]
    rest = ", ".join(str(number) for number in list(these)[_NAMED:])
    more = [f"and elements {rest}"] if rest else []
    return f"{len(these)} of {count} elements: {'; '.join([*told, *more])}"
