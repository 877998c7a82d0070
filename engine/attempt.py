"""One try of one step: called, classified, recorded, checked. Each ends in exactly one way."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from plangate.engine.call import Returned
from plangate.engine.capability import Trial
from plangate.engine.checks import Look, close_all, hold_looks, run_check
from plangate.engine.classify import Failure
from plangate.engine.effect import Acted
from plangate.engine.outputs import source
from plangate.journal.attempts import AttemptEnded, AttemptStarted
from plangate.journal.events import VerdictReached
from plangate.journal.points import reached
from plangate.journal.progress import newest, unit_of
from plangate.plan.effects import evidence_of
from plangate.plan.value.frozen import digest
from plangate.plan.verdict import EvidenceRef, Verdict, overall

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plangate.engine.bench import Bench
    from plangate.engine.capability import Call, Capability
    from plangate.engine.checks import Looks
    from plangate.engine.release import Ready
    from plangate.plan.outcome import AttemptStatus, Outcome, Says
    from plangate.plan.value.step import Step

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

    after_s: float = 0.0
    """How long to wait at least before another try."""

    verdicts: tuple[Verdict, ...] = ()

    @property
    def verified(self) -> Says:
        """What the checks say together; a step without checks has its shape (L0) alone."""
        return overall(self.verdicts) if self.verdicts else "pass"


async def attempt(
    bench: Bench, step: Step, capability: Capability, ready: Ready, element: int | None = None
) -> Tried:
    """Try a released step once, and check what came of it.

    Args:
        bench: The run.
        step: The step; of a list, as it is for one element.
        capability: What carries it out.
        ready: What it was released with.
        element: Which element of the list, from 1; None: the step runs over no list.

    Raises:
        BudgetExceeded: The call would pass a limit; nothing was started.
        LeaseLost: Another owner has the run.
        asyncio.CancelledError: After the attempt was recorded as cancelled.
    """
    unit = unit_of(step.id, element)
    trial = Trial(step, ready, f"{unit}-A{bench.session.view.tries[unit] + 1}")
    async with AsyncExitStack() as held:
        call = await capability.reserve(bench, trial)
        held.callback(call.drop)
        # What cannot be checked is not begun: an effect that nobody can look at stays undone.
        looks = await hold_looks(bench, step, unit)
        held.callback(close_all, looks)
        tries = _Try(bench, trial, capability, call, bench.monotonic(), element)
        reached("attempt.reserved")
        tries.start()
        reached("attempt.started")
        try:
            acted = await call.make()
        except asyncio.CancelledError:
            tries.end(Acted(Failure("cancelled", "cancelled", ""), key=""))
            raise
        reached("attempt.called")
        tried = tries.end(acted)
        reached("attempt.ended")
        if isinstance(acted.got, Returned):
            return await tries.check(acted, tried, looks)
        return tried


@dataclass(frozen=True, slots=True)
class _Try:
    bench: Bench
    trial: Trial
    capability: Capability
    call: Call
    began_s: float
    element: int | None

    def start(self) -> None:
        bench, (step, ready, attempt_id), charge = self.bench, self.trial, self.call.charge
        view = bench.session.view
        needs = [source(bench.plan, view, need) for need in sorted(step.data_needs)]
        read = [each for need in needs if need for each in newest(view.attempts, need.attempts)]
        bench.session.emit(
            AttemptStarted(
                attempt_id=attempt_id,
                step=step.id,
                element=self.element,
                plan_version=bench.plan.version,
                capability=self.capability.name,
                asks=self.call.asks,
                args=bench.session.put(ready.args),
                args_sha256=ready.args_sha256,
                inputs=tuple(f"obs://{each.started.attempt_id}" for each in read),
                usd=Decimal(0) if charge is None else charge.spec.usd,
                ledgered=charge is not None and charge.reservation.act.ledgered,
            )
        )
        bench.report({"type": "attempt_started", "step": step.id, "attempt": attempt_id})

    def end(self, acted: Acted) -> Tried:
        """Record the one end of the attempt."""
        got = acted.got
        failure = got if isinstance(got, Failure) else None
        output = self.bench.session.put(got.output) if isinstance(got, Returned) else None
        outcome: Outcome = failure.outcome if failure else "success"
        charge, latency_s = self.call.charge, round(self.bench.monotonic() - self.began_s, 6)
        if charge is None:
            self.bench.meter.took(self.trial.step.id, latency_s)
        self.bench.session.emit(
            AttemptEnded(
                attempt_id=self.trial.attempt_id,
                step=self.trial.step.id,
                status=_STATUS[outcome],
                outcome=outcome,
                error_code=failure.code if failure else "",
                error=failure.says if failure else "",
                output=output,
                observed=self._shown(got),
                usd=Decimal(0) if charge is None else charge.usd,
                called=charge is None or charge.began,
                latency_s=latency_s,
                effect_key=acted.key or None,
                reused=acted.reused,
            )
        )
        if failure:
            return Tried(failure.outcome, failure.code, failure.says, after_s=failure.after_s)
        return Tried("success", output=output)

    async def check(self, acted: Acted, tried: Tried, looks: Looks) -> Tried:
        """Run the step's checks, weakest first as declared; nothing overrules a fail."""
        verdicts: list[Verdict] = []
        got = acted.got
        result = got.output if isinstance(got, Returned) else None
        sha256 = digest(result)
        evidence = tuple(EvidenceRef(ref=ref, sha256=sha256) for ref in self._shown(got))
        for check in self.trial.step.success:
            verdict = await run_check(
                self.bench,
                check,
                step=self.trial.step.id,
                result=result,
                evidence=evidence,
                at=Look(
                    unit_of(self.trial.step.id, self.element),
                    self.trial.ready.args,
                    looks.get(check.id),
                ),
            )
            self.bench.session.emit(
                VerdictReached(
                    step=self.trial.step.id, attempt_id=self.trial.attempt_id, verdict=verdict
                )
            )
            reached("check.decided")
            verdicts.append(verdict)
            if verdict.says == "fail":
                break
        return Tried("success", output=tried.output, verdicts=tuple(verdicts))

    def _shown(self, got: Returned | Failure) -> tuple[str, ...]:
        if not isinstance(got, Returned):
            return ()
        return evidence_of(self.capability.spec, self.trial.ready.args, got.output)
