"""Where one step and one attempt are: the small values that a run's view is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from plangate.journal.attempts import AttemptEnded, AttemptStarted
    from plangate.journal.reference import Ref
    from plangate.plan.outcome import Outcome, StepStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class StepView:
    """Where a step of the current plan version is."""

    step: str
    status: StepStatus = "pending"
    output: Ref | None = None
    outcome: Outcome | None = None
    """None while the step has not ended."""

    error_code: str = ""
    why: str = ""
    stand_in: str = ""
    """For `handed_over`: the step that took over."""

    gaps: tuple[str, ...] = ()
    """Predecessors that were not done when it was released."""

    attempts: tuple[str, ...] = ()
    """Ids, oldest first; for a carried step those of the version it ran in."""

    plan_version: int
    """Version in which it got where it is; lower than the current one if it was carried."""


@dataclass(frozen=True, slots=True)
class AttemptView:
    """One try of a step, of any plan version."""

    started: AttemptStarted
    ended: AttemptEnded | None = None
    ended_seq: int = 0
    """Number of the event that ended it; tells what a decision could rest on."""

    answered: bool = False
    """Of a try that asks a model: True once the call is on the record with what it cost."""

    @property
    def unit(self) -> str:
        """What is tried: the step, or one element of the list that it runs over."""
        return unit_of(self.started.step, self.started.element)


def unit_of(step: str, element: int | None) -> str:
    """Name what an attempt tries: `S3`, or `S3.2` for the second element of its list."""
    return step if element is None else f"{step}.{element}"


def newest(seen: Mapping[str, AttemptView], ids: Iterable[str]) -> tuple[AttemptView, ...]:
    """Return the newest of some attempts: one, or of a step over a list one for each element."""
    last = {seen[each].unit: seen[each] for each in ids if each in seen}
    return tuple(sorted(last.values(), key=lambda each: each.started.element or 0))
