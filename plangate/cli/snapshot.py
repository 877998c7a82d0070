"""A run at any moment, as one JSON object: the log, folded, and what its references lead to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plangate.plan.errors import Damaged

if TYPE_CHECKING:
    from pydantic import JsonValue

    from plangate.journal.journal import Journal
    from plangate.journal.ledger import EffectRow
    from plangate.journal.questions import (
        DecisionTaken,
        QuestionAsked,
    )
    from plangate.journal.runs import Run
    from plangate.journal.view import RunView
    from plangate.plan.verdict import Verdict

STATE_VERSION = 1
"""Of this object; a field may be added to it, but none changes its meaning."""


def snapshot(journal: Journal, run: Run, view: RunView) -> dict[str, Any]:
    """Return everything that can be asked about a run."""
    effects = journal.ledger.list(run_id=run.run_id)
    return {
        "state_version": STATE_VERSION,
        "run_id": run.run_id,
        "goal_id": run.goal_id,
        "goal": run.goal,
        "agent": run.agent,
        "principal": run.principal.principal,
        "status": run.status,
        "created_at": run.created_at.isoformat(),
        "updated_at": run.updated_at.isoformat(),
        "events": view.seq,
        "fingerprint": _load(journal, view.fingerprint),
        **_plans(journal, view),
        "steps": _steps(view),
        "observations": _observations(view),
        "questions": [_question(view, each) for each in view.questions.values()],
        "effects": [effect_json(row) for row in effects],
        "cause": view.cause.model_dump(mode="json") if view.cause else None,
        "followed_by": [each.model_dump(mode="json") for each in view.followed],
        "goal_revised": view.revised.model_dump(mode="json") if view.revised else None,
        "reflections": [each.model_dump(mode="json") for each in view.reflections],
        "assumptions": [each.model_dump(mode="json") for each in view.assumed.values()],
        "triggers": [each.model_dump(mode="json") for each in view.triggers],
        **_end(journal, view),
    }


def effect_json(row: EffectRow) -> dict[str, Any]:
    """Return a row of the ledger as JSON data."""
    return {
        "effect_key": row.effect_key,
        "business_key": row.business_key,
        "run_id": row.run_id,
        "step": row.step,
        "tool": f"{row.tool}@{row.tool_version}",
        "state": row.state,
        "operation_id": row.operation_id,
        "business_state": row.business_state,
        "error_code": row.error_code,
        "approval": row.approval,
        "created_at": row.created_at.isoformat(),
        "settled_at": row.settled_at.isoformat() if row.settled_at else None,
        "by": row.by,
        "note": row.note,
    }


def _plans(journal: Journal, view: RunView) -> dict[str, Any]:
    checked = view.validated.get(view.version)
    first = view.plans.get(1)
    return {
        "plan_versions": list(view.plans),
        "plans": {
            str(version): {"ref": each.plan, "content_hash": each.content_hash}
            for version, each in view.plans.items()
        },
        "planner": first.author.model_dump(mode="json") if first else None,
        "capability_snapshot": checked.catalog_hash if checked else None,
        "policy_hash": checked.policy_hash if checked else None,
        "tier": checked.tier if checked else None,
        "issues": [each.model_dump(mode="json") for each in checked.issues] if checked else [],
        "plan_diffs": [
            {"diff": _load(journal, each.diff), "trigger": each.trigger}
            for each in view.plans.values()
            if each.diff is not None
        ],
    }


def _steps(view: RunView) -> list[dict[str, Any]]:
    return [
        {
            "step": name,
            "status": seen.status,
            "why": seen.why,
            "error_code": seen.error_code,
            "output": seen.output,
            "attempts": sum(each.started.step == name for each in view.attempts.values()),
            "elements": _elements(view, name),
            "checks": [verdict_json(each) for each in view.checks(name)],
        }
        for name, seen in view.steps.items()
    ]


def _elements(view: RunView, step: str) -> int:
    """Count the elements that a step over a list has tried."""
    tried = (each.started for each in view.attempts.values() if each.started.step == step)
    return len({each.element for each in tried} - {None})


def _observations(view: RunView) -> list[dict[str, Any]]:
    return [
        {
            "ref": f"obs://{name}",
            "step": each.started.step,
            "plan_version": each.started.plan_version,
            "capability": each.started.capability,
            "outcome": each.ended.outcome,
            "observed": list(each.ended.observed),
            "output": each.ended.output,
        }
        for name, each in view.attempts.items()
        if each.ended is not None
    ]


def _question(view: RunView, question: QuestionAsked) -> dict[str, Any]:
    decision: DecisionTaken | None = view.decisions.get(question.question_id)
    return {
        "question_id": question.question_id,
        "kind": question.kind,
        "audience": question.audience,
        "step": question.step,
        "plan_version": question.plan_version,
        "content_hash": question.content_hash,
        "pending": question in view.pending_questions,
        "expires_at": question.expires_at.isoformat() if question.expires_at else None,
        "decision": decision.decision if decision else None,
        "by": decision.by if decision else None,
    }


def _end(journal: Journal, view: RunView) -> dict[str, Any]:
    verdicts = view.goal_verified.verdicts if view.goal_verified else ()
    every = [*verdicts, *(each for found in view.verdicts.values() for each in found)]
    return {
        "verifiers": sorted({each.verifier for each in every}),
        "verified": [verdict_json(each) for each in verdicts],
        "terminal_verdict": view.ended.verdict if view.ended else None,
        "ending": view.ended.ending if view.ended else None,
        "why": view.ended.why if view.ended else "",
        "verified_outcome_ref": view.ended.report if view.ended else None,
        "report": _load(journal, view.ended.report if view.ended else view.partial),
        "limits_raised": [each.model_dump(mode="json") for each in view.raised],
        "weighed": [each.model_dump(mode="json") for each in view.reestimated],
        "spent": {
            "usd": None if view.spent_usd is None else str(view.spent_usd),
            "tokens": view.tokens,
            "model_calls": view.model_calls,
            "tool_calls": view.tool_calls,
        },
    }


def verdict_json(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as JSON data."""
    return verdict.model_dump(mode="json")


def _load(journal: Journal, ref: str | None) -> JsonValue:
    """Read an artifact; of a damaged one it is said, and the rest of the run is shown."""
    try:
        return journal.artifacts.get(ref) if ref else None
    except Damaged as exc:
        return {"damaged": str(exc)}


def run_json(run: Run) -> dict[str, Any]:
    """Return the row of a run as JSON data."""
    return {
        "run_id": run.run_id,
        "goal_id": run.goal_id,
        "goal": run.goal,
        "agent": run.agent,
        "principal": run.principal.principal,
        "status": run.status,
        "ending": run.ending,
        "verdict": run.verdict,
        "created_at": run.created_at.isoformat(),
        "updated_at": run.updated_at.isoformat(),
        "events": run.last_seq,
        "owner": run.owner,
    }
