"""The plan as a model writes it: flat, bounded, and without a free key anywhere.

A class beside `Plan`, since a provider's strict mode allows no mappings, no defaults and no tagged
unions. No field has a default: what does not apply is null.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from plangate.plan.outcome import Level
from plangate.plan.value.frozen import Frozen
from plangate.plan.value.step import Line, Name, Rule, StepId

Id: TypeAlias = Annotated[StepId, Field(max_length=40)]
Code: TypeAlias = Annotated[Name, Field(max_length=80)]
Short: TypeAlias = Annotated[str, Field(max_length=120)]


class DraftArg(Frozen):
    """One argument, from exactly one source."""

    name: Short
    source: Literal["literal", "input", "step"]
    value_json: Annotated[str, Field(max_length=4000)] | None
    """For `literal`: JSON text."""

    input: Short | None
    """For `input`: its name."""

    step: Short | None
    """For `step`: its id."""

    path: Annotated[str, Field(max_length=200)] | None
    """For `input` and `step`: dotted names below it; null for the whole value."""


DraftArgs: TypeAlias = Annotated[tuple[DraftArg, ...], Field(max_length=30)]


class DraftCheck(Frozen):
    """How a step or the goal is verified."""

    claim: Annotated[str, Field(min_length=1, max_length=500)]
    level: Level
    rule: Rule | None
    tool: Short | None
    args: DraftArgs


class DraftQuestion(Frozen):
    """What a human step asks, and whom."""

    audience: Code
    type: Literal["confirm", "choice", "text", "number"]
    text: Annotated[str, Field(min_length=1, max_length=2000)]
    options: Annotated[tuple[Line, ...], Field(max_length=20)]
    details: DraftArgs


class DraftStep(Frozen):
    """One step."""

    id: Id
    kind: Literal["tool", "model", "human"]
    tool: Short | None
    objective: Line
    args: DraftArgs
    after: Annotated[tuple[Id, ...], Field(max_length=60)]
    when: Rule | None
    checks: Annotated[tuple[DraftCheck, ...], Field(max_length=10)]
    question: DraftQuestion | None
    output_json: Annotated[str, Field(max_length=4000)] | None
    """For `model`: the JSON Schema of its answer, as text; a free schema has no strict form."""

    expected_output: Line


class DraftCondition(Frozen):
    """When to stop the run."""

    text: Line
    rule: Rule


class DraftRejected(Frozen):
    """An option that was not taken."""

    option: Line
    reason_code: Code


class DraftNotes(Frozen):
    """The main choice, as codes."""

    decision_code: Code
    rejected: Annotated[tuple[DraftRejected, ...], Field(max_length=10)]


class PlanDraft(Frozen):
    """A plan towards one goal."""

    goal: Annotated[str, Field(max_length=1000)]
    """The goal as the model understood it; the plan keeps the user's own words."""

    steps: Annotated[tuple[DraftStep, ...], Field(max_length=60)]
    success_criteria: Annotated[tuple[DraftCheck, ...], Field(max_length=20)]
    abort_conditions: Annotated[tuple[DraftCondition, ...], Field(max_length=10)]
    assumptions: Annotated[tuple[Line, ...], Field(max_length=20)]
    notes: DraftNotes
