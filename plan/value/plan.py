"""A plan is a value: never edited, only revised into the next version."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from plangate.plan.outcome import Level
from plangate.plan.value.amounts import Count, Moment, Seconds, Usd
from plangate.plan.value.frozen import Args, Frozen, digest
from plangate.plan.value.step import Check, Line, Name, Rule, Step

_UNSAID = frozenset(
    {"goal_id", "author", "version", "parent_hash", "notes", "catalog_hash", "policy_hash"}
)
Text: TypeAlias = Annotated[str, Field(min_length=1, max_length=4000)]


class Constraint(Frozen):
    """A rule that the whole plan must keep. Dropping one is a boundary change."""

    id: Name
    text: Text
    source: Literal["user", "policy", "template"]
    rule: Rule | None = None
    """CEL over `inputs` and `steps`, where the constraint can be computed."""

    excludes: tuple[Line, ...] = ()
    """What is out of scope."""


class Assumption(Frozen):
    """Something taken for true while planning."""

    id: Name
    statement: Line
    source: Literal["user", "tool", "policy", "model"]
    evidence: tuple[Line, ...] = ()
    status: Literal["unverified", "verified", "invalidated"] = "unverified"
    """As it was when the plan was written; what the run found out is the journal's."""

    rule: Rule | None = None
    """CEL over `steps`, `inputs`: true verifies it, false proves it false; None: nobody looks."""

    invalidates: tuple[Name, ...] = ()
    """Steps that fall if it proves false."""


class Condition(Frozen):
    """When to abort or to replan, checked while steps run."""

    id: Name
    text: Line
    rule: Rule
    """CEL over `run`, `steps`, `inputs`, `facts`."""


class Budget(Frozen):
    """Limits for one run; None means no limit of that kind."""

    max_usd: Usd | None = None
    max_tokens: Count | None = None
    max_seconds: Seconds | None = None
    """From the start of execution, waiting for people not counted."""

    max_model_calls: Count | None = None
    max_tool_calls: Count | None = None
    max_replans: Count = 3
    deadline: Moment | None = None
    min_level: Level = "L1"
    """The least level of check that each success criterion must have (Q_min)."""


class Author(Frozen):
    """Who wrote this version, so that a difference can be traced to a prompt or a model."""

    kind: Literal["planner", "template", "human", "replanner"]
    name: Line = ""
    """Template id, model name or person."""

    prompt_sha256: Line = ""


class Rejected(Frozen):
    """An option that was looked at and not taken."""

    option: Line
    reason_code: Name


class Note(Frozen):
    """A structured record of a choice. Free reasoning is never required or stored."""

    decision_code: Name
    selected_capability: Line = ""
    assumption_ids: tuple[Name, ...] = ()
    evidence_refs: tuple[Line, ...] = ()
    rejected: tuple[Rejected, ...] = ()


class Plan(Frozen):
    """A set of steps towards one goal, and when that goal counts as reached."""

    schema_version: Literal[1] = 1
    goal_id: Annotated[str, Field(min_length=1, max_length=200)]
    """Identity of the goal: the caller's key, else new per run. Scopes effect keys."""

    goal: Text
    task_type: Name
    """Template id, or a signature of tools and effects; never model text."""

    inputs: Args = Field(default_factory=dict, validate_default=True)
    """What the user gave; the only source of "user" values."""

    input_schema: Args | None = None
    """JSON Schema of `inputs`; None: read off the values."""

    constraints: tuple[Constraint, ...] = ()
    assumptions: tuple[Assumption, ...] = ()
    steps: tuple[Step, ...]
    success_criteria: tuple[Check, ...] = ()
    """Rules see `steps.<id>.output` and `observed`."""

    abort_conditions: tuple[Condition, ...] = ()
    replan_conditions: tuple[Condition, ...] = ()
    budget: Budget = Field(default_factory=Budget)
    author: Author
    version: int = Field(default=1, ge=1)
    parent_hash: str | None = None
    catalog_hash: str = ""
    policy_hash: str = ""
    notes: tuple[Note, ...] = ()

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 over what the plan says, not over where it came from.

        Left out: author, version, parent, notes, the ids of goal, catalog and policy (an approval
        binds those beside this hash), and each field at its default, so that a later version of
        this class with a new optional field gives old plans their old hash.
        """
        said = self.model_dump(mode="json", exclude=set(_UNSAID), exclude_defaults=True)
        return digest(said)

    @cached_property
    def by_id(self) -> dict[str, Step]:
        """Steps by id, in order of the plan; of a doubled id (an issue) the first."""
        found: dict[str, Step] = {}
        for step in self.steps:
            found.setdefault(step.id, step)
        return found
