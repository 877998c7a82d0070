"""Equality as JSON has it: true is not 1, and the order of keys says nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from plangate.plan.value.frozen import canonical

if TYPE_CHECKING:
    from pydantic import BaseModel

    from plangate.plan.value.frozen import Json


def equal(one: Json, two: Json) -> bool:
    """Tell whether two JSON values are equal."""
    if isinstance(one, bool) or isinstance(two, bool):
        return one is two
    if isinstance(one, Mapping) and isinstance(two, Mapping):
        return one.keys() == two.keys() and all(equal(one[name], two[name]) for name in one)
    if isinstance(one, (list, tuple)) and isinstance(two, (list, tuple)):
        return len(one) == len(two) and all(map(equal, one, two))
    return one == two


def same(one: BaseModel, other: BaseModel) -> bool:
    """Tell whether two values of one class say the same; quick where they are one object."""
    if one is other or one.model_dump_json() == other.model_dump_json():
        return True
    return one == other and canonical(one) == canonical(other)


def differing(one: BaseModel, other: BaseModel) -> tuple[str, ...]:
    """Return the names of the fields that differ, in order of the class."""
    if same(one, other):
        return ()
    before, after = one.model_dump(mode="json"), other.model_dump(mode="json")
    return tuple(name for name in before if canonical(before[name]) != canonical(after[name]))
