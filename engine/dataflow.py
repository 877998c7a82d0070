"""The dataflow of one plan: release what is ready, settle what ended, until nothing can start.

A failing branch never stops an independent one; only an abort, a spent budget, a drain and
a cancel stop everything: running reads are then cancelled, running effects are awaited.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from plangate.engine.assumed import settle_assumptions
from plangate.engine.each import needs_of_list
from plangate.engine.ended import Ended, handed_over, record_end, routed
from plangate.engine.outputs import stand_in_of
from plangate.engine.queue import Gone, Limits, Needs, ReadyQueue
from plangate.engine.reestimate import weigh
from plangate.engine.release import known_args
from plangate.engine.steps import run_step
from plangate.engine.triggers import Halt, Reason, halt_of, halt_of_weight, tokens_rising
from plangate.plan.contract import MODEL_AT_ONCE, RESERVED, contract_of
from plangate.plan.effects import claims_of
from plangate.plan.errors import BudgetExceeded, ConfigError
from plangate.plan.joins import is_strict
from plangate.plan.schedule import descendants_of

if TYPE_CHECKING:
    from plangate.engine.bench import Bench
    from plangate.plan.outcome import StepStatus
    from plangate.plan.value.step import Step

_NOTHING = Needs()
_TOLD = ""
"""Among the ids of ended steps: the run was told to stop."""

_FINAL: frozenset[Reason] = frozenset({"abort", "cancelled"})
_WHY = {
    "reads_skipped": "it reads {because}, which was skipped",
    "not_needed": "{because} needs no stand-in",
    "join_not_met": "its join cannot be met after the end of {because}",
}
_STOPS_ALL: frozenset[Reason] = _FINAL | {"budget", "drained"}


async def run_plan(bench: Bench, *, parallel: int = 64) -> Halt:
    """Run the steps of an approved plan as far as they go.

    Returns:
        Why it stopped. Everything that happened is in the journal by then.

    Raises:
        LeaseLost, JournalError: Nothing more can be recorded, so nothing more is done.
    """
    flow = _Flow(bench, parallel)
    try:
        return await flow.run()
    finally:
        await flow.finish()


@dataclass(slots=True)
class _Flow:
    bench: Bench
    parallel: int
    queue: ReadyQueue = field(init=False)
    running: dict[str, asyncio.Task[Ended]] = field(default_factory=dict)
    ended: asyncio.Queue[str] = field(default_factory=asyncio.Queue)
    ends: list[Ended] = field(default_factory=list)
    losers: set[str] = field(default_factory=set)
    """Running reads that were told to stop, since nobody needs them any more."""

    stop: Halt | None = None

    def __post_init__(self) -> None:
        bench = self.bench
        limits = Limits(
            parallel=self.parallel,
            tools={
                name: spec.concurrency
                for name, spec in bench.catalog.tools.items()
                if spec.concurrency is not None
            }
            | dict.fromkeys(RESERVED, MODEL_AT_ONCE),
        )
        self.queue = ReadyQueue(bench.plan, bench.seconds, limits, self._holds)
        view = bench.session.view
        statuses = {step: seen.status for step, seen in view.steps.items()}
        called = [stand_in_of(bench.plan, seen) for seen in view.steps.values()]
        for gone in self.queue.restore(statuses, called):
            self._give_up(gone)

    def _holds(self, step: Step) -> bool:
        return self.bench.ask(step.join.rule or "false", step=step.id, before=True) is True

    async def run(self) -> Halt:
        loop, told = asyncio.get_running_loop(), self.bench.session.stop
        with told.telling(lambda: loop.call_soon_threadsafe(self.ended.put_nowait, _TOLD)):
            await self._flow()
        if self.stop is not None:
            return self.stop
        accounted = self._accounted()
        left = [step for step in self.queue.unsettled if step not in accounted]
        return halt_of(self._known_ends(), left)

    async def _flow(self) -> None:
        self._heed()
        if self.stop is None:
            self._release()
        while self.running:
            step_id = await self.ended.get()
            if step_id != _TOLD:
                self._settle(step_id)
            self._heed()
            if self.stop is None:
                self._watch()
            if self.stop is None and step_id != _TOLD:
                self._weigh(step_id)
            if self.stop is None:
                self._release()
            elif self.stop.reason in _STOPS_ALL:
                self.bench.brake.pull(final=self.stop.reason in _FINAL)
                self._cancel_reads()

    def _heed(self) -> None:
        """A person's word outweighs what the plan itself came to; a drain only stops what goes."""
        asked = self.bench.session.stop.asked
        if asked is None or (self.stop is not None and asked.kind == "drain"):
            return
        reason: Reason = "cancelled" if asked.kind == "cancel" else "drained"
        self.stop = Halt(reason=reason, says=asked.reason)

    async def finish(self) -> None:
        """Leave nothing running; an effect that is under way is awaited, not abandoned."""
        self.bench.brake.pull()
        self._cancel_reads()
        if self.running:
            await asyncio.gather(*self.running.values(), return_exceptions=True)

    def _release(self) -> None:
        for step_id in self.queue.take(self._needs):
            step, slots = self.bench.plan.by_id[step_id], self.queue.held(step_id).slots
            task = asyncio.create_task(run_step(self.bench, step, at_once=slots))
            self.running[step_id] = task
            task.add_done_callback(partial(self._done, step_id))
            if step.join.cancel_rest:
                self._let_go(self.queue.losers(step_id, self._goes_on))

    def _done(self, step_id: str, _: asyncio.Task[Ended]) -> None:
        self.ended.put_nowait(step_id)

    def _settle(self, step_id: str) -> None:
        task = self.running.pop(step_id)
        if task.cancelled():
            self._cancelled(step_id)
            return
        error = task.exception()
        if isinstance(error, BudgetExceeded):
            self.stop = Halt(reason="budget", step=step_id, says=str(error), limit=error)
            return
        if error is not None:
            raise error
        ended = task.result()
        self.ends.append(ended)
        if ended.action == "abort":
            self.stop = halt_of([ended], [])
        status: StepStatus = "pending" if ended.status == "waiting" else ended.status
        self._settled(step_id, status, ended.stand_in)

    def _settled(self, step_id: str, status: StepStatus, stand_in: str = "") -> None:
        called = stand_in if status == "handed_over" else ""
        for gone in self.queue.settle(step_id, status, called):
            self._give_up(gone)

    def _give_up(self, gone: Gone) -> None:
        """End a step that can never run, and whatever that decides in turn."""
        why = _WHY[gone.why].format(because=gone.because)
        ended = Ended(step=gone.step, status="skipped", why=why)
        if gone.why == "join_not_met":
            step = self.bench.plan.by_id[gone.step]
            failed = routed(step, "failed", "unexpected_state", gone.why, why)
            ended = handed_over(self.bench, step, failed)
            self.ends.append(ended)
        record_end(self.bench, ended)
        self._settled(gone.step, ended.status, ended.stand_in)

    def _let_go(self, losers: list[str]) -> None:
        """Cancel the reads that nobody needs any more."""
        for step_id in losers:
            if step_id in self.running:
                self.losers.add(step_id)
                self.running[step_id].cancel()
            else:
                self._lost(step_id)

    def _goes_on(self, step_id: str) -> bool:
        """True for what acts, or asks a person: it is never cancelled because of a join."""
        step = self.bench.plan.by_id[step_id]
        spec = self.bench.catalog.tools.get(step.tool or "")
        return step.kind == "human" or bool(step.tool and (spec is None or spec.effect.acts))

    def _lost(self, step_id: str) -> None:
        why = "another way was quicker"
        record_end(
            self.bench,
            Ended(
                step=step_id, status="cancelled", outcome="cancelled", code="not_needed", why=why
            ),
        )
        self._settled(step_id, "cancelled")

    def _cancelled(self, step_id: str) -> None:
        """A run that is only stopped takes its cancelled steps up again; one that ends says so."""
        if step_id in self.losers and self.stop is None:
            self._lost(step_id)
            return
        if self.stop is None or self.stop.reason not in _FINAL:
            return
        ended = Ended(step=step_id, status="cancelled", outcome="cancelled", why=self.stop.says)
        record_end(self.bench, ended)

    def _watch(self) -> None:
        """Conditions and assumptions are looked at whenever something has changed."""
        for condition in self.bench.plan.abort_conditions:
            if self.bench.ask(condition.rule, step=None) is True:
                self.stop = Halt(reason="abort", code=condition.id, says=condition.text)
                return
        for condition in self.bench.plan.replan_conditions:
            if self.bench.ask(condition.rule, step=None) is True:
                says = condition.text
                self.stop = Halt(reason="trigger", kind="condition", code=condition.id, says=says)
                return
        self.stop = settle_assumptions(self.bench)

    def _weigh(self, step_id: str) -> None:
        """A step that took far more than planned has the rest weighed again, and recorded."""
        found = weigh(self.bench, step_id)
        if found is not None:
            self.bench.session.emit(found)
            self.stop = halt_of_weight(found, self.bench.meter.limits)
        elif tokens_rising(self.bench.session.view):
            says = "each round took more tokens than the one before, and got no further"
            self.stop = Halt(reason="trigger", kind="diverging", code="tokens_rising", says=says)

    def _cancel_reads(self) -> None:
        for step_id, task in self.running.items():
            spec = contract_of(self.bench.plan.by_id[step_id], self.bench.catalog)
            if spec is None or not spec.effect.acts:
                task.cancel()

    def _needs(self, step_id: str) -> Needs:
        step = self.bench.plan.by_id[step_id]
        spec = contract_of(step, self.bench.catalog)
        if spec is None:
            return _NOTHING
        if step.for_each is not None:
            return needs_of_list(self.bench, step, self.parallel)
        if not (spec.reads or spec.writes or step.claims):
            return Needs(tool=spec.name)
        try:
            claims = claims_of(spec, known_args(self.bench, step))
        except ConfigError:  # a value is missing, as the step will say itself; until then: alone
            unknown = frozenset((*spec.reads, *spec.writes, *step.claims))
            return Needs(tool=spec.name, writes=unknown)
        return Needs(
            tool=spec.name, reads=claims.reads, writes=claims.writes | frozenset(step.claims)
        )

    def _accounted(self) -> frozenset[str]:
        """Steps that have not ended for a reason that is already told."""
        known = frozenset(end.step for end in self._known_ends())
        return known | descendants_of(self.bench.plan, known)

    def _known_ends(self) -> list[Ended]:
        """The ends of this pass, and failures that an earlier owner left behind."""
        seen = {end.step for end in self.ends}
        earlier = [
            Ended(
                step=step,
                status="unknown" if each.status == "unknown" else "failed",
                outcome=each.outcome or "unknown",
                code=each.error_code,
                why=each.why,
            )
            for step, each in self.bench.session.view.steps.items()
            if each.status in ("failed", "unknown") and step not in seen
        ]
        return [end for end in (*self.ends, *earlier) if not self._is_tolerated(end)]

    def _is_tolerated(self, end: Ended) -> bool:
        """True for a failure that every step behind it can do without, as their joins say.

        What became of those joins tells whether it matters. An outcome that nobody knows does.
        """
        if end.status != "failed" or end.action:
            return False
        behind = [step for step in self.bench.plan.steps if end.step in step.needs]
        return bool(behind) and not any(is_strict(step) for step in behind)
