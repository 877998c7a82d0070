"""How a step ended, and where the plan says that this leads."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from plangate.journal.events import StepEnded
from plangate.journal.points import reached
from plangate.plan.contract import contract_of
from plangate.plan.joins import route_of

if TYPE_CHECKING:
    from plangate.engine.attempt import Tried
    from plangate.engine.bench import Bench
    from plangate.engine.release import Held
    from plangate.plan.outcome import Outcome
    from plangate.plan.value.step import Action, Step


IN_FLIGHT = "in_flight"
"""Code of an act that was not begun since somebody else is doing this very effect."""


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


def verified(step: Step, tried: Tried) -> Ended:
    """Return the end of a step whose call succeeded: what its checks say."""
    says = tried.verified
    if says == "pass":
        return Ended(step=step.id, status="done", output=tried.output)
    worst = next(verdict for verdict in tried.verdicts if verdict.says == says)
    why = f"{worst.claim}: {worst.why}"
    if says == "fail":
        return routed(step, "failed", "unexpected_state", f"check_failed:{worst.check_id}", why)
    return routed(step, "unknown", "unknown", f"check_unknown:{worst.check_id}", why)


def held_back(step: Step, held: Held) -> Ended:
    """Return the end of a step that may not run."""
    if held.status == "skipped":
        return Ended(step=step.id, status="skipped", code=held.code, why=held.says)
    if held.status == "waiting":
        return Ended(step=step.id, status="waiting", code=held.code, why=held.says)
    return routed(step, held.status, held.outcome, held.code, held.says)


def routed(
    step: Step, status: Literal["failed", "unknown"], outcome: Outcome, code: str, why: str
) -> Ended:
    """Look the plan's own route up: the error code first, then the outcome class."""
    route = route_of(step, code, outcome)
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
    acts = spec is None or spec.effect.acts
    may_be_done = ended.outcome in ("unknown", "unexpected_state") or ended.code == IN_FLIGHT
    if acts and (may_be_done or step.for_each is not None):
        return ended  # a result that nobody expected is one, and other elements may be done
    return replace(ended, status="handed_over")
