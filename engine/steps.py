"""One step from release to its single end: attempts, the retry matrix, the routes of the plan."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from plangate.engine.asked import answer_to
from plangate.engine.attempt import Tried, attempt
from plangate.engine.authorizer import authorized
from plangate.engine.capability import capability_of
from plangate.engine.checks import run_check
from plangate.engine.effect import DID_NOT_HAPPEN, was_begun
from plangate.engine.release import Held, Ready, prepare
from plangate.engine.reread import reread
from plangate.engine.retry import Next, RetryContext, decide, delay_s
from plangate.journal.events import StepEnded, StepReleased, VerdictReached
from plangate.journal.ledger import UNSETTLED
from plangate.journal.points import reached
from plangate.plan.contract import contract_of
from plangate.plan.errors import Denied
from plangate.plan.shape.scope import output_shape
from plangate.plan.value.frozen import digest
from plangate.plan.verdict import EvidenceRef, Verdict

if TYPE_CHECKING:
    from plangate.engine.bench import Bench
    from plangate.engine.capability import Capability
    from plangate.plan.outcome import Outcome
    from plangate.plan.value.step import Action, Step

_MOST_RECONCILES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a step ended, and where that leads."""

    step: str
    status: Literal["done", "failed", "skipped", "cancelled", "unknown", "waiting", "handed_over"]
    outcome: Outcome = "success"
    code: str = ""
    why: str = ""
    action: Action | Literal[""] = ""
    """The route that the plan declares for this end; empty: none."""

    output: str | None = None
    stand_in: str = ""
    """The step that the route names."""


async def run_step(bench: Bench, step: Step) -> Ended:
    """Run a step whose predecessors are done.

    Returns:
        Its end, already in the log; `waiting` is no end: a person has to answer first.

    Raises:
        BudgetExceeded, LeaseLost: The step stays pending.
    """
    ended = await _human(bench, step) if step.kind == "human" else await _called(bench, step)
    return record_end(bench, handed_over(bench, step, ended))


def record_end(bench: Bench, ended: Ended) -> Ended:
    """Write the one end of a step; to wait is none."""
    if ended.status == "waiting":
        return ended
    bench.session.emit(
        StepEnded(
            step=ended.step,
            plan_version=bench.plan.version,
            status=ended.status,
            stand_in=ended.stand_in if ended.status == "handed_over" else "",
            output=ended.output,
            outcome=ended.outcome,
            error_code=ended.code,
            why=ended.why,
        )
    )
    reached("step.ended")
    bench.report(
        {"type": "step_ended", "step": ended.step, "status": ended.status, "code": ended.code}
    )
    return ended


async def _called(bench: Bench, step: Step) -> Ended:
    capability = capability_of(bench, step)
    reconciles = tries = 0
    while True:
        bench, ready = await _looked_at(bench, step)
        reached("step.looked_at")
        if isinstance(ready, Held):
            return await _stopped(bench, step, ready)
        if capability is None:
            return routed(step, "failed", "denied", "tool_gone", "the tool has no body here")
        if not tries:
            bench.session.emit(
                StepReleased(step=step.id, plan_version=bench.plan.version, gaps=bench.gaps(step))
            )
            reached("step.released")
            bench.report({"type": "step_released", "step": step.id})
        tries += 1
        tried = await attempt(bench, step, capability, ready)
        if tried.outcome == "success":
            return _verified(step, tried)
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


async def _stopped(bench: Bench, step: Step, held: Held) -> Ended:
    """A step that may not run (any more); what it may have done before is not forgotten."""
    if held.status in ("failed", "skipped"):
        ledger = bench.session.journal.ledger
        rows = await asyncio.to_thread(ledger.list, run_id=bench.session.run.run_id)
        if any(row.step == step.id and row.state in UNSETTLED for row in rows):
            says = f"it was begun, nobody knows its outcome, and now {held.says}"
            return routed(step, "unknown", "unknown", "outcome_unknown", says)
    return _held(step, held)


async def _looked_at(bench: Bench, step: Step) -> tuple[Bench, Ready | Held]:
    """Look at the step a last time, with the rights of this moment; none are known: none are."""
    try:
        bench = await authorized(bench)
    except Denied as exc:
        return bench, Held("failed", "denied", "rights_unknown", str(exc))
    ready, tool = prepare(bench, step), bench.tools.get(step.tool or "")
    if (
        isinstance(ready, Ready)
        and tool is not None
        and tool.spec.effect.acts
        and await asyncio.to_thread(was_begun, bench, tool, ready.args)
    ):
        return bench, ready  # our own effect may be what moved the world; a no comes too late
    return bench, await reread(bench, step, ready)


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


def _verified(step: Step, tried: Tried) -> Ended:
    says = tried.verified
    if says == "pass":
        return Ended(step=step.id, status="done", output=tried.output)
    worst = next(verdict for verdict in tried.verdicts if verdict.says == says)
    why = f"{worst.claim}: {worst.why}"
    if says == "fail":
        return routed(step, "failed", "unexpected_state", f"check_failed:{worst.check_id}", why)
    return routed(step, "unknown", "unknown", f"check_unknown:{worst.check_id}", why)


def _held(step: Step, held: Held) -> Ended:
    if held.status == "skipped":
        return Ended(step=step.id, status="skipped", code=held.code, why=held.says)
    if held.status == "waiting":
        return Ended(step=step.id, status="waiting", code=held.code, why=held.says)
    return routed(step, held.status, held.outcome, held.code, held.says)


def routed(
    step: Step, status: Literal["failed", "unknown"], outcome: Outcome, code: str, why: str
) -> Ended:
    """Look the plan's own route up: the error code first, then the outcome class."""
    by = {route.on: route for route in step.routes}
    route = by.get(code) or by.get(outcome)
    said = Ended(step=step.id, status=status, outcome=outcome, code=code, why=why)
    if route is None:
        return said
    if route.action == "skip" and status == "failed":
        return replace(said, status="skipped")
    return replace(said, action=route.action, stand_in=route.step or "")


def handed_over(bench: Bench, step: Step, ended: Ended) -> Ended:
    """Let a stand-in take over a failure; never one of an act that may have happened."""
    if ended.action != "fallback" or ended.status != "failed":
        return ended
    spec = contract_of(step, bench.catalog)
    if ended.outcome in ("unknown", "unexpected_state") and (spec is None or spec.effect.acts):
        return ended  # a result that nobody expected is one: the act was done
    return replace(ended, status="handed_over")


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
    verdicts: list[Verdict] = []
    for check in step.success:
        verdicts.append(
            await run_check(bench, check, step=step.id, result=output, evidence=(said,))
        )
        bench.session.emit(VerdictReached(step=step.id, attempt_id="", verdict=verdicts[-1]))
    tried = Tried("success", output=bench.session.put(output), verdicts=tuple(verdicts))
    return _verified(step, tried)
