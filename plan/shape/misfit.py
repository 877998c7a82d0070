"""Does data fit a shape? Every misfit is reported, each with its path."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from plangate.plan.value.equal import equal

if TYPE_CHECKING:
    from plangate.plan.shape.value import Shape
    from plangate.plan.value.frozen import Json

Hole: TypeAlias = "Callable[[Json], bool]"


@dataclass(frozen=True, slots=True)
class Misfit:
    """One thing that is wrong with a value."""

    path: str
    """Dotted path inside the value; empty for the value itself."""

    says: str
    kind: Literal["type", "range", "missing", "surplus"] = "type"


def misfits(
    shape: Shape, value: Json, hole: Hole | None = None, path: str = ""
) -> Iterator[Misfit]:
    """Yield what is wrong with `value`, depth first."""
    if hole is not None and hole(value):
        return
    if value is None:
        if not (shape.nullable or shape.kind in ("null", "any")):
            yield Misfit(path, f"is null, not {shape}")
    elif not _FITS[shape.kind](value):
        yield Misfit(path, f"is {_kind_of(value)}, not {shape}")
    elif shape.enum and not any(equal(value, each) for each in shape.enum):
        yield Misfit(path, f"is {shown(value)}, not one of {shape}", "range")
    else:
        yield from _inside(shape, value, hole, path)


def _inside(shape: Shape, value: Json, hole: Hole | None, path: str) -> Iterator[Misfit]:
    if isinstance(value, Mapping):
        yield from _in_object(shape, value, hole, path)
    elif isinstance(value, str):
        yield from _in_text(shape, value, path)
    elif isinstance(value, Sequence):
        yield from _in_size(shape, value, path)
        for position, item in enumerate(value if shape.items is not None else ()):
            yield from misfits(shape.items or shape, item, hole, below(path, str(position)))
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield from _in_range(shape, value, path)


def shown(value: Json) -> str:
    """Return a short form of a value for a message: issues must not carry whole payloads."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."  # noqa: PLR2004


def below(path: str, part: str) -> str:
    """Return the dotted path one level deeper."""
    return f"{path}.{part}" if path else part


def _in_object(
    shape: Shape, value: Mapping[str, Json], hole: Hole | None, path: str
) -> Iterator[Misfit]:
    for name in sorted(shape.required - value.keys()):
        yield Misfit(below(path, name), f"is missing ({shape.fields.get(name, 'any')})", "missing")
    for name, item in value.items():
        field = shape.fields.get(name) or shape.extra
        if field is not None:
            yield from misfits(field, item, hole, below(path, name))
        elif shape.closed:
            known = ", ".join(sorted(shape.fields)) or "none"
            yield Misfit(below(path, name), f"is not a field here (fields: {known})", "surplus")


def _in_size(shape: Shape, value: Sequence[Json], path: str) -> Iterator[Misfit]:
    limits, size = shape.bounds, len(value)
    what = "characters" if isinstance(value, str) else "elements"
    if size < limits.shortest:
        yield Misfit(path, f"has {size} {what}, fewer than {limits.shortest}", "range")
    if limits.longest is not None and size > limits.longest:
        yield Misfit(path, f"has {size} {what}, more than {limits.longest}", "range")


def _in_text(shape: Shape, value: str, path: str) -> Iterator[Misfit]:
    yield from _in_size(shape, value, path)
    pattern = shape.bounds.pattern
    if pattern is not None and not pattern.matches(value):
        yield Misfit(path, f"is {shown(value)}, which does not match {pattern.text!r}", "range")


def _in_range(shape: Shape, value: float, path: str) -> Iterator[Misfit]:
    limits = shape.bounds
    low, high = limits.low, limits.high
    if low is not None and (value < low or (limits.low_open and value == low)):
        sign = ">" if limits.low_open else ">="
        yield Misfit(path, f"is {shown(value)}, which is not {sign} {low}", "range")
    if high is not None and (value > high or (limits.high_open and value == high)):
        sign = "<" if limits.high_open else "<="
        yield Misfit(path, f"is {shown(value)}, which is not {sign} {high}", "range")


def _is_list(value: Json) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


_FITS: Mapping[str, Callable[[Json], bool]] = {
    "any": lambda _: True,
    "enum": lambda _: True,
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "string": lambda value: isinstance(value, str),
    "object": lambda value: isinstance(value, Mapping),
    "array": _is_list,
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "integer": lambda value: (
        not isinstance(value, bool)
        and (isinstance(value, int) or (isinstance(value, float) and value.is_integer()))
    ),
}


def _kind_of(value: Json) -> str:
    names = ("null", "boolean", "string", "object", "array", "integer", "number")
    return next((name for name in names if _FITS[name](value)), type(value).__name__)
