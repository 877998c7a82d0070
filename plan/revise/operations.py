"""What a patch may say: operations on the steps of one version, and what they rest on."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from plangate.plan.value.frozen import Args, Frozen, FrozenMap
from plangate.plan.value.step import Check, Line, Step, StepId


class Keep(Frozen):
    """Says that a step stays; a patch that also changes it contradicts itself."""

    op: Literal["keep"] = "keep"
    step: StepId


class Update(Frozen):
    """Changes fields of a step that stays. None leaves a field as it is."""

    op: Literal["update"] = "update"
    step: StepId
    args: Args | None = None
    """Arguments to set; the others stay."""

    success: tuple[Check, ...] | None = None
    required_facts: tuple[Line, ...] | None = None


class Replace(Frozen):
    """Puts one or more steps in place of one."""

    op: Literal["replace"] = "replace"
    step: StepId
    steps: Annotated[tuple[Step, ...], Field(min_length=1)]
    references: FrozenMap[str] = Field(default_factory=dict, validate_default=True)
    """By dotted reference into the old step, the new one; see `Rewriting`."""


class Insert(Frozen):
    """Adds steps that take nobody's place."""

    op: Literal["insert"] = "insert"
    steps: Annotated[tuple[Step, ...], Field(min_length=1)]
    before: tuple[StepId, ...] = ()
    """Steps of the plan that wait for the last of the new ones from now on."""


class Reorder(Frozen):
    """Changes what a step waits for beside the data that it reads."""

    op: Literal["reorder"] = "reorder"
    step: StepId
    after: tuple[StepId, ...]
    """All of them; new steps may be among them."""


class Invalidate(Frozen):
    """Says that a result no longer counts, so that the step runs again."""

    op: Literal["invalidate"] = "invalidate"
    step: StepId


class Stop(Frozen):
    """No next version: a person decides, or the run ends."""

    op: Literal["stop"] = "stop"
    reason: Line


Operation: TypeAlias = Annotated[
    Keep | Update | Replace | Insert | Reorder | Invalidate | Stop, Field(discriminator="op")
]


class Patch(Frozen):
    """Operations on one version, with what they rest on."""

    operations: tuple[Operation, ...]
    reasons: tuple[Line, ...] = ()
    """References, as `error://logistics_record_not_found`."""

    evidence: tuple[Line, ...] = ()

    @property
    def stops(self) -> str | None:
        """The reason of the first `Stop`, or None."""
        return next((op.reason for op in self.operations if isinstance(op, Stop)), None)
