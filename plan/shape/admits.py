"""Is each value of one shape acceptable to another? Told apart: never, and not always.

"Never" is a mistake in the plan. "Not always" (a string where only three strings will do) is left
to the check of the real value before the call.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from plangate.plan.shape.misfit import below, misfits, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plangate.plan.shape.value import Bounds, Shape


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a value may be refused."""

    path: str
    says: str
    certain: bool
    """True if hardly any value would be accepted; False if it depends on the value."""

    def __str__(self) -> str:
        return f"{self.path} {self.says}" if self.path else self.says


def reasons(here: Shape, other: Shape, path: str = "") -> Iterator[Reason]:
    """Yield why `here` may refuse a value of shape `other`."""
    if "any" in (here.kind, other.kind):
        return
    if other.nullable and not here.nullable:
        never = other.kind == "null"
        yield Reason(path, f"{'is' if never else 'may be'} null, not {here}", never)
    if other.kind != "null":
        yield from _real_value(here, other, path)


def _real_value(here: Shape, other: Shape, path: str) -> Iterator[Reason]:
    if other.enum:
        yield from _each_value(here, other, path)
    elif here.enum and other.kind in _kinds_of(here):
        yield Reason(path, f"is any {other.kind}, and only {here} will do", certain=False)
    elif not _same_kind(here, other):
        yield Reason(path, f"is {other}, not {here}", certain=True)
    elif here.kind == "object":
        yield from _fields(here, other, path)
    else:
        yield from _limits(here.bounds, other.bounds, path)
        if here.items is not None and other.items is not None:
            yield from reasons(here.items, other.items, below(path, "*"))


def _each_value(here: Shape, other: Shape, path: str) -> Iterator[Reason]:
    refused = [value for value in other.enum if any(True for _ in misfits(here, value))]
    if refused:
        never = len(refused) == len(other.enum)
        verb = "is" if never else "may be"
        yield Reason(path, f"{verb} {shown(refused[0])}, not {here}", never)


def _same_kind(here: Shape, other: Shape) -> bool:
    if here.enum:
        return False
    return here.kind == other.kind or (here.kind, other.kind) == ("number", "integer")


def _kinds_of(here: Shape) -> set[str]:
    from_values = {type(value).__name__ for value in here.enum}
    names = {"str": "string", "bool": "boolean", "int": "integer", "float": "number"}
    kinds = {names.get(name, name) for name in from_values}
    return kinds | ({"number"} if "integer" in kinds else set())


def _fields(here: Shape, other: Shape, path: str) -> Iterator[Reason]:
    for name in sorted(here.required - other.required):
        known = name in other.fields or other.extra is not None
        yield Reason(below(path, name), "may be absent" if known else "is absent", not known)
    for name, shape in other.fields.items():
        want = here.fields.get(name) or here.extra
        if want is not None:
            yield from reasons(want, shape, below(path, name))
        elif here.closed:
            yield Reason(below(path, name), "is not a field there", certain=True)
    if not other.closed:
        yield from _unnamed(here, other, path)


def _unnamed(here: Shape, other: Shape, path: str) -> Iterator[Reason]:
    if here.closed:
        yield Reason(path, "may hold fields that are not accepted", certain=False)
    wanted = [shape for name, shape in here.fields.items() if name not in other.fields]
    for shape in (*wanted, *([here.extra] if here.extra else [])):
        if shape.kind == "any":
            continue
        if other.extra is None or any(True for _ in reasons(shape, other.extra)):
            yield Reason(path, f"may hold fields that are not {shape}", certain=False)


def _limits(here: Bounds, other: Bounds, path: str) -> Iterator[Reason]:
    if here.low is not None and _below(here, other):
        yield Reason(path, f"may be less than {here.low}", certain=False)
    if here.high is not None and _above(here, other):
        yield Reason(path, f"may be more than {here.high}", certain=False)
    if other.shortest < here.shortest:
        yield Reason(path, f"may be shorter than {here.shortest}", certain=False)
    if here.longest is not None and (other.longest is None or other.longest > here.longest):
        yield Reason(path, f"may be longer than {here.longest}", certain=False)
    if here.pattern is not None and here.pattern != other.pattern:
        yield Reason(path, f"may not match {here.pattern.text!r}", certain=False)


def _below(here: Bounds, other: Bounds) -> bool:
    if other.low is None or here.low is None:
        return True
    return other.low < here.low or (other.low == here.low and here.low_open and not other.low_open)


def _above(here: Bounds, other: Bounds) -> bool:
    if other.high is None or here.high is None:
        return True
    return other.high > here.high or (
        other.high == here.high and here.high_open and not other.high_open
    )
