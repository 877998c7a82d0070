"""The final report: built from journal and ledger, and its claims held against them once more.

A report whose claims contradict the record is itself a failed check: a fluent story about things
that never happened must not leave this process as a success.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from plangate.journal.ledger import EffectRow
from plangate.journal.progress import AttemptView, StepView, newest
from plangate.journal.session import Session
from plangate.journal.view import RunView
from plangate.nodes.cost import cost_of
from plangate.nodes.ending import Ending
from plangate.nodes.said import changed_by_people
from plangate.nodes.undo import Candidate
from plangate.plan.catalog import Catalog
from plangate.plan.errors import Damaged
from plangate.plan.value.frozen import Json
from plangate.plan.value.plan import Plan
from plangate.plan.value.step import Step
from plangate.plan.verdict import Verdict

_ENDED = ("done", "skipped", "cancelled", "failed", "unknown", "handed_over")


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of the report, and what the record says to it."""

    says: str
    holds: bool
    record: str

    def shown(self) -> dict[str, Json]:
        """Return the claim as JSON."""
        return {"says": self.says, "holds": self.holds, "record": self.record}


def claims_of(
    session: Session, plan: Plan, catalog: Catalog, effects: Sequence[EffectRow]
) -> list[Claim]:
    """Hold what the steps say they did against the ledger, both ways."""
    view = session.view
    rows = {row.step: row for row in effects}
    claims: list[Claim] = []
    for step in plan.steps:
        spec = catalog.tools.get(step.tool or "")
        seen = view.steps.get(step.id)
        if spec is None or seen is None or not spec.effect.acts or seen.status != "done":
            continue
        if step.for_each is not None:
            claims.append(_claim_of_list(session, step, seen))
            continue
        key = _effect_key(view, step.id)
        row = session.journal.ledger.get(key) if key else rows.get(step.id)
        holds = row is not None and row.state == "done" and _is_result(row, seen.output)
        record = "no effect in the ledger" if row is None else f"{row.state} {row.business_key}"
        claims.append(Claim(f"{step.id} {step.tool} is done", holds, record))
    for row in effects:
        seen = view.steps.get(row.step)
        if row.state == "done" and (seen is None or seen.status != "done"):
            status = seen.status if seen else "not in this plan"
            says = f"{row.tool} happened, although {row.step} is {status}"
            claims.append(Claim(says, holds=True, record=f"done {row.business_key}"))
    return claims


def _is_result(row: EffectRow, output: str | None) -> bool:
    """Of an effect whose run was deleted the ledger may know the state alone."""
    return row.output == output or (row.is_buried and row.output is None)


def _claim_of_list(session: Session, step: Step, seen: StepView) -> Claim:
    """Hold a step over a list against the effect of each element, in their order."""
    tried = {each.started.element: each for each in _tried(session.view, step.id)}
    outputs = session.load(seen.output) if seen.output else None
    count = len(outputs) if isinstance(outputs, list) else 0
    keys = [
        each.ended.effect_key if (each := tried.get(at + 1)) and each.ended else None
        for at in range(count)
    ]
    rows = [session.journal.ledger.get(key) if key else None for key in keys]
    done = sum(row is not None and row.state == "done" for row in rows)
    says = f"{step.id} {step.tool} is done for {count} elements"
    holds = isinstance(outputs, list) and all(
        row is not None and row.state == "done" and _gave(session, row, output)
        for row, output in zip(rows, outputs, strict=True)
    )
    return Claim(says, holds=holds, record=f"{done} of {count} done")


def _gave(session: Session, row: EffectRow, output: Json) -> bool:
    if row.output is None:
        return row.is_buried
    return session.load(row.output) == output


def _tried(view: RunView, step: str) -> tuple[AttemptView, ...]:
    return newest(
        view.attempts, (key for key, each in view.attempts.items() if each.started.step == step)
    )


def _effect_key(view: RunView, step: str) -> str | None:
    keys = [
        each.ended.effect_key
        for each in view.attempts.values()
        if each.started.step == step and each.ended is not None and each.ended.effect_key
    ]
    return keys[-1] if keys else None


def report_of(
    session: Session,
    plan: Plan | None,
    ending: Ending,
    claims: list[Claim],
    effects: Sequence[EffectRow],
    candidates: Sequence[Candidate] = (),
) -> dict[str, Json]:
    """Gather everything that a reader of the run asks for, as JSON.

    Args:
        session: The run.
        plan: Its current version; None: there is none.
        ending: How it ended.
        claims: From `claims_of`.
        effects: Its rows of the ledger.
        candidates: Of a run that did not complete: what stands, and how it could be undone.
    """
    view = session.view
    run = session.run
    return {
        "run_id": run.run_id,
        "goal_id": run.goal_id,
        "goal": view.goal,
        "agent": run.agent,
        "principal": run.principal.principal,
        "ending": ending.ending,
        "verdict": ending.verdict,
        "why": ending.why,
        "plan_versions": list(view.plans),
        "planner": view.plans[1].author.model_dump(mode="json") if view.plans else None,
        "plan_diffs": _diffs(session),
        "steps": _steps(view, plan),
        "effects": [
            {
                "effect_key": row.effect_key,
                "business_key": row.business_key,
                "step": row.step,
                "tool": row.tool,
                "state": row.state,
                "operation_id": row.operation_id,
                "business_state": row.business_state,
            }
            for row in effects
        ],
        "done_effects": [row.business_key for row in effects if row.state == "done"],
        "compensation_candidates": [each.shown() for each in candidates],
        "follows": view.cause.model_dump(mode="json") if view.cause else None,
        "goal_revised": view.revised.model_dump(mode="json") if view.revised else None,
        "verified": [_verdict(each) for each in view.goal_verified.verdicts]
        if view.goal_verified
        else [],
        "reflections": [each.model_dump(mode="json") for each in view.reflections],
        "decisions": [
            {"question": key, "decision": each.decision, "by": each.by, "comment": each.comment}
            for key, each in view.decisions.items()
        ],
        "changed_by_people": list(changed_by_people(session)),
        "claims": [claim.shown() for claim in claims],
        "stopped": _stopped(view, plan),
        "limits_raised": [each.model_dump(mode="json") for each in view.raised],
        "weighed": [each.model_dump(mode="json") for each in view.reestimated],
        **_cost(view),
    }


def _stopped(view: RunView, plan: Plan | None) -> dict[str, Json] | None:
    """Say which limit stopped the run, what is done, what is not, and what to do."""
    stop = view.stopped
    if stop is None:
        return None
    every = [step.id for step in plan.steps] if plan else []
    status = {step: seen.status for step, seen in view.steps.items()}
    done = [step for step in every if status.get(step) in _ENDED]
    return {
        "limit": stop.limit,
        "spent": stop.spent,
        "needs": stop.needs,
        "allowed": stop.allowed,
        "step": stop.step,
        "done": list(done),
        "not_done": [step for step in every if step not in done],
        "what_to_do": stop.hint.replace(" RUN ", f" {view.run_id} "),
    }


def _diffs(session: Session) -> list[Json]:
    return [
        {"diff": _shown(session, each.diff), "trigger": each.trigger}
        for each in session.view.plans.values()
        if each.diff is not None
    ]


def _shown(session: Session, ref: str) -> Json:
    """Return an artifact; of a damaged one, that it is: a report is about the rest as well."""
    try:
        return session.load(ref)
    except Damaged as exc:
        return {"damaged": str(exc)}


def _steps(view: RunView, plan: Plan | None) -> list[Json]:
    rows: list[Json] = []
    for step in plan.steps if plan else ():
        seen = view.steps.get(step.id)
        tried = [each for each in view.attempts.values() if each.started.step == step.id]
        shown = [ref for each in tried if each.ended is not None for ref in each.ended.observed]
        rows.append(
            {
                "step": step.id,
                "capability": step.capability,
                "status": seen.status if seen else "pending",
                "attempts": len(tried),
                "seconds": round(sum(each.ended.latency_s for each in tried if each.ended), 4),
                "evidence": list(dict.fromkeys(shown)),
                "checks": [_verdict(each) for each in view.checks(step.id)],
                "why": seen.why if seen else "",
            }
        )
    return rows


def _verdict(verdict: Verdict) -> dict[str, Json]:
    return {
        "check": verdict.check_id,
        "says": verdict.says,
        "level": verdict.level,
        "claim": verdict.claim,
        "evidence": [each.ref for each in verdict.evidence],
        "why": verdict.why,
    }


def _cost(view: RunView) -> dict[str, Json]:
    """Return what the run was said to take, and took; an unknown price says so."""
    said = cost_of(view)
    estimate, actual = said["estimate"], said["actual"]
    return {"estimate": _worded(estimate or {}), "actual": _worded(actual)}


def _worded(value: Json) -> Json:
    if isinstance(value, Mapping):
        return {name: _worded(each) for name, each in value.items()}
    return "unknown" if value is None else value
