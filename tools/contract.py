"""What the writer of a tool declares, and how it becomes the contract that all others read.

Every misuse is refused when the tool is declared, with the tool's name and the way out: a contract
that is found wanting in the middle of a run is found too late.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, Required, TypeAlias, TypedDict

from pydantic import ValidationError

from plangate.plan.catalog import ArgRule, Effect, Labels, ToolSpec, Undo
from plangate.plan.errors import ConfigError
from plangate.plan.secrets import REFERENCE
from plangate.tools.answers import Found, Operation
from plangate.tools.child import Limits
from plangate.tools.context import ToolContext
from plangate.tools.template import check_evidence, check_identity

if TYPE_CHECKING:
    from plangate.plan.outcome import Outcome
    from plangate.tools.signature import Signature

Body: TypeAlias = Callable[..., Any]
Reconcile: TypeAlias = Callable[[str, Mapping[str, Any], ToolContext], Found | Awaitable[Found]]
"""Ask the outside whether the effect with this key happened: `(effect_key, args, context)`."""

Status: TypeAlias = Callable[[str, ToolContext], Operation | Awaitable[Operation]]
"""Ask the outside how far an operation is: `(operation_id, context)`."""

Foresee: TypeAlias = Callable[..., Sequence[str]]
"""Say which evidence a call will show: `(args)`, from them alone, or `(args, world)`, for which the
world is read. The same for the same arguments and world, and nothing is written."""

EffectName: TypeAlias = Literal["none", "read", "write", "irreversible"]


class Contract(TypedDict, total=False):
    """Keywords of `@tool`; the fields of `plangate.plan.catalog.ToolSpec` say what each means."""

    effect: Required[Effect | EffectName]
    """The worst that one call can do. There is no default."""

    version: str
    external: bool
    idempotent: bool
    key: str
    """For tools that act: template of the effect's business identity, `refund:{order_id}`."""

    scope: Literal["goal", "global"]
    """For tools that act: where the key is unique."""

    undo: str | Undo
    """How a call is reversed; a bare name says by which tool, and no more."""

    reconcile: Reconcile
    isolated: Limits
    """Run body, reconcile and status in a child process, within these limits."""

    status: Status
    """For tools whose outside accepts first and finishes later. The body then returns a field
    `operation_id`."""

    preview: Foresee
    """Which evidence a call is expected to show, in the form in which it is cited."""

    reads: Sequence[str]
    writes: Sequence[str]
    evidence: Sequence[str]
    scopes: Sequence[str]
    tenants: Sequence[str]
    labels: Labels
    field_labels: Mapping[str, Labels]
    sanitises: Sequence[str]
    """Labels that a result no longer carries although the arguments did; a promise."""

    arg_rules: Mapping[str, ArgRule]
    errors: Mapping[str, Outcome]
    timeout_s: float
    max_attempts: int
    concurrency: int
    seconds: float
    usd: Decimal | int | None
    """Price of one call; None: unknown. Exact: no float."""

    output_tokens: int
    validity_s: float


_LISTS = ("reads", "writes", "evidence", "scopes", "tenants", "sanitises")
_ACTING_ONLY = ("key", "scope", "undo", "reconcile", "status")
_FORESEES = (1, 2)
_NOT_IN_SPEC = ("reconcile", "status", "isolated", "preview")


def spec_of(body: Body, contract: Contract, signature: Signature) -> ToolSpec:
    """Join what a function shows and what its writer declares.

    Raises:
        ConfigError: The contract is incomplete, contradicts itself or names what is not there.
    """
    name = body.__name__
    given = _known_keywords(name, contract)
    effect = _effect(name, given)
    _whole_or_nothing(name, effect, given)
    for field in _LISTS:
        given[field] = _lines(name, field, given.get(field, ()))
    if not isinstance(given.get("isolated", Limits()), Limits):
        hint = "Write isolated=Limits(memory_bytes=...)."
        raise ConfigError(f"tool {name!r}: isolated= is no Limits", hint=hint)
    if "preview" in given and wanted(given["preview"]) not in _FORESEES:
        hint = "Pass a function of the arguments, or of (args, world), that returns references."
        raise ConfigError(f"tool {name!r}: preview= is no such function", hint=hint)
    given["arg_rules"] = _secret_rules(given.get("arg_rules", {}), signature)
    if given.get("usd") is not None:
        given["usd"] = _price(name, given["usd"])
    _check_names(name, given, signature)
    fields = {key: value for key, value in given.items() if key not in _NOT_IN_SPEC}
    try:
        return ToolSpec(
            **{
                **fields,
                "name": name,
                "summary": _summary(name, body),
                "effect": effect,
                "params": signature.params,
                "output": signature.output,
                "reconciles": "reconcile" in given,
                "settles": "status" in given,
            }
        )
    except ValidationError as exc:
        fault = exc.errors()[0]
        where = ".".join(str(part) for part in fault["loc"])
        raise ConfigError(
            f"tool {name!r}: {where}: {fault['msg']}", hint="Correct that part of @tool(...)."
        ) from exc


def wanted(function: object) -> int:
    """Return how many arguments a function takes by position; 0 for what is none."""
    if not callable(function):
        return 0
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    try:
        return sum(each.kind in kinds for each in inspect.signature(function).parameters.values())
    except ValueError:  # of a builtin that does not say
        return 0


def _secret_rules(rules: Mapping[str, ArgRule], signature: Signature) -> dict[str, ArgRule]:
    """An outsider must not choose which secret is used: such arguments require trust."""
    secret = {
        name: rules.get(name, ArgRule()).model_copy(update={"requires_trusted": True})
        for name, schema in signature.params["properties"].items()
        if schema.get("pattern") == REFERENCE
    }
    return {**rules, **secret}


def _summary(name: str, body: Body) -> str:
    summary = (inspect.getdoc(body) or "").partition("\n")[0].strip()
    if not summary:
        raise ConfigError(
            f"tool {name!r} has no docstring", hint="Say in its first line what it does."
        )
    return summary


def _known_keywords(name: str, contract: Contract) -> dict[str, Any]:
    given = dict(contract)
    for key in given:
        if key not in Contract.__annotations__:
            near = difflib.get_close_matches(key, Contract.__annotations__, n=1)
            raise ConfigError(
                f"tool {name!r}: @tool has no keyword {key!r}",
                hint=f"Did you mean {near[0]!r}?" if near else "Leave it out.",
            )
    return given


def _effect(name: str, given: Mapping[str, Any]) -> Effect:
    try:
        return Effect(given["effect"])
    except KeyError:
        said = "declares no effect"
    except ValueError:
        said = f"declares an unknown effect {given['effect']!r}"
    raise ConfigError(
        f"tool {name!r} {said}",
        hint="Say the worst that one call can do: none, read, write or irreversible.",
    )


def _whole_or_nothing(name: str, effect: Effect, given: Mapping[str, Any]) -> None:
    if not effect.acts:
        for field in _ACTING_ONLY:
            if field in given:
                raise ConfigError(
                    f"tool {name!r} does not act ({effect.value}), so {field}= means nothing",
                    hint=f"Leave {field}= out, or declare the effect that it has.",
                )
        return
    if not given.get("key"):
        raise ConfigError(
            f"tool {name!r} acts ({effect.value}) and has no key=",
            hint='Name the business identity of the effect, as key="refund:{order_id}".',
        )
    if "scope" not in given:
        raise ConfigError(
            f"tool {name!r} acts ({effect.value}) and has no scope=",
            hint='Say where its key is unique: scope="goal" or scope="global".',
        )


def _lines(name: str, field: str, value: object) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ConfigError(
            f"tool {name!r}: {field} is not a list of strings", hint=f"Write {field}=({value!r},)."
        )
    return tuple(value)


def _price(name: str, value: object) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        raise ConfigError(
            f"tool {name!r}: usd {value!r} is not exact", hint='Write usd=Decimal("0.002").'
        )
    return Decimal(value)


def _check_names(name: str, given: Mapping[str, Any], signature: Signature) -> None:
    check_identity(name, "key", [given["key"]] if "key" in given else [], signature)
    check_identity(name, "reads", given["reads"], signature)
    check_identity(name, "writes", given["writes"], signature)
    check_evidence(name, given["evidence"], signature)
    for argument in given.get("arg_rules", {}):
        if argument not in signature.params["properties"]:
            raise ConfigError(
                f"tool {name!r}: arg_rules names {argument!r}, which is not an argument",
                hint="Its arguments are: " + ", ".join(sorted(signature.params["properties"])),
            )
    for field in given.get("field_labels", {}):
        if field.partition(".")[0] not in signature.output["properties"]:
            raise ConfigError(
                f"tool {name!r}: field_labels names {field!r}, which is not in its result",
                hint="Its result has: " + ", ".join(sorted(signature.output["properties"])),
            )
    if "status" in given and "operation_id" not in signature.output["properties"]:
        raise ConfigError(
            f"tool {name!r} has status= but its result has no field 'operation_id'",
            hint="Return the id that status= is to be asked about.",
        )
    for code, outcome in given.get("errors", {}).items():
        if outcome == "success":
            raise ConfigError(
                f"tool {name!r}: error {code!r} cannot have the outcome success",
                hint="Return a result instead, or name the class of failure.",
            )
