"""Every error this package raises on purpose, and the exit code each one ends a command with.

PlangateError
├── ConfigError       the caller set something up wrong               exit 2
│   └── Unreadable    a record is in a form that this code cannot read
├── PlanRejected      validation found issues in a plan               exit 3
├── BoundaryGrew      a new plan may do more than the old one         exit 4
├── ReplayDiffers     today's code would act otherwise than the log   exit 5
├── EffectUnknown     an effect may or may not have happened          exit 6
├── JournalError      the journal refused or lost a record            exit 7
│   ├── Conflict      somebody else wrote first (compare and swap)
│   ├── Damaged       a record is missing, or not as it was written
│   ├── LeaseLost     this process no longer owns the run
│   └── RunBusy       another owner is working on the run now
├── ModelFailed       a model could not give a usable answer          exit 8
├── Denied            a rule or a person said no                      exit 9
├── BudgetExceeded    the next act would pass a limit                 exit 10
└── WaitingForPerson  the run has a question and cannot go on         exit 11

Exit code 0 is success and 1 is a bug (a traceback). Messages hold ids and hashes, never payloads,
so they are safe to log. A tool that wants to report a failure raises `plangate.tools.ToolFailed`,
which never reaches the caller. A broken invariant of ours is an `assert`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plangate.plan.issue import Issue


class PlangateError(Exception):
    """Base of all expected failures.

    Args:
        what: One sentence: what is wrong with which thing.
        hint: What the reader can do next, as an imperative.
    """

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1

    def __init__(self, what: str, *, hint: str = "") -> None:
        super().__init__(what)
        self.hint = hint


class ConfigError(PlangateError):
    """The caller set something up wrong."""

    code = "config"
    exit_code = 2


class Unreadable(ConfigError):
    """A record was written by other code, in a form that this one cannot read."""

    code = "unreadable"


class PlanRejected(PlangateError):
    """Validation found issues in a plan."""

    code = "plan_rejected"
    exit_code = 3

    def __init__(self, issues: Sequence[Issue], *, hint: str = "") -> None:
        count = len(issues)
        super().__init__(f"plan rejected with {count} issue{'s' if count != 1 else ''}", hint=hint)
        self.issues = tuple(issues)


class BoundaryGrew(PlangateError):
    """A new plan may do more than the one it replaces."""

    code = "boundary_grew"
    exit_code = 4


class ReplayDiffers(PlangateError):
    """Today's code would act otherwise than the log says."""

    code = "replay_differs"
    exit_code = 5


class EffectUnknown(PlangateError):
    """An effect may or may not have happened; only the outside world or a person can tell."""

    code = "effect_unknown"
    exit_code = 6


class JournalError(PlangateError):
    """The journal refused or lost a record."""

    code = "journal"
    exit_code = 7


class Conflict(JournalError):
    """Somebody else wrote first."""

    code = "conflict"


class Damaged(JournalError):
    """A record is missing, or is not as it was written."""

    code = "damaged"


class LeaseLost(JournalError):
    """This process no longer owns the run."""

    code = "lease_lost"


class RunBusy(JournalError):
    """Another owner is working on the run now."""

    code = "run_busy"


class ModelFailed(PlangateError):
    """A model could not give a usable answer."""

    code = "model_failed"
    exit_code = 8


class Denied(PlangateError):
    """A rule or a person said no."""

    code = "denied"
    exit_code = 9


class BudgetExceeded(PlangateError):
    """The next act would pass a limit.

    Args:
        what: As for every error.
        hint: As for every error.
        limit: Name of the limit, as `max_usd`.
        spent: What is spent and reserved already, as text.
        allowed: The limit itself, as text.
        needs: What the next act would take, as text.
    """

    code = "budget"
    exit_code = 10

    def __init__(
        self,
        what: str,
        *,
        hint: str = "",
        limit: str = "",
        spent: str = "",
        allowed: str = "",
        needs: str = "",
    ) -> None:
        super().__init__(what, hint=hint)
        self.limit = limit
        self.spent = spent
        self.allowed = allowed
        self.needs = needs


class WaitingForPerson(PlangateError):
    """The run has a question and cannot go on without an answer."""

    code = "waiting"
    exit_code = 11
