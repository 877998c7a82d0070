"""References from arguments to earlier values, written `${S1.order.id}`.

A reference fills a whole value or none of it. There is no string interpolation: what a tool
returned must never become part of a command or a path by concatenation. The first name says where
the value comes from: `inputs` (the user), `item` (the current element of `for_each`), `memory`,
or a step.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from plangate.plan.value.frozen import Json

_WHOLE = re.compile(r"\$\{([A-Za-z][A-Za-z0-9_]*)((?:\.[A-Za-z0-9_-]+)*)\}")

Source: TypeAlias = Literal["user", "constant", "step", "item", "memory"]
"""Where a value comes from: `user` (an input), `constant` (a literal), `step` (an earlier output),
`item` (the element of a `for_each`), `memory` (a recorded fact)."""

_SOURCES: Mapping[str, Source] = {"inputs": "user", "item": "item", "memory": "memory"}
RESERVED_HEADS = frozenset(_SOURCES)


@dataclass(frozen=True, slots=True)
class Ref:
    """The value under `head`, then the keys or list positions in `path`."""

    head: str
    path: tuple[str, ...] = ()

    @classmethod
    def parse(cls, value: object) -> Ref | None:
        """Read a reference, or return None where `value` is an ordinary literal."""
        match = _WHOLE.fullmatch(value) if isinstance(value, str) else None
        return cls(match[1], tuple(match[2].split(".")[1:])) if match else None

    @property
    def source(self) -> Source:
        """Where the value comes from."""
        return _SOURCES.get(self.head, "step")

    @property
    def step(self) -> str | None:
        """Id of the step whose output is read, or None."""
        return None if self.head in RESERVED_HEADS else self.head

    def resolve(self, values: Mapping[str, Json]) -> Json:
        """Look the value up.

        Args:
            values: By head: step outputs by id, and `inputs`, `item`, `memory` where they exist.

        Raises:
            KeyError: No such head, key or position; the argument is the part that was missing.
        """
        here: Json = values[self.head]
        for part in self.path:
            here = _child(here, part)
        return here

    def __str__(self) -> str:
        return "${" + ".".join((self.head, *self.path)) + "}"


def refs_in(value: Json) -> Iterator[Ref]:
    """Yield each reference anywhere inside `value`, depth first."""
    if isinstance(value, str):
        if ref := Ref.parse(value):
            yield ref
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from refs_in(item)
    elif isinstance(value, Sequence):
        for item in value:
            yield from refs_in(item)


def leaves(value: Json, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Json]]:
    """Yield each value that holds no others, with its path."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from leaves(item, (*path, name))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for at, item in enumerate(value):
            yield from leaves(item, (*path, str(at)))
    else:
        yield path, value


def resolve_all(value: Json, values: Mapping[str, Json]) -> Json:
    """Return `value` with each reference replaced; what comes in is never searched again.

    Raises:
        KeyError: As `Ref.resolve`.
    """
    if isinstance(value, str):
        ref = Ref.parse(value)
        return value if ref is None else ref.resolve(values)
    if isinstance(value, Mapping):
        return {key: resolve_all(item, values) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [resolve_all(item, values) for item in value]
    return value


def rename(value: Json, heads: Mapping[str, str]) -> Json:
    """Return `value` with references to the given heads pointing at other `head.path` targets.

    Args:
        value: Arguments or any part of them.
        heads: By the dotted reference it replaces (`S2` or `S2.status`), the new dotted target.
            The longest matching prefix wins; the rest of the path is kept.
    """
    if isinstance(value, str):
        ref = Ref.parse(value)
        return value if ref is None else str(_renamed(ref, heads))
    if isinstance(value, Mapping):
        return {key: rename(item, heads) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [rename(item, heads) for item in value]
    return value


def _renamed(ref: Ref, heads: Mapping[str, str]) -> Ref:
    parts = (ref.head, *ref.path)
    for length in range(len(parts), 0, -1):
        target = heads.get(".".join(parts[:length]))
        if target is not None:
            new = (*target.split("."), *parts[length:])
            return Ref(new[0], new[1:])
    return ref


def _child(here: Json, part: str) -> Json:
    if isinstance(here, Mapping):
        return here[part]
    if isinstance(here, str) or not isinstance(here, Sequence):
        raise KeyError(part)
    if not part.isdecimal() or int(part) >= len(here):
        raise KeyError(part)
    return here[int(part)]
