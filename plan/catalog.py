"""What the rest may know of a tool without being able to call it: its contract.

Validators, policy and scheduler hold a `Catalog`, so they cannot act. Bodies live in
`plangate.tools`.
"""

from __future__ import annotations

from decimal import Decimal
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from pydantic import BeforeValidator, Field, field_validator, model_validator

from plangate.plan.outcome import Outcome
from plangate.plan.value.amounts import Count, Usd
from plangate.plan.value.frozen import Args, Frozen, FrozenMap, digest
from plangate.plan.value.step import Name, Rule

if TYPE_CHECKING:
    from collections.abc import Iterable


class Effect(Enum):
    """The worst that one call can do, not what it usually does. There is no default.

    One table maps the words of plans and papers to it: none → `none`; read → `read`;
    write → `write`; external, irreversible → `irreversible` (and `external=True`).
    """

    NONE = "none"
    """Same arguments, same answer; no input or output."""
    READ = "read"
    """Looks at the world; a repeat costs time or money, no more."""
    WRITE = "write"
    """Changes the world in a way that a declared `undo` or a second write can put right."""
    IRREVERSIBLE = "irreversible"
    """Changes the world for good: a payment, a sent mail, a deletion."""

    @property
    def acts(self) -> bool:
        """True if the outside world will remember a call."""
        return self in (Effect.WRITE, Effect.IRREVERSIBLE)

    @property
    def rank(self) -> int:
        """Mildest first."""
        return list(Effect).index(self)


UNTRUSTED = "untrusted"
"""The label of a value that an outsider may have chosen."""


class Labels(Frozen):
    """What is known of a value: may it be believed, and who may see it."""

    integrity: Literal["trusted", "untrusted"] = "trusted"
    confidentiality: tuple[str, ...] = ()
    """As `pii`, `secret`, `tenant`."""

    @field_validator("confidentiality")
    @classmethod
    def _no_integrity(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        if UNTRUSTED in given:
            msg = f"{UNTRUSTED!r} says who may be believed, not who may see: write integrity="
            raise ValueError(msg)
        return given


class ArgRule(Frozen):
    """What an argument demands of the value that flows into it."""

    requires_trusted: bool = False
    max_confidentiality: tuple[str, ...] | None = None
    """Labels that the sink is cleared for; None: any."""


From: TypeAlias = Annotated[str, Field(pattern=r"^(args|output)(\.[A-Za-z0-9_-]+)+$")]
"""A place in a call that was made: `args.order_id`, `output.hold.id`."""


class Undo(Frozen):
    """How an effect is taken back, and how one sees that it is gone."""

    tool: Name
    """The tool that reverses the call; it acts, so it has a key, scopes and a policy of its own."""

    args: FrozenMap[From] = Field(default_factory=dict, validate_default=True)
    """By parameter of `tool` and `look`, where its value comes from: `args.NAME` or `output.NAME`
    of the call that is undone. One that is not here takes the value of its own name, from the
    result, else from the arguments."""

    look: Name | None = None
    """A read-only tool that sees the effect. Without one nobody could tell that it is gone, so
    plangate offers no undo and a person sees to it."""

    only_if: Rule | None = None
    """CEL over `result`, the answer of `look` just before: what must hold for an undo to be due."""

    gone: Rule | None = None
    """CEL over `observed`, the answer of `look` afterwards: what shows that the effect is gone."""

    on_failure: Literal["ask", "abort"] = "ask"
    """Where an undo goes that the outside refuses: to a person, or to the end of the run."""

    @model_validator(mode="after")
    def _can_be_seen(self) -> Undo:
        if (self.look is None) != (self.gone is None):
            msg = f"undo by {self.tool!r}: look= and gone= come together or not at all"
            raise ValueError(msg)
        if self.only_if is not None and self.look is None:
            msg = f"undo by {self.tool!r}: only_if= is about what look= sees, and there is none"
            raise ValueError(msg)
        return self


def _named(given: object) -> object:
    """Let a bare name stand for an undo that says no more."""
    return {"tool": given} if isinstance(given, str) else given


_FORM = frozenset({"params", "output"})
_WORDS = frozenset({"summary", "seconds", "output_tokens", "usd", "concurrency"})
"""What guides planning, pricing and pace, and neither what a call does nor whether it may."""


class ToolPrint(Frozen):
    """One contract, as the version it names and three hashes."""

    version: str
    form: str
    """Of the schemas of its arguments and its result."""

    powers: str
    """Of everything else that is binding: effect, key, scopes, labels, errors, time-out."""

    words: str
    """Of its summary and its expected cost."""


class ToolSpec(Frozen):
    """A tool's contract."""

    name: Name
    version: Annotated[str, Field(min_length=1, max_length=40)] = "1"
    summary: Annotated[str, Field(min_length=1, max_length=500)]
    """One line for the planner; the first line of the tool's docstring."""

    effect: Effect
    params: Args
    """JSON Schema of the arguments: an object."""

    output: Args
    """JSON Schema of the result; references and conditions are typed by it."""

    external: bool = False
    """True if the call leaves this organisation."""

    idempotent: bool = False
    """True if a repeat with the same effect key changes nothing further."""

    key: str | None = None
    """Template of the business identity of an effect over its arguments: `refund:{order_id}`."""

    scope: Literal["goal", "global"] | None = None
    """Where the key is unique: in one goal, or everywhere. Required for effects."""

    undo: Annotated[Undo | None, BeforeValidator(_named)] = None
    """How a call is reversed; a tool's name alone says by which tool, and no more."""

    reconciles: bool = False
    """True if the tool can ask the outside whether an effect with a given key happened."""

    settles: bool = False
    """True if the outside accepts first and finishes later; the tool can poll the operation."""

    reads: tuple[str, ...] = ()
    """Resource keys that a call reads, as templates over its arguments: `order:{order_id}`."""

    writes: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    """Evidence references that a result shows, as templates over arguments and result, dotted paths
    allowed: `order://{order_id}?version={order.version}`. A name of a list gives one each."""

    scopes: tuple[str, ...] = ()
    """Rights that the principal must hold."""

    tenants: tuple[str, ...] = ()
    """Tenants whose principals may use it; empty: any, and principals without one."""

    labels: Labels = Field(default_factory=Labels)
    """Of the output as a whole, whatever went in."""

    field_labels: FrozenMap[Labels] = Field(default_factory=dict, validate_default=True)
    """Of single fields of the output, by dotted path without list positions: `lines.memo`."""

    sanitises: tuple[str, ...] = ()
    """Labels, `untrusted` among them, that the output no longer carries although the arguments did:
    a promise of the tool, as that it checks an account number against the register."""

    arg_rules: FrozenMap[ArgRule] = Field(default_factory=dict, validate_default=True)
    errors: FrozenMap[Outcome] = Field(default_factory=dict, validate_default=True)
    """Error codes that the tool may report, and the outcome class of each."""

    timeout_s: float = Field(default=30.0, gt=0, le=86_400)
    max_attempts: int = Field(default=3, ge=1, le=3)
    concurrency: int | None = Field(default=None, ge=1)
    """Calls at a time in one run; None: only the global limit."""

    seconds: float = Field(default=0.5, gt=0, le=86_400)
    """Expected duration of one call, for the estimate."""

    usd: Usd | None = Decimal(0)
    """Price of one call; None: unknown."""

    output_tokens: Count = 200
    """Expected size of the result where a model reads it."""

    validity_s: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """How long a read result may be reused; None: never."""

    @model_validator(mode="after")
    def _contract_is_whole(self) -> ToolSpec:
        if self.effect.acts and (self.key is None or self.scope is None):
            msg = f"tool {self.name!r} acts, so it needs key= (its business identity) and scope="
            raise ValueError(msg)
        if not self.effect.acts and (self.key or self.undo or self.reconciles or self.settles):
            msg = f"tool {self.name!r} does not act, so key, undo, reconcile, status mean nothing"
            raise ValueError(msg)
        return self

    @cached_property
    def fingerprint(self) -> ToolPrint:
        """What tells this contract from another one, by what a difference would mean."""
        said = self.model_dump(mode="json")
        version = said.pop("version")
        form = {name: said.pop(name) for name in _FORM}
        words = {name: said.pop(name) for name in _WORDS}
        return ToolPrint(
            version=version, form=digest(form), powers=digest(said), words=digest(words)
        )

    @property
    def reversible(self) -> bool:
        """True if nothing remains of a call, or a declared tool undoes it."""
        return not self.effect.acts or self.undo is not None


class Catalog(Frozen):
    """A snapshot of the contracts that one principal sees, and the names it may not use."""

    tools: FrozenMap[ToolSpec]
    forbidden: FrozenMap[str] = Field(default_factory=dict, validate_default=True)
    """Names that exist but not for this principal, with the reason."""

    @classmethod
    def of(cls, specs: Iterable[ToolSpec], scopes: Iterable[str] | None = None) -> Catalog:
        """Build the snapshot for a principal.

        Args:
            specs: All contracts.
            scopes: The principal's rights; None: all (for tests and for checking without one).
        """
        held = None if scopes is None else frozenset(scopes)
        seen: dict[str, ToolSpec] = {}
        hidden: dict[str, str] = {}
        for spec in sorted(specs, key=lambda each: each.name):
            lacking = [] if held is None else sorted(set(spec.scopes) - held)
            if lacking:
                hidden[spec.name] = "needs scope " + ", ".join(lacking)
            else:
                seen[spec.name] = spec
        return cls(tools=seen, forbidden=hidden)

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 over the visible contracts: what a plan was made against."""
        return digest({name: spec.model_dump(mode="json") for name, spec in self.tools.items()})
