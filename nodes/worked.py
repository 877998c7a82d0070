"""How long a run has worked before now, whoever owned it. Waiting for people is not counted."""

from __future__ import annotations

from collections.abc import Iterable

from plangate.journal.attempts import AttemptEnded, AttemptStarted
from plangate.journal.events import Entry
from plangate.journal.session import Session
from plangate.plan.value.plan import Budget, Plan


def worked_before_s(session: Session, plan: Plan, limits: Budget) -> float:
    """Return the seconds of earlier passes; 0 where neither a limit nor a rule asks for them."""
    rules = (*plan.abort_conditions, *plan.replan_conditions)
    asked = any("elapsed_s" in each.rule for each in rules)
    timed = asked or limits.max_seconds is not None
    if not timed or not session.view.attempts:
        return 0.0
    return worked_s(session.journal.log.read(session.run.run_id))


def worked_s(entries: Iterable[Entry]) -> float:
    """Return for how many seconds at least one attempt was under way.

    An attempt whose process died counts up to the last that is known of that process.
    """
    total, began, under_way, last = 0.0, None, set[str](), None
    for entry in entries:
        event = entry.event
        if isinstance(event, AttemptStarted):
            began = entry.at if not under_way else began
            under_way.add(event.attempt_id)
        elif isinstance(event, AttemptEnded) and event.attempt_id in under_way:
            under_way.remove(event.attempt_id)
            if not under_way and began is not None:
                total += max(0.0, (entry.at - began).total_seconds())
        elif event.type == "run_resumed":
            if under_way and began is not None and last is not None:
                total += max(0.0, (last - began).total_seconds())
            under_way.clear()
        last = entry.at
    return total
