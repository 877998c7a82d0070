"""What a reference to a step reads: its own result, or that of the step which stood in for it.

Who stood in is read off the plan by how the step ended, so that it is still known after a repair
put another stand-in in its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from plangate.plan.joins import route_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from plangate.journal.progress import StepView
    from plangate.journal.reference import Ref
    from plangate.journal.view import RunView
    from plangate.plan.value.frozen import Json
    from plangate.plan.value.plan import Plan
    from plangate.plan.value.step import Step


class Outputs(Mapping[str, "Json"]):
    """Outputs of finished steps, and of their stand-ins; a step without one is absent.

    Args:
        plan: The plan that is run.
        view: Gives the run as it is at this moment.
        load: Reads an artifact of the journal.
    """

    def __init__(
        self, plan: Plan, view: Callable[[], RunView], load: Callable[[str], Json]
    ) -> None:
        self._plan, self._view, self._load = plan, view, load
        self._loaded: dict[str, Json] = {}

    def __getitem__(self, step_id: str) -> Json:
        if step_id not in self._loaded:
            output = self._ref(step_id)
            if output is None:
                raise KeyError(step_id)
            self._loaded[step_id] = self._load(output)
        return self._loaded[step_id]

    def __contains__(self, step_id: object) -> bool:
        return self._ref(str(step_id)) is not None

    def __iter__(self) -> Iterator[str]:
        return (key for key in self._view().steps if key in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def read_by(self, step: Step) -> dict[str, Json]:
        """Return what references of a step may read, by head."""
        known: dict[str, Json] = {"inputs": self._plan.inputs}
        return known | {need: self[need] for need in step.data_needs if need in self}

    def _ref(self, step_id: str) -> Ref | None:
        seen = source(self._plan, self._view(), step_id)
        return None if seen is None else seen.output


def source(plan: Plan, view: RunView, step_id: str) -> StepView | None:
    """Return the step whose result counts as that of a step: itself, or the last who stood in."""
    seen = view.steps.get(step_id)
    while seen is not None and seen.status == "handed_over":
        seen = view.steps.get(stand_in_of(plan, seen))
    return seen


def stand_in_of(plan: Plan, seen: StepView) -> str:
    """Return the step that took over from one that ended `handed_over`; empty: none did."""
    step = plan.by_id.get(seen.step)
    if step is None or seen.status != "handed_over" or seen.outcome is None:
        return ""
    route = route_of(step, seen.error_code, seen.outcome)
    return (route.step or "") if route is not None else ""
