"""The form that an answer must have: what a provider is held to, what it is told, how it is read.

One concept for both kinds of caller: code asks for one of its frozen classes, a plan for a JSON
Schema that somebody wrote into it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from plangate.models.reading import F, Flaw, read_as, read_fitting
from plangate.models.strict import narrowed, strict_schema
from plangate.plan.shape.shape import compile_shape
from plangate.plan.value.frozen import thaw

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from plangate.plan.value.frozen import Json

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Form(Generic[T]):
    """What is asked for."""

    name: str
    strict: Mapping[str, Any] | None
    """The schema in a provider's strict mode; None where that mode cannot say it."""

    told: Mapping[str, Any]
    """The schema for a model that can only be told."""

    read: Callable[[str], T | tuple[Flaw, ...]]
    """Returns the value that a text holds, or why it holds none; never raises for the text."""

    @property
    def response_format(self) -> dict[str, Any] | None:
        """What OpenAI's chat completions take; None: the form can only be told."""
        if self.strict is None:
            return None
        named = {"name": self.name, "strict": True, "schema": self.strict}
        return {"type": "json_schema", "json_schema": named}


@cache
def form_of(kind: type[F]) -> Form[F]:
    """Return the form of one of our classes.

    Raises:
        ConfigError: The class has no strict schema.
    """
    schema = strict_schema(kind)
    return Form(name=kind.__name__, strict=schema, told=schema, read=partial(read_as, kind))


def form_of_schema(schema: Mapping[str, Json], *, name: str) -> Form[Mapping[str, Json]]:
    """Return the form that a JSON Schema describes.

    Args:
        schema: Of an object. What `plangate.plan.shape` cannot check of it is not checked here.
        name: Shown to the provider: letters, digits, `_` and `-`.
    """
    plain: dict[str, Any] = thaw(schema)  # type: ignore[assignment]  # an object stays one
    fits = partial(read_fitting, compile_shape(schema))
    return Form(name=name, strict=narrowed(plain), told=plain, read=fits)
