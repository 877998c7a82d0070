"""A typed hole of a template: what a caller may put in, and what is wrong with what it did."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from pydantic import Field, JsonValue, model_validator

from plangate.plan.value.frozen import Frozen
from plangate.plan.value.step import Line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_EXACT = 2**53 - 1
Scalar: TypeAlias = str | int | float | bool | None
Bound: TypeAlias = Annotated[int | float, Field(allow_inf_nan=False)]
_KINDS: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}


class Parameter(Frozen):
    """A typed hole."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,39}$")]
    type: Literal["string", "integer", "number", "boolean"]
    description: Line = ""
    required: bool | None = None
    """Read off `default` where it is not said; saying both must agree."""

    default: Scalar = None
    enum: tuple[Scalar, ...] = ()
    min: Bound | None = None
    max: Bound | None = None
    pattern: Line | None = None
    max_length: int = Field(default=4000, ge=1)

    @model_validator(mode="after")
    def _is_sound(self) -> Parameter:
        if self.required is not None and self.required == self.has_default:
            msg = f"parameter {self.name!r} is required exactly if it has no default"
            raise ValueError(msg)
        if self.pattern is not None:
            try:
                re.compile(self.pattern)
            except re.error as exc:
                msg = f"parameter {self.name!r}: bad pattern: {exc}"
                raise ValueError(msg) from exc
        for value in (*self.enum, *((self.default,) if self.has_default else ())):
            if fault := self.fault(value):
                msg = f"parameter {self.name!r}: {value!r} {fault}"
                raise ValueError(msg)
        return self

    @property
    def has_default(self) -> bool:
        """True if the parameter may be left out."""
        return "default" in self.model_fields_set

    @property
    def nullable(self) -> bool:
        """True if null is a value of it."""
        return (self.has_default and self.default is None) or None in self.enum

    def fault(self, value: object) -> str:
        """Return what is wrong with a value, or the empty string."""
        if value is None and self.nullable:
            return ""
        is_kind = isinstance(value, _KINDS[self.type])
        if not is_kind or (isinstance(value, bool) and self.type != "boolean"):
            return f"is not of type {self.type}"
        return "".join(self._limits(value))

    def _limits(self, value: object) -> Iterator[str]:
        if self.enum and value not in self.enum:
            yield f"is none of {', '.join(str(each) for each in self.enum)}"
        elif isinstance(value, str):
            if len(value) > self.max_length:
                yield f"is longer than {self.max_length} characters"
            elif self.pattern is not None and not re.search(self.pattern, value):
                yield f"does not match {self.pattern}"
        elif isinstance(value, (int, float)):
            yield from self._bounds(value)

    def _bounds(self, value: float) -> Iterator[str]:
        if not -_EXACT <= value <= _EXACT:
            yield "is not a number that JSON readers agree on"
        elif self.min is not None and value < self.min:
            yield f"is below {self.min}"
        elif self.max is not None and value > self.max:
            yield f"is above {self.max}"

    @property
    def json_schema(self) -> dict[str, JsonValue]:
        """The parameter as JSON Schema."""
        said: dict[str, JsonValue] = {"type": [self.type, "null"] if self.nullable else self.type}
        extra: dict[str, JsonValue] = {
            "description": self.description or None,
            "enum": list(self.enum) or None,
            "minimum": self.min,
            "maximum": self.max,
            "pattern": self.pattern,
            "maxLength": self.max_length if self.type == "string" else None,
        }
        return said | {key: value for key, value in extra.items() if value is not None}

    @property
    def shown(self) -> str:
        """The parameter in a line, for messages."""
        default = f" = {self.default!r}" if self.has_default else ""
        return f"{self.name}: {self.type}{default}"
