"""The single rules of a policy file, each a value that says whom and what it is about.

A rule names a whole tool or `*` for all, never a part of a name and never argument text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from pydantic import Field, model_validator

from plangate.plan.catalog import Effect, Labels, ToolSpec
from plangate.plan.value.amounts import Count, Usd
from plangate.plan.value.frozen import Frozen
from plangate.plan.value.step import Line, Name

if TYPE_CHECKING:
    from plangate.plan.facts import Rights

Tier: TypeAlias = Literal["auto", "selective", "full"]
"""How much a person sees before a plan runs: nothing, the risky steps, all of it."""

Tool: TypeAlias = Annotated[str, Field(pattern=r"^(\*|[A-Za-z][A-Za-z0-9_.-]{0,79})$")]
Capability: TypeAlias = Annotated[str, Field(pattern=r"^(human:)?[A-Za-z][A-Za-z0-9_.-]{0,79}$")]
"""A tool, or `human:<audience>` for a step that asks a person."""


class ToolRule(Frozen):
    """One `[[allow]]` or `[[deny]]`: lets principals use a tool, or takes it from them."""

    tool: Tool
    """A whole name, or `*` for all."""

    roles: tuple[Name, ...] = ()
    """The rule holds for a principal with any of these; empty: for everyone."""

    tenants: tuple[Line, ...] = ()
    """The rule holds for a principal of one of these; empty: of any, and of none."""

    effects: tuple[Effect, ...] = ()
    """The rule holds for tools with one of these effects; empty: for all."""

    reason: Line = ""

    def matches(self, spec: ToolSpec, rights: Rights) -> bool:
        """True if the rule speaks about this tool and this principal."""
        return self.speaks_of(spec, rights) and (
            not self.tenants or (rights.tenant is not None and rights.tenant in self.tenants)
        )

    def speaks_of(self, spec: ToolSpec, rights: Rights) -> bool:
        """True if the rule would match the principal in one of its tenants."""
        return (
            self.tool in ("*", spec.name)
            and (not self.roles or not set(self.roles).isdisjoint(rights.roles))
            and (not self.effects or spec.effect in self.effects)
        )


class Require(Frozen):
    """What must stand around a step in every plan."""

    before: Capability
    """The protected capability."""

    ancestors: tuple[Capability, ...] = ()
    """Each must settle before it."""

    followed_by: tuple[Capability, ...] = ()
    """Each must come after it."""

    reason: Line = ""

    @model_validator(mode="after")
    def _demands_something(self) -> Require:
        if not self.ancestors and not self.followed_by:
            raise ValueError("names neither ancestors nor followed_by, so it would demand nothing")
        return self


class Threshold(Frozen):
    """From which amount on a person must agree."""

    tool: Name
    arg: Annotated[str, Field(min_length=1, max_length=80)]
    over: Annotated[int | float, Field(allow_inf_nan=False)]
    """The largest value that needs nobody."""

    tier: Literal["selective", "full"] = "selective"
    reason: Line = ""


class Tiers(Frozen):
    """When a plan may run without a person."""

    auto_usd: Usd | None = None
    """The largest p95 cost that needs nobody; None: cost alone never asks."""

    first_time: Tier = "selective"
    """The least tier of a plan with effects whose type never succeeded before."""

    history_days: int = Field(default=180, ge=1, le=36_500)
    """How long a verified run of a type counts as a success of it."""

    full_external: int = Field(default=2, ge=1)
    """From this many different external tools with effects on, the whole plan is reviewed."""


class Autonomy(Frozen):
    """What no plan may go beyond, whoever approves it."""

    max_effect: Effect = Effect.IRREVERSIBLE
    """The worst effect that a step may have."""

    max_steps: Annotated[Count, Field(ge=1)] | None = None
    max_usd: Usd | None = None
    """The largest p95 cost; a plan whose cost is not known is over it."""


class VerifierPolicy(Frozen):
    """`[verifier]`: what a judge's word counts for, and who decides where it does not."""

    pass_threshold: float = Field(default=0.8, ge=0.5, le=1)
    """How sure a judge (L3) must be; below it the check is unknown, and a person decides."""

    max_rechecks: int = Field(default=1, ge=0, le=3)
    """How often a judge is asked again whose answer cannot be read or cites what it was not shown.
    A word that can be read is never asked for twice."""

    other_model: bool = True
    """True: no model judges what it wrote itself."""

    fail_open: Literal[False] = False
    """Unknown is never pass; written down so that nobody looks for the switch."""

    roles: tuple[Name, ...] = ()
    """Who may decide a check (L4); empty: everyone who may approve."""


class Quorum(Frozen):
    """How many different people must approve a plan that uses a tool."""

    tool: Tool
    n: int = Field(ge=2, le=20)
    roles: tuple[Name, ...] = ()
    """Who counts; empty: everyone who may approve."""

    reason: Line = ""


class LabelRule(Labels):
    """Raises the labels of what a tool returns; what the tool's contract says is never lowered."""

    tool: Name
    field: Annotated[str, Field(max_length=200)] = ""
    """Dotted path of the field that is meant; empty: all of the output."""

    reason: Line = ""
