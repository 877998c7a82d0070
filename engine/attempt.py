"""One try of one step: released, called, classified, recorded, checked. Each ends in one way."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from plangate.engine.call import Returned, call, context_for
from plangate.engine.checks import run_check
from plangate.engine.classify import Failure
from plangate.engine.effect import Act, Acted
from plangate.journal.events import AttemptEnded, AttemptStarted, VerdictReached
from plangate.plan.effects import evidence_of
from plangate.plan.verdict import Verdict, overall

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plangate.budget.meter import Reservation
    from plangate.engine.bench import Bench
    from plangate.engine.release import Ready
    from plangate.plan.outcome import AttemptStatus, Outcome, Says
    from plangate.plan.value.frozen import Json
    from plangate.plan.value.step import Step
    from plangate.tools.tool import Tool

_STATUS: Mapping[Outcome, AttemptStatus] = {
    "success": "succeeded",
    "business_rejection": "failed_terminal",
    "transient": "failed_retryable",
    "permanent": "failed_terminal",
    "unexpected_state": "failed_terminal",
    "unknown": "outcome_unknown",
    "denied": "failed_terminal",
    "cancelled": "cancelled",
}


@dataclass(frozen=True, slots=True)
class Tried:
    """How an attempt ended."""

    outcome: Outcome
    code: str = ""
    says: str = ""
    output: str | None = None
    """Artifact of the result."""

    verdicts: tuple[Verdict, ...] = ()

    @property
    def verified(self) -> Says:
        """What the checks say together; a step without checks has its shape (L0) alone."""
        return overall(self.verdicts) if self.verdicts else "pass"


async def attempt(bench: Bench, step: Step, tool: Tool, ready: Ready) -> Tried:
    """Try a released tool step once, and check what it returned.

    Raises:
        BudgetExceeded: The call would pass a limit; nothing was started.
        LeaseLost: Another owner has the run.
        asyncio.CancelledError: After the attempt was recorded as cancelled.
    """
    reservation = bench.meter.reserve(
        "tool", usd=tool.spec.usd, tokens=0, elapsed_s=bench.elapsed_s()
    )
    attempt_id = f"{step.id}-A{bench.session.view.tries[step.id] + 1}"
    _started(bench, step, tool, ready, attempt_id)
    began = bench.monotonic()
    try:
        acted = await _call(bench, step, tool, ready, attempt_id)
    except asyncio.CancelledError:
        bench.meter.release(reservation)
        _ended(bench, step, attempt_id, Failure("cancelled", "cancelled", ""), began)
        raise
    _charge(bench, tool, reservation, acted)
    tried = _recorded(bench, step, tool, ready, attempt_id, acted, began)
    if not isinstance(acted.got, Returned):
        return tried
    verdicts = await _checked(bench, step, tool, ready, attempt_id, acted.got.output)
    return Tried("success", output=tried.output, verdicts=verdicts)


async def _call(bench: Bench, step: Step, tool: Tool, ready: Ready, attempt_id: str) -> Acted:
    context = await context_for(bench, step.id, attempt_id, tool.spec.timeout_s)
    if tool.spec.effect.acts:
        act = Act(bench=bench, step=step, tool=tool, ready=ready, context=context)
        return await act.run()
    return Acted(await call(tool, ready.args, context), key="")


def _charge(bench: Bench, tool: Tool, reservation: Reservation, acted: Acted) -> None:
    if acted.reused == "ledger":
        bench.meter.release(reservation)
    else:
        bench.meter.settle(reservation, usd=tool.spec.usd, tokens=0)


def _started(bench: Bench, step: Step, tool: Tool, ready: Ready, attempt_id: str) -> None:
    view = bench.session.view
    read = [
        view.steps[need].attempts[-1:] for need in sorted(step.data_needs) if need in view.steps
    ]
    bench.session.emit(
        AttemptStarted(
            attempt_id=attempt_id,
            step=step.id,
            plan_version=bench.plan.version,
            capability=f"{tool.spec.name}@{tool.spec.version}",
            args=bench.session.put(ready.args),
            args_sha256=ready.args_sha256,
            inputs=tuple(f"obs://{last}" for each in read for last in each),
        )
    )
    bench.report({"type": "attempt_started", "step": step.id, "attempt": attempt_id})


def _recorded(
    bench: Bench,
    step: Step,
    tool: Tool,
    ready: Ready,
    attempt_id: str,
    acted: Acted,
    began: float,
) -> Tried:  # fmt: skip
    got = acted.got
    shown: tuple[str, ...] = ()
    output = None
    if isinstance(got, Returned):
        output = bench.session.put(got.output)
        shown = evidence_of(tool.spec, ready.args, got.output)
    _ended(bench, step, attempt_id, got, began, output=output, shown=shown, acted=acted)
    if isinstance(got, Failure):
        return Tried(got.outcome, got.code, got.says)
    return Tried("success", output=output)


def _ended(
    bench: Bench,
    step: Step,
    attempt_id: str,
    got: Returned | Failure,
    began: float,
    *,
    output: str | None = None,
    shown: tuple[str, ...] = (),
    acted: Acted | None = None,
) -> None:
    failure = got if isinstance(got, Failure) else None
    outcome: Outcome = failure.outcome if failure else "success"
    bench.session.emit(
        AttemptEnded(
            attempt_id=attempt_id,
            step=step.id,
            status=_STATUS[outcome],
            outcome=outcome,
            error_code=failure.code if failure else "",
            error=failure.says if failure else "",
            output=output,
            observed=shown,
            latency_s=round(bench.monotonic() - began, 6),
            effect_key=(acted.key or None) if acted else None,
            reused=acted.reused if acted else "",
        )
    )


async def _checked(
    bench: Bench, step: Step, tool: Tool, ready: Ready, attempt_id: str, output: Mapping[str, Json]
) -> tuple[Verdict, ...]:
    verdicts: list[Verdict] = []
    for check in step.success:
        shown = evidence_of(tool.spec, ready.args, output)
        verdict = await run_check(bench, check, step=step.id, result=output, evidence=shown)
        bench.session.emit(VerdictReached(step=step.id, attempt_id=attempt_id, verdict=verdict))
        verdicts.append(verdict)
        if verdict.says == "fail":
            break  # nothing above a fail can overrule it
    return tuple(verdicts)
