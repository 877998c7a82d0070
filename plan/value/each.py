"""A step over a list, as the steps that it stands for: one for each element, with plain references.

`${item.account}` of the second element of `${S1.lines}` is `${S1.lines.1.account}`. No value is
pasted in, so what an element holds is never read as a reference, and labels, approvals and checks
see an element's argument as what it is: a part of the list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plangate.plan.value.refs import Ref, refs_in, rename

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plangate.plan.value.frozen import Json
    from plangate.plan.value.step import Step

ANY_ELEMENT = "each"
"""Stands where the position of an element would."""


def element(step: Step, position: int) -> Step:
    """Return the step for one element.

    Routes are left out: they say where the step as a whole goes.

    Args:
        step: A step with `for_each`.
        position: In the list, from 0.
    """
    return _unrolled(step, str(position))


def any_element(step: Step) -> Step:
    """Return the step for whichever element; a step without `for_each` as it is."""
    return step if each_of(step) is None else _unrolled(step, ANY_ELEMENT)


def each_of(step: Step | None) -> Ref | None:
    """Return the reference to the list; None where there is none, or it is no reference."""
    return None if step is None else Ref.parse(step.for_each)


def items_of(step: Step, values: Mapping[str, Json]) -> Sequence[Json] | None:
    """Return the list that a step runs over; None where it is no list, or not known yet."""
    ref = each_of(step)
    try:
        found = None if ref is None else ref.resolve(values)
    except KeyError:
        return None
    return found if isinstance(found, (list, tuple)) else None


def times(step: Step) -> int:
    """Return how often a step may run at most: once, or once for each element of its list."""
    return 1 if step.for_each is None else max(step.max_items or 1, 1)


def uses_item(value: Json) -> bool:
    """True if a value, or any part of it, comes from the element."""
    return any(ref.source == "item" for ref in refs_in(value))


def _unrolled(step: Step, place: str) -> Step:
    ref = each_of(step)
    assert ref is not None, "layer 3 lets no other for_each pass"  # noqa: S101 (ours)
    heads = {"item": ".".join((ref.head, *ref.path, place))}
    success = tuple(
        check.model_copy(update={"args": rename(check.args, heads)}) for check in step.success
    )
    changes = {"args": rename(step.args, heads), "success": success}
    return step.model_copy(update={**changes, "for_each": None, "max_items": None, "routes": ()})
