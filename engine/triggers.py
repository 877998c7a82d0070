"""When to stop and think: computed from how steps ended, never told by a model. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, TypeAlias

from plangate.plan.spent import passed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from plangate.engine.ended import Ended
    from plangate.journal.spending import Reestimated
    from plangate.journal.view import RunView
    from plangate.plan.errors import BudgetExceeded
    from plangate.plan.value.plan import Budget

Reason: TypeAlias = Literal[
    "done",
    "question",
    "approval",
    "declined",
    "trigger",
    "abort",
    "budget",
    "drained",
    "cancelled",
    "stranded",
]
"""Why the executor returned.

`done` every step ended well · `question` a human step waits · `approval` an acting step needs
an approval · `declined` an expected business "no" · `trigger` a failure to reflect on · `abort` a
route or an abort condition · `budget` a limit · `drained` asked to stop · `cancelled` a person
ended the run · `stranded` steps are left
and none can run, which is never success.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Halt:
    """Why the executor returned, and the step that matters most."""

    reason: Reason
    kind: str = ""
    step: str = ""
    code: str = ""
    says: str = ""
    limit: BudgetExceeded | None = None
    """For `budget`: which limit, and its figures."""


def trigger_of(ended: Ended) -> str:
    """Name the trigger that a step's end fires; empty for an end that needs no thought."""
    if ended.status == "unknown":
        return "effect_unknown" if not ended.code.startswith("check_") else "verdict_unknown"
    if ended.status != "failed" or ended.outcome == "business_rejection":
        return ""
    if ended.code.startswith("check_failed"):
        return "verdict_fail"
    return "tool_gone" if ended.outcome == "denied" else "step_failed"


def halt_of(ends: Sequence[Ended], left: Sequence[str]) -> Halt:
    """Say why nothing more can be released: what a person must know first comes first.

    Args:
        ends: How the steps of this executor pass ended, `waiting` ones included.
        left: Steps that have not ended.
    """
    fired = [(_URGENT.index(kind), each) for each in ends if (kind := trigger_of(each))]
    if fired:
        rank, worst = min(fired, key=lambda each: each[0])
        return _halt("abort" if worst.action == "abort" else "trigger", _URGENT[rank], worst)
    if (refused := _first(ends, _is_declined)) is not None:
        return _halt("declined", "declined", refused)
    if (waits := _first(ends, lambda each: each.status == "waiting")) is not None:
        return _halt("question" if waits.code == "question" else "approval", "person", waits)
    if left:
        return Halt(reason="stranded", step=left[0], says=f"{len(left)} steps can never run")
    return Halt(reason="done")


def halt_of_weight(found: Reestimated, limits: Budget) -> Halt | None:
    """Say what follows from weighing the rest of a plan; None: it goes on."""
    if found.decision == "ask":
        return Halt(reason="trigger", kind="over_plan", code=found.trigger, says=found.says)
    if found.decision == "stop":
        limit = found.says.removeprefix("nothing is left of ").partition(":")[0]
        allowed = str(getattr(limits, limit))
        stop = passed(limit, allowed, found.says.partition(": ")[2], allowed)
        return Halt(reason="budget", says=found.says, limit=stop)
    return None


_URGENT = ("effect_unknown", "verdict_unknown", "tool_gone", "verdict_fail", "step_failed")


def _is_declined(ended: Ended) -> bool:
    return ended.status == "failed" and ended.outcome == "business_rejection"


def _first(ends: Sequence[Ended], wanted: Callable[[Ended], bool]) -> Ended | None:
    return next(filter(wanted, ends), None)


def _halt(reason: Reason, kind: str, ended: Ended) -> Halt:
    return Halt(reason=reason, kind=kind, step=ended.step, code=ended.code, says=ended.why)


MOST_SAME = 2
"""Repairs of one category of failure; where it comes back, another one would change nothing."""

MOST_RISING = 3
"""Model calls in a row, each larger than the one before, without progress."""


def same_failure(view: RunView) -> bool:
    """True if the newest failure is of a category that repairs have answered in vain."""
    if not view.reflections:
        return False
    category = view.reflections[-1].failure_category
    return view.repaired.count(category) >= MOST_SAME


def tokens_rising(view: RunView) -> bool:
    """True if the last rounds took more and more tokens, and got the run no further."""
    last = view.idle_tokens[-MOST_RISING:]
    return len(last) == MOST_RISING and all(a < b for a, b in pairwise(last))
