"""How a run ended, read off its log. Pure. Nothing defaults to success."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from plangate.journal.events import TriggerFired
from plangate.journal.questions import StopAsked
from plangate.journal.view import RunView
from plangate.plan.outcome import Says


@dataclass(frozen=True, slots=True)
class Ending:
    """Three facts that are never mixed: that it ended, how, and what is verified."""

    ending: Literal[
        "completed", "declined", "rejected", "aborted", "failed", "cancelled", "stopped"
    ]
    """`stopped` is no end: the run can be resumed."""

    verdict: Says
    why: str = ""


def ending_of(view: RunView) -> Ending:
    """Judge the state in which nothing more will be done."""
    if view.revised is not None:
        return Ending("cancelled", "fail", f"the goal was changed; see {view.revised.run_id}")
    if view.cancelled is not None:
        return Ending("cancelled", "fail", _cancellation(view.cancelled))
    return _of_itself(view)


def _of_itself(view: RunView) -> Ending:
    if view.stopped is not None:
        stop = view.stopped
        needs = f", {stop.needs} more needed" if stop.needs else ""
        why = f"{stop.limit}: {stop.spent} of {stop.allowed} spent and reserved{needs}"
        return Ending("stopped", "unknown", why)
    checked = view.validated.get(view.version)
    if checked is None or not checked.valid:
        return Ending("failed", "fail", _issues(view))
    if checked.content_hash in view.rejected:
        return Ending("rejected", "fail", _rejection(view))
    if view.goal_verified is not None and view.goal_verified.says == "pass":
        return Ending("completed", "pass")
    return _after(view.triggers[-1]) if view.triggers else _UNJUDGED


_UNJUDGED = Ending("failed", "unknown", "it ended without a verdict")
_UNSURE = frozenset({"effect_unknown", "verdict_unknown", "goal_unknown"})


def _after(fired: TriggerFired) -> Ending:
    why = f"{fired.code}: {fired.says}"
    if fired.kind == "declined":
        return Ending("declined", "fail", why)
    verdict: Says = "unknown" if fired.kind in _UNSURE else "fail"
    return Ending("aborted" if fired.kind == "abort" else "failed", verdict, f"{fired.kind} {why}")


def _cancellation(asked: StopAsked) -> str:
    return f"cancelled by {asked.by}" + (f": {asked.reason}" if asked.reason else "")


def _issues(view: RunView) -> str:
    checked = view.validated.get(view.version)
    if checked is None:
        return "no plan was made"
    errors = [each for each in checked.issues if each.severity == "error"]
    return "; ".join(f"{each.code} {each.step or 'plan'}: {each.says}" for each in errors[:5])


def _rejection(view: RunView) -> str:
    for decision in reversed(view.decisions.values()):
        if decision.decision == "reject":
            return f"rejected by {decision.by}" + (
                f": {decision.comment}" if decision.comment else ""
            )
    return "rejected"
