"""Reads what a model wrote: the JSON object in a text, in the form asked for, or why not.

Tolerant of what surrounds the object (a code fence, prose before and after), strict about the
object: a cut-off answer is never completed by guessing.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, TypeVar

from pydantic import ValidationError

from plangate.plan.value.frozen import Frozen, each_once, load_written, parse

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from plangate.plan.shape.value import Shape
    from plangate.plan.value.frozen import Json

F = TypeVar("F", bound=Frozen)
FlawCode: TypeAlias = Literal["unparsable", "missing_field", "unknown_field", "bad_value"]
Path: TypeAlias = tuple[int | str, ...]

LONGEST = 1_000_000
"""Characters of an answer that are looked at; a longer one is not read at all."""

_OPENS = re.compile(r'\{\s*["}]')
_MOST_SHOWN = 20
_LONGEST_SAID = 200
_CODES: Mapping[str, FlawCode] = {
    "json_invalid": "unparsable",
    "missing": "missing_field",
    "extra_forbidden": "unknown_field",
    "surplus": "unknown_field",
}


class Flaw(NamedTuple):
    """One reason why a text is not what was asked for."""

    code: FlawCode
    """As in `plangate.plan.codes`."""

    path: Path
    says: str


def read_as(kind: type[F], text: str) -> F | tuple[Flaw, ...]:
    """Read the answer of a model; never raises for what the text says."""
    found = object_in(text)
    if found is None:
        return (Flaw("unparsable", (), _why_unparsable(text)),)
    try:
        json.loads(found, object_pairs_hook=each_once)
        return parse(kind, found)
    except ValidationError as exc:
        return flaws_of(exc)
    except (ValueError, RecursionError) as exc:
        return (_broken(exc),)


def read_fitting(shape: Shape, text: str) -> Mapping[str, Json] | tuple[Flaw, ...]:
    """Read the answer of a model as an object of a shape; never raises for what the text says."""
    found = object_in(text)
    if found is None:
        return (Flaw("unparsable", (), _why_unparsable(text)),)
    try:
        value: Mapping[str, Json] = load_written(found)  # type: ignore[assignment]  # an object
    except (ValueError, RecursionError) as exc:
        return (_broken(exc),)
    flaws = tuple(
        Flaw(_CODES.get(each.kind, "bad_value"), tuple(each.path.split(".")), each.says)
        for each in shape.accepts(value)[:_MOST_SHOWN]
    )
    return flaws or value


def _broken(exc: Exception) -> Flaw:
    return Flaw("unparsable", (), f"the JSON object in the answer: {exc}"[:_LONGEST_SAID])


def flaws_of(error: ValidationError) -> tuple[Flaw, ...]:
    """Return what pydantic found, without the values: they are a model's text."""
    shown = error.errors(include_url=False, include_context=False, include_input=False)
    return tuple(
        Flaw(_CODES.get(each["type"], "bad_value"), each["loc"], each["msg"][:_LONGEST_SAID])
        for each in shown[:_MOST_SHOWN]
    )


def object_in(text: str) -> str | None:
    """Return the longest JSON object in a text, as it is written there.

    Returns:
        None where there is none, or where one starts and does not end.

    Example:
        >>> object_in('Sure! ```{"a": [1]}``` Anything else?')
        '{"a": [1]}'
    """
    spans = list(_objects(text)) if len(text) <= LONGEST else []
    return max(spans, key=len) if spans and spans[-1] else None


def _objects(text: str) -> Iterator[str]:
    decoder = json.JSONDecoder()
    at = 0
    while opens := _OPENS.search(text, at):
        try:
            _, at = decoder.raw_decode(text, opens.start())
        except (ValueError, RecursionError):
            yield ""  # an object that does not end: what is inside it is not the answer either
            return
        yield text[opens.start() : at]


def _why_unparsable(text: str) -> str:
    if len(text) > LONGEST:
        return f"the answer has {len(text):,} characters, more than {LONGEST:,}"
    if not text.strip():
        return "the answer is empty"
    if _OPENS.search(text) is None:
        return "the answer holds no JSON object"
    return "the JSON object in the answer is broken or cut off"
