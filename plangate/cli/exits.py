"""From where a run stands to the exit code of the command that brought it there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plangate.plan.errors import (
    BudgetExceeded,
    Denied,
    EffectUnknown,
    PlanRejected,
    WaitingForPerson,
)

if TYPE_CHECKING:
    from plangate.journal.view import RunView

OK = 0
DRAINED = 143
"""As shells and supervisors have it: 128 + SIGTERM. The run can be resumed."""


def exit_code(view: RunView) -> int:
    """Return 0 only for a run that ended with its goal verified."""
    if view.ended is None and view.drained is not None:
        return DRAINED
    if view.ended is None:
        return WaitingForPerson.exit_code if view.pending else BudgetExceeded.exit_code
    if (view.ended.ending, view.ended.verdict) == ("completed", "pass"):
        return OK
    checked = view.validated.get(view.version)
    if checked is None or not checked.valid:
        return PlanRejected.exit_code
    return EffectUnknown.exit_code if view.ended.verdict == "unknown" else Denied.exit_code
