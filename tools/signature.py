"""The schemas of a tool are read off its annotations, once, when it is declared.

Arguments and result are JSON outside the body and Python values inside it. Anything that cannot be
told as a JSON Schema is refused here, with the name of the tool and the way out.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, create_model
from pydantic.errors import PydanticUserError
from pydantic_core import to_json

from plangate.plan.errors import ConfigError
from plangate.tools.context import ToolContext
from plangate.tools.credentials import Secret

if TYPE_CHECKING:
    from pydantic.json_schema import JsonSchemaMode

_PLAIN = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """What a body takes and gives."""

    params: Mapping[str, Any]
    """JSON Schema of the arguments: a closed object."""

    output: Mapping[str, Any]
    """JSON Schema of the result: an object with named fields."""

    context: str | None
    """Name of the parameter that takes the `ToolContext`."""

    takes: type[BaseModel]
    """Reads arguments; its fields carry the parameter names as aliases."""

    def references(self, args: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the secrets that the arguments name where the body takes a `Secret`.

        Raises:
            pydantic.ValidationError: The arguments do not fit.
        """
        named: dict[str, Secret] = {}
        self.takes.model_validate_json(to_json(dict(args)), context=named)
        return tuple(sorted(named))

    def arguments(
        self, args: Mapping[str, Any], secrets: Mapping[str, Secret] = MappingProxyType({})
    ) -> dict[str, Any]:
        """Turn JSON arguments into what the body is annotated with.

        Args:
            args: Plain JSON.
            secrets: What the references among them stand for.

        Raises:
            pydantic.ValidationError: They do not fit.
        """
        read = self.takes.model_validate_json(to_json(dict(args)), context=dict(secrets))
        fields = type(read).model_fields.items()
        return {str(field.alias): getattr(read, name) for name, field in fields}


def read_signature(name: str, body: Callable[..., Any]) -> Signature:
    """Read parameters and result of a body.

    Raises:
        ConfigError: An annotation is missing or has no JSON Schema, or the result is no object.
    """
    hints = _hints(name, body)
    if "return" not in hints:
        raise ConfigError(
            f"tool {name!r} does not say what it returns",
            hint="Annotate the result with a TypedDict, a dataclass or a pydantic model.",
        )
    context, fields = _parameters(name, body, hints)
    takes = _model(name, fields)
    return Signature(
        params={"properties": {}, **_schema(name, "its arguments", takes, "validation")},
        output=_output(name, hints["return"]),
        context=context,
        takes=takes,
    )


def _hints(name: str, body: Callable[..., Any]) -> dict[str, Any]:
    # Linters move imports of these under TYPE_CHECKING, so they are known here in any case.
    names = {"ToolContext": ToolContext, "Secret": Secret} | getattr(
        inspect.unwrap(body), "__globals__", {}
    )
    try:
        return get_type_hints(body, globalns=names, include_extras=True)
    except NameError as exc:
        raise ConfigError(
            f"tool {name!r}: annotation {exc.name!r} cannot be found at run time",
            hint="Define the type at module level, and import it outside `if TYPE_CHECKING:`.",
        ) from exc


def _parameters(
    name: str, body: Callable[..., Any], hints: Mapping[str, Any]
) -> tuple[str | None, dict[str, Any]]:
    context: str | None = None
    fields: dict[str, Any] = {}
    for key, parameter in inspect.signature(body).parameters.items():
        if parameter.kind not in _PLAIN:
            raise ConfigError(
                f"tool {name!r}: parameter {key!r} cannot be passed by name",
                hint="Name each argument; leave out *args, **kwargs and positional-only ones.",
            )
        if key not in hints:
            raise ConfigError(f"tool {name!r}: parameter {key!r} has no type", hint="Annotate it.")
        if hints[key] is not ToolContext:
            default = ... if parameter.default is parameter.empty else parameter.default
            fields[key] = (hints[key], default)
        elif context is not None:
            raise ConfigError(f"tool {name!r} takes two contexts", hint=f"Leave out {key!r}.")
        else:
            context = key
    return context, fields


def _model(name: str, fields: Mapping[str, tuple[Any, Any]]) -> type[BaseModel]:
    # Parameter names become aliases, so that `schema` or `_x` cannot clash with pydantic's own.
    made: dict[str, Any] = {
        f"arg_{position}": (kind, Field(default, alias=key, validate_default=True))
        for position, (key, (kind, default)) in enumerate(fields.items())
    }
    config = ConfigDict(extra="forbid", strict=True, arbitrary_types_allowed=False)
    try:
        return create_model(name, __config__=config, **made)
    except PydanticUserError as exc:
        raise _unsupported(name, "its arguments", exc) from exc


def _output(name: str, kind: Any) -> dict[str, Any]:
    schema = _schema(name, "its result", kind, "serialization")
    if schema.get("type") != "object" or not schema.get("properties"):
        raise ConfigError(
            f"tool {name!r} returns {_called(kind)}, which is not an object with named fields",
            hint="Return a TypedDict, a dataclass or a pydantic model, so that later steps can "
            "refer to its fields.",
        )
    return schema


def _schema(name: str, part: str, kind: Any, mode: JsonSchemaMode) -> dict[str, Any]:
    try:
        schema = TypeAdapter(kind).json_schema(mode=mode)
    except PydanticUserError as exc:
        raise _unsupported(name, part, exc) from exc
    target = schema.pop("$ref", None)
    if target is not None:
        schema = {**schema["$defs"][target.removeprefix("#/$defs/")], "$defs": schema["$defs"]}
    return _untitled(schema)


def _untitled(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out titles: they repeat the names, and a planner would pay for them."""
    kept: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ("properties", "$defs"):
            kept[key] = {name: _untitled(child) for name, child in value.items()}
        elif key in ("anyOf", "allOf", "oneOf", "prefixItems"):
            kept[key] = [_untitled(child) for child in value]
        elif isinstance(value, Mapping) and key in ("items", "additionalProperties"):
            kept[key] = _untitled(value)
        elif key != "title":
            kept[key] = value
    return kept


def _unsupported(name: str, part: str, exc: PydanticUserError) -> ConfigError:
    if exc.code == "typed-dict-version":
        hint = (
            "Import TypedDict from typing_extensions: before Python 3.12 pydantic needs that one."
        )
    else:
        hint = "Use types that JSON can carry: str, int, float, bool, list, dict, Literal, models."
    says = exc.message.partition("\n")[0].rstrip(".")
    return ConfigError(f"tool {name!r}: {part} has a type with no JSON Schema: {says}", hint=hint)


def _called(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) else str(kind)
