"""Arguments as they will run, as far as that is known, and where each value comes from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from plangate.plan.value.each import element, items_of
from plangate.plan.value.frozen import Json
from plangate.plan.value.refs import Ref, refs_in
from plangate.plan.value.step import Step


class Resolved(NamedTuple):
    """The arguments of a step."""

    args: dict[str, Json]
    """With each reference replaced whose value is known; the others stand as they are."""

    sources: dict[str, str]
    """By dotted path of an argument, where its value comes from: `inputs.line`, `S4.amount`,
    `plan` for what the plan itself says."""

    known: bool
    """True if no reference is left: the step will run with exactly these."""


def resolved(step: Step, values: Mapping[str, Json]) -> Resolved:
    """Resolve a step's arguments.

    Args:
        step: The step.
        values: By head of a reference: `inputs`, and the outputs of steps that have ended.
    """
    sources = dict(_sources(step.args))
    known = all(_has(ref, values) for ref in refs_in(step.args))
    args = {name: filled(value, values) for name, value in step.args.items()}
    return Resolved(args, sources, known)


def elements(step: Step, values: Mapping[str, Json]) -> tuple[Resolved, ...] | None:
    """Resolve the arguments of each element of a step over a list.

    Returns:
        In the order of the list; None where the list is not known yet, or the step runs over none.
    """
    items = items_of(step, values)
    if items is None:
        return None
    return tuple(resolved(element(step, at), values) for at in range(len(items)))


def filled(value: Json, values: Mapping[str, Json]) -> Json:
    """Return a value with each reference in it replaced, where that is known."""
    if isinstance(value, str):
        ref = Ref.parse(value)
        return ref.resolve(values) if ref is not None and _has(ref, values) else value
    if isinstance(value, Mapping):
        return {key: filled(item, values) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [filled(item, values) for item in value]
    return value


def _has(ref: Ref, values: Mapping[str, Json]) -> bool:
    try:
        ref.resolve(values)
    except KeyError:
        return False
    return True


def _sources(args: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    for path, leaf in _leaves(args, ""):
        ref = Ref.parse(leaf)
        yield path, "plan" if ref is None else ".".join((ref.head, *ref.path))


def _leaves(value: Json, path: str) -> Iterator[tuple[str, Json]]:
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}" if path else key)
    elif isinstance(value, Sequence) and value and not isinstance(value, str):
        for at, item in enumerate(value):
            yield from _leaves(item, f"{path}.{at}" if path else str(at))
    else:
        yield path, value
