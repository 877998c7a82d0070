"""Values that stay as they were made, all the way down, and have one canonical form.

`frozen=True` stops `plan.goal = ...` but not `plan.steps[0].args["to"] = ...`; an approval bound to
a content hash needs both stopped. The canonical form is RFC 8785, so that two processes, two
languages and two years give the same hash.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Self, TypeAlias, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    JsonValue,
    PlainSerializer,
    ValidationError,
)
from pydantic_core import from_json, to_json

from plangate.plan.value.canonical import canonical_text

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"


class Frozen(BaseModel):
    """Base of each value that is stored, hashed or shown to a person for approval."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    def __copy__(self) -> Self:
        """Copy the fields alone: what was worked out from them (a hash) may not fit a changed copy.

        `model_copy(update=...)` comes through here before it puts the changes in.
        """
        copied = super().__copy__()
        for name in copied.__dict__.keys() - type(self).model_fields.keys():
            del copied.__dict__[name]
        return copied


F = TypeVar("F", bound=Frozen)


def parse(kind: type[F], data: object) -> F:
    """Read a value that comes from outside: a file, a database, a model, a person.

    The way leads through JSON text, since strict mode takes an enum, a tuple, a `datetime` or a
    `Decimal` from text but not from the Python values that `json.loads` gives.

    Args:
        kind: The class to read.
        data: JSON text (str or bytes), plain or frozen JSON data, or a model.

    Raises:
        pydantic.ValidationError: The data does not fit; each error has a location.
        pydantic_core.PydanticSerializationError: The data is no JSON.
    """
    text = data if isinstance(data, (str, bytes)) else to_json(data, fallback=_object)
    return kind.model_validate_json(text)


def _object(value: object) -> dict[str, object]:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no JSON")


def first_fault(error: ValidationError) -> str:
    """Return the first thing that `parse` found wrong, with its place: `steps.0.id: ...`."""
    fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return ": ".join(filter(None, (".".join(map(str, fault["loc"])), fault["msg"])))


def fault_in_text(
    error: ValidationError,
    line_of: Callable[[list[str]], int],
    names: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Return the first thing that `parse` found wrong in a file: `line 3: steps.0.id: ...`.

    Args:
        error: What was found.
        line_of: Gives the line, from 1, of a place in the file.
        names: What the file calls a field where it does not use the field's own name.
    """
    fault = error.errors()[0]
    where = [names.get(str(part), str(part)) for part in fault["loc"]]
    says = "unknown key" if fault["type"] == "extra_forbidden" else fault["msg"]
    says = says.removeprefix("Value error, ")
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    return f"line {line_of(where)}: {'.'.join(where) or 'file'}: {says}{more}"


def freeze(value: Json) -> Json:
    """Return `value` with each mapping read-only and each list a tuple."""
    if isinstance(value, Mapping):
        return MappingProxyType({key: freeze(item) for key, item in value.items()})
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(freeze(item) for item in value)
    return value


def thaw(value: Json) -> JsonValue:
    """Return `value` as the plain lists and dicts that `json` writes."""
    if isinstance(value, Mapping):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [thaw(item) for item in value]
    return value


def canonical(value: object) -> bytes:
    """Return the RFC 8785 form of plain or frozen JSON data, or of a model.

    Raises:
        ValueError: A number is outside the range that JSON readers agree on (2**53) or not finite,
            a text is not Unicode, or something is no JSON.
    """
    return canonical_text(value).encode()


def digest(value: object) -> str:
    """Return the SHA-256 of the canonical form, as 64 hex digits."""
    return hashlib.sha256(canonical(value)).hexdigest()


def load_json(text: str | bytes) -> JsonValue:
    """Parse JSON text to plain data.

    Raises:
        ValueError: It is no JSON, or no Unicode.
    """
    said = text.encode() if isinstance(text, str) else text
    plain: JsonValue = from_json(said, allow_inf_nan=False)
    return plain


def load_written(text: str | bytes) -> JsonValue:
    """Parse JSON text that a person or a model wrote, where a key must not occur twice.

    Readers of JSON take the first of the two, or the last, or both: what one checked and another
    runs would differ.

    Raises:
        ValueError: It is no JSON, or names the key.
    """
    plain = load_json(text)
    json.loads(text, object_pairs_hook=each_once)
    return plain


def each_once(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    """Return the object of some pairs, for `object_pairs_hook`.

    Raises:
        ValueError: A key occurs twice.
    """
    found: dict[str, JsonValue] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"key {name[:80]!r} occurs twice")
        found[name] = value
    return found


Args: TypeAlias = Annotated[
    Mapping[str, JsonValue], BeforeValidator(thaw), AfterValidator(freeze), PlainSerializer(thaw)
]
"""Keyword arguments of a call, or any JSON object, read-only. Takes what is frozen already."""

T = TypeVar("T")
FrozenMap: TypeAlias = Annotated[
    Mapping[str, T],
    AfterValidator(lambda given: MappingProxyType(dict(given))),
    PlainSerializer(dict),
]
"""A read-only mapping of values that are themselves frozen."""
