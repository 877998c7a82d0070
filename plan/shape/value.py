"""The type of JSON data. What a schema says beyond these types is marked unchecked, never guessed.

A `Shape` is made by `plangate.plan.shape.shape.compile_shape` from a schema, or by `infer` from a
value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeAlias

from plangate.plan.shape.admits import reasons
from plangate.plan.shape.misfit import Misfit, misfits

if TYPE_CHECKING:
    from plangate.plan.value.frozen import Json

Kind: TypeAlias = Literal[
    "object", "array", "string", "integer", "number", "boolean", "null", "enum", "any"
]
"""`enum`: a fixed set of values of several types. `any`: nothing is known."""


def _none() -> Mapping[str, Shape]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Missing:
    """A path that leads nowhere."""

    where: str
    """Dotted path of the value in which the next name was looked for; empty for the top."""

    part: str
    """The name that is not there."""

    known: tuple[str, ...]
    """The names that are."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression that is searched for in linear time."""

    text: str
    matches: Callable[[str], bool] = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Limits of numbers, and of the length of strings and lists; None means no limit."""

    low: float | None = None
    low_open: bool = False
    high: float | None = None
    high_open: bool = False
    shortest: int = 0
    longest: int | None = None
    pattern: Pattern | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What is known of a value before it exists."""

    kind: Kind = "any"
    nullable: bool = False
    enum: tuple[Json, ...] = ()
    """The only values allowed, null apart; empty: no such list."""

    default: tuple[Json, ...] = ()
    """The default in a tuple of one, or nothing."""

    fields: Mapping[str, Shape] = field(default_factory=_none)
    required: frozenset[str] = frozenset()
    extra: Shape | None = None
    """Of object fields that have no name of their own, where the schema speaks of them."""

    closed: bool = False
    """True if the schema forbids fields beyond `fields`."""

    items: Shape | None = None
    bounds: Bounds = field(default_factory=Bounds)
    notes: tuple[str, ...] = ()
    """What the schema says and nobody checks, as `format: date`."""

    unchecked: tuple[str, ...] = ()
    """Why a value that is accepted here may still be wrong, at this level or below; empty: it
    cannot."""

    def optional(self, name: str) -> bool:
        """True if a field may be absent."""
        return name not in self.required

    def child(self, part: str) -> Shape | None:
        """Return the shape under one key or list position, or None where there is no such thing."""
        if self.kind == "any":
            return ANY
        if self.kind == "object":
            return self.fields.get(part) or self.extra
        if self.kind == "array" and part.isdecimal():
            return self.items or ANY
        return None

    def at(self, path: Sequence[str]) -> Shape | Missing:
        """Return the shape at the end of a reference path; lists take decimal positions."""
        here = self
        for depth, part in enumerate(path):
            below = here.child(part)
            if below is None:
                return Missing(".".join(path[:depth]), part, tuple(here.fields))
            here = below
        return here

    def gaps(self, path: Sequence[str]) -> tuple[str, ...]:
        """Say where on a path the value may be absent although its type is known."""
        here, found = self, list[str]()
        for depth, part in enumerate(path):
            below = here.child(part)
            if below is None or here.kind == "any":
                break
            if here.nullable:
                found.append(f"{'.'.join(path[:depth]) or 'the value'} may be null")
            if here.kind == "object" and here.optional(part):
                found.append(f"{'.'.join(path[: depth + 1])} may be absent")
            if here.kind == "array" and int(part) >= here.bounds.shortest:
                found.append(f"{'.'.join(path[:depth]) or 'the list'} may be shorter")
            here = below
        return tuple(found)

    def accepts(
        self, value: Json, *, hole: Callable[[Json], bool] | None = None
    ) -> tuple[Misfit, ...]:
        """Return what is wrong with `value`; nothing for a fit.

        Args:
            value: Plain or frozen JSON data.
            hole: Says of a part of it that it is filled in later and not looked at now.
        """
        return tuple(misfits(self, value, hole))

    def admits(self, other: Shape) -> str | None:
        """Return why a value of shape `other` may not be acceptable here; None if it always is.

        Where either shape is unchecked, None means no more than "nothing speaks against it".
        """
        return next((str(reason) for reason in reasons(self, other)), None)

    def clash(self, other: Shape) -> str | None:
        """Return why no value of shape `other`, or hardly any, is acceptable here; else None."""
        return next((str(reason) for reason in reasons(self, other) if reason.certain), None)

    def __str__(self) -> str:
        said = self.kind if not self.enum else " | ".join(repr(value) for value in self.enum[:6])
        if len(self.enum) > 6:  # noqa: PLR2004
            said += " | …"
        return f"{said} or null" if self.nullable else said


ANY = Shape(unchecked=("its schema says nothing about its type",))
"""Of a value that nothing is known about."""


def infer(value: Json) -> Shape:
    """Return the shape of one value: objects with exactly its fields, lists of what they hold."""
    if isinstance(value, Mapping):
        fields = {name: infer(item) for name, item in value.items()}
        return object_of(fields, required=fields, closed=True)
    if isinstance(value, Sequence) and not isinstance(value, str):
        shapes = [infer(item) for item in value]
        items = reduce(_join, shapes) if shapes else ANY
        return Shape(kind="array", items=items, unchecked=items.unchecked)
    if value is None:
        return Shape(kind="null", nullable=True)
    return Shape(kind=scalar_kind(value))


def scalar_kind(value: Json) -> Kind:
    """Return the kind of a value that holds no others."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "integer" if isinstance(value, int) else "number"
    return "string" if isinstance(value, str) else "enum"


def object_of(
    fields: Mapping[str, Shape],
    *,
    required: Mapping[str, Shape] | Sequence[str] = (),
    extra: Shape | None = None,
    closed: bool = False,
) -> Shape:
    """Return the shape of an object; what is unchecked below is unchecked here."""
    below = [
        f"{name}: {text}" for name, shape in fields.items() for text in shape.unchecked
    ] + list(extra.unchecked if extra else ())
    return Shape(
        kind="object",
        fields=MappingProxyType(dict(fields)),
        required=frozenset(required),
        extra=extra,
        closed=closed,
        unchecked=tuple(below),
    )


def _join(one: Shape, two: Shape) -> Shape:
    nullable = one.nullable or two.nullable
    kinds = {one.kind, two.kind}
    if "null" in kinds:
        return replace(two if one.kind == "null" else one, nullable=True)
    if kinds == {"integer", "number"}:
        return Shape(kind="number", nullable=nullable)
    return replace(_join_alike(one, two) if len(kinds) == 1 else ANY, nullable=nullable)


def _join_alike(one: Shape, two: Shape) -> Shape:
    if one.kind == "array":
        items = _join(one.items or ANY, two.items or ANY)
        return replace(one, items=items, unchecked=items.unchecked)
    return _join_objects(one, two) if one.kind == "object" else one


def _join_objects(one: Shape, two: Shape) -> Shape:
    fields = {
        name: _join(one.fields.get(name, shape), two.fields.get(name, shape))
        for name, shape in (*one.fields.items(), *two.fields.items())
    }
    return object_of(fields, required=tuple(one.required & two.required), closed=True)
