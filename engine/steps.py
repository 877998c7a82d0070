"""One step from release to its single end: attempts, the retry matrix, the routes of the plan."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Literal

from plangate.engine.agent import run_agent
from plangate.engine.asked import answer_to
from plangate.engine.attempt import Tried, attempt
from plangate.engine.by_person import judged_by_person
from plangate.engine.capability import capability_of
from plangate.engine.each import run_each
from plangate.engine.effect import DID_NOT_HAPPEN
from plangate.engine.ended import Ended, handed_over, record_end, routed, verified
from plangate.engine.judged import judged
from plangate.engine.looked import looked_at, release, stopped
from plangate.engine.release import Held
from plangate.engine.retry import Next, RetryContext, decide, delay_s
from plangate.journal.events import StepReleased
from plangate.journal.points import reached
from plangate.plan.shape.scope import output_shape
from plangate.plan.value.frozen import digest
from plangate.plan.verdict import EvidenceRef

if TYPE_CHECKING:
    from plangate.engine.bench import Bench
    from plangate.engine.capability import Capability
    from plangate.plan.value.step import Step

_MOST_RECONCILES = 3


async def run_step(bench: Bench, step: Step, *, at_once: int = 1) -> Ended:
    """Run a step whose predecessors are done.

    Args:
        bench: The run.
        step: The step.
        at_once: Of a step over a list, how many elements may run at the same time.

    Returns:
        Its end, already in the log; `waiting` is no end: a person has to answer first.

    Raises:
        BudgetExceeded, LeaseLost: The step stays pending.
    """
    ended = await _run(bench, step, at_once)
    return record_end(bench, handed_over(bench, step, ended))


async def _run(bench: Bench, step: Step, at_once: int) -> Ended:
    if step.kind == "human":
        return await _human(bench, step)
    if step.for_each is not None:
        return await run_each(bench, step, _called, at_once=at_once)
    if step.autonomy is not None:
        return await run_agent(bench, step, _called)
    return await _called(bench, step)


async def _called(bench: Bench, step: Step, element: int | None = None) -> Ended:
    capability = capability_of(bench, step)
    reconciles = tries = 0
    while True:
        bench, ready = await looked_at(bench, step, element)
        reached("step.looked_at")
        if isinstance(ready, Held):
            return await stopped(bench, step, ready, element)
        if capability is None:
            return routed(step, "failed", "denied", "tool_gone", "the tool has no body here")
        if not tries and element is None:  # a list is released as a whole
            release(bench, step)
        tries += 1
        known = judged_by_person(bench, step, capability, ready, element) if tries == 1 else None
        tried = known or await attempt(bench, step, capability, ready, element)
        if tried.outcome == "success":
            return verified(step, tried)
        follow = _next(bench, capability, tried, tries)
        if follow == "reconcile":
            reconciles += 1
            follow = "retry" if reconciles < _MOST_RECONCILES else "ask"
        if follow != "retry" or not await _paused(bench, tried, tries):
            status: Literal["failed", "unknown"] = "failed" if follow == "route" else "unknown"
            return routed(step, status, tried.outcome, tried.code, tried.says)


async def _paused(bench: Bench, tried: Tried, tries: int) -> bool:
    """Wait before the next attempt; False where there is none, since the run is stopping."""
    await bench.brake.pause(max(tried.after_s, delay_s(tries, bench.jitter())))
    if not bench.brake.pulled:
        return True
    if not (bench.brake.final and tried.outcome == "unknown"):
        raise asyncio.CancelledError  # the next pass goes on from the ledger
    return False


def _next(bench: Bench, capability: Capability, tried: Tried, tries: int) -> Next:
    if tried.code == DID_NOT_HAPPEN:
        return "retry"  # it was no try of its own
    limit = bench.meter.limits.max_seconds
    return decide(
        RetryContext(
            outcome=tried.outcome,
            repeat=capability.repeat,
            attempt=tries,
            max_attempts=capability.spec.max_attempts,
            seconds_left=None if limit is None else limit - bench.elapsed_s(),
        )
    )


async def _human(bench: Bench, step: Step) -> Ended:
    """A human step is done once its answer stands in the journal; it never guesses one."""
    answer = answer_to(bench.session, bench.plan, step)
    if answer is None:
        return Ended(step=step.id, status="waiting", code="question", why="a person has to answer")
    output = {**answer.answer, "by": answer.by}
    for misfit in output_shape(step, bench.catalog).accepts(output):
        says = f"{misfit.path or 'answer'} {misfit.says}"
        return routed(step, "failed", "unexpected_state", "bad_answer", says)
    bench.session.emit(StepReleased(step=step.id, plan_version=bench.plan.version))
    if output.get("confirmed") is False:
        says = f"{answer.by} did not confirm"
        return routed(step, "failed", "business_rejection", "not_confirmed", says)
    said = EvidenceRef(ref=f"decision://{answer.question_id}", sha256=digest(output))
    return await judged(bench, step, output, (said,))
