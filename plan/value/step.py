"""What one step of a plan says. A step never says what happened; that is the journal's."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, JsonValue

from plangate.plan.outcome import Level
from plangate.plan.value.autonomy import Autonomy
from plangate.plan.value.frozen import Args, Frozen
from plangate.plan.value.refs import Ref, refs_in

StepId: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,39}$")]
"""Unique in its plan; kept by later versions where the step means the same."""

Name: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,79}$")]
Rule: TypeAlias = Annotated[str, Field(min_length=1, max_length=500)]
"""A condition in CEL; see `plangate.plan.shape.cel`."""

Line: TypeAlias = Annotated[str, Field(max_length=500)]
Kind: TypeAlias = Literal["tool", "model", "agent", "human", "milestone"]
Action: TypeAlias = Literal["retry", "fallback", "replan", "ask", "skip", "abort", "compensate"]


class Check(Frozen):
    """How a step or a goal is verified. Declared here; run in `plangate.engine.checks`."""

    id: Name
    """Unique in its plan."""

    level: Level
    claim: Annotated[str, Field(min_length=1, max_length=500)]
    """What is true if the check passes, in words for a person."""

    rule: Rule | None = None
    """CEL over `result` (the step's output), `observed` (what `tool` saw), `inputs`, `steps`."""

    conflict: Rule | None = None
    """CEL over the same. Where it is true the evidence contradicts itself: the check is unknown,
    whatever its rule says, and a person decides."""

    tool: Name | None = None
    """L2: a read-only tool that looks at the world again; its output is `observed`."""

    args: Args = Field(default_factory=dict, validate_default=True)
    """Arguments of `tool`; may refer to the checked step's own output."""


class Route(Frozen):
    """Where a failure goes."""

    on: Annotated[str, Field(min_length=1, max_length=80)]
    """An outcome class (`transient`, `unknown`, ...) or an error code of the tool; codes win."""

    action: Action
    step: StepId | None = None
    """For `fallback` and `compensate`: the step that takes over."""


class Join(Frozen):
    """When a step with several predecessors may start."""

    mode: Literal["all", "any", "at_least", "when"] = "all"
    n: int | None = None
    """For `at_least`: how many predecessors must have succeeded."""

    rule: Rule | None = None
    """For `when`: a CEL condition over `facts` and `steps` ("this set of evidence")."""

    on_failure: Literal["fail", "partial"] = "fail"
    """`partial`: go on with the gaps named."""

    cancel_rest: bool = False
    """Cancel reads that are no longer needed once the join is met."""


class Question(Frozen):
    """What a human step asks, and whom."""

    audience: Name
    """Who answers: `customer`, `operator`, ... The policy names it `human:<audience>`."""

    type: Literal["confirm", "choice", "text", "number"]
    text: Annotated[str, Field(min_length=1, max_length=2000)]
    options: tuple[Line, ...] = ()
    """For `choice`."""

    details: Args = Field(default_factory=dict, validate_default=True)
    """Values to show with the question; may hold references."""


class Declared(Frozen):
    """What a planner claims about a step. Only compared with the tool's contract, never used."""

    side_effect: Line | None = None
    reversible: bool | None = None
    timeout_s: float | None = None
    max_attempts: int | None = None
    estimated_cost: float | None = None
    """USD."""

    seconds: float | None = None
    tokens: int | None = None


class Step(Frozen):
    """One unit of work."""

    id: StepId
    objective: Annotated[str, Field(max_length=500)]
    kind: Kind = "tool"
    tool: Name | None = None
    tool_version: Annotated[str, Field(max_length=80)] | None = None
    """The contract version planned against; another one at run time is version drift."""

    args: Args = Field(default_factory=dict, validate_default=True)
    """Literals and whole-value references; see `plangate.plan.value.refs`."""

    after: tuple[StepId, ...] = ()
    """Order without data: steps that must settle first although none of their output is read."""

    when: Rule | None = None
    """Run only if this holds; false means skipped, not evaluable means unknown."""

    for_each: Annotated[str, Field(max_length=200)] | None = None
    """A reference to a list: the step runs once an element, as `${item}`."""

    max_items: int | None = None
    """The bound of `for_each`; part of what is approved."""

    join: Join = Field(default_factory=Join)
    preconditions: tuple[Rule, ...] = ()
    success: tuple[Check, ...] = ()
    routes: tuple[Route, ...] = ()
    required_facts: tuple[Line, ...] = ()
    approval: Literal["inherit", "always"] = "inherit"
    expected_output: Line = ""
    claims: tuple[Line, ...] = ()
    """Resource keys written beyond those of the tool contract."""

    compensation: StepId | None = None
    question: Question | None = None
    """For `human`."""

    output: Args | None = None
    """For `model` and `agent`: the JSON Schema that the output must fit."""

    autonomy: Autonomy | None = None
    """For `agent`: what its model may do."""

    declared: Declared | None = None

    @property
    def capability(self) -> str:
        """What policy rules call this step: the tool's name, or `human:<audience>`."""
        if self.question is not None:
            return f"human:{self.question.audience}"
        return self.tool or self.kind

    @property
    def refs(self) -> tuple[Ref, ...]:
        """Each reference that the step reads before it runs, in order of appearance."""
        said: list[JsonValue] = [self.args]  # type: ignore[list-item]
        if self.for_each is not None:
            said.append(self.for_each)
        if self.question is not None:
            said.append(self.question.details)  # type: ignore[arg-type]
        return tuple(refs_in(said))

    @cached_property
    def data_needs(self) -> frozenset[str]:
        """Ids of steps whose output this one reads."""
        return frozenset(ref.step for ref in self.refs if ref.step is not None)

    @cached_property
    def needs(self) -> frozenset[str]:
        """Ids of all steps that must settle before this one may start."""
        return frozenset(self.after) | self.data_needs
