"""The JSON Schema that a provider is held to, from one of our frozen classes or from a plan.

OpenAI's strict mode wants every object closed, every property required, no defaults and no
`oneOf`. Bounds of texts are checked when the answer is read: fine-tuned models and several
compatible servers refuse `maxLength`.

Source: https://platform.openai.com/docs/guides/structured-outputs (supported schemas).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from plangate.plan.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from plangate.plan.value.frozen import Frozen

_LEFT_OUT = frozenset({"title", "minLength", "maxLength"})
_REFUSED = frozenset({"default", "oneOf", "allOf", "not", "discriminator", "prefixItems"})
_DEFINES_NAMES = frozenset({"properties", "$defs"})
_SAID = frozenset(
    {"type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf"}
    | {"$ref", "$defs", "description", "minimum", "maximum", "exclusiveMinimum"}
    | {"exclusiveMaximum", "minItems", "maxItems", "pattern"}
)
"""Words that strict mode is known to take; a provider refuses a whole request over any other."""


@cache
def strict_schema(kind: type[Frozen]) -> dict[str, Any]:
    """Return the schema of a class in strict form; do not change the result.

    Raises:
        ConfigError: The class has a default, a free mapping, a tagged union or no object at its
            root; the message names the place.
    """
    schema: dict[str, Any] = _bare(kind.model_json_schema())
    if faults := tuple(unsafe(schema)):
        raise ConfigError(
            f"{kind.__name__} has no strict schema: {faults[0]}",
            hint="Use closed classes, lists, and `| None` without a default.",
        )
    return schema


def narrowed(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a schema in strict form whose answers all fit the one given; None: there is none.

    An object that says nothing of further fields is closed. One with an optional field has no
    strict form: a model that has to fill it in would invent something.
    """
    try:
        closed: dict[str, Any] = _closed(_bare(schema))
        faults = next(unsafe(closed), None) or next(_unknown(closed), None)
    except (AttributeError, TypeError, ValueError, RecursionError):  # it is no schema at all
        return None
    return None if faults else closed


def unsafe(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield each place where a schema breaks a rule of strict mode."""
    if schema.get("type") != "object":
        yield "the root is not an object"
    yield from _unsafe(schema, "$")


def _unsafe(node: Mapping[str, Any], at: str) -> Iterator[str]:
    yield from (f"{at}: {word}" for word in sorted(_REFUSED & node.keys()))
    if node.get("type") == "object":
        if node.get("additionalProperties") is not False:
            yield f"{at}: open object"
        if set(node.get("required", ())) != set(node.get("properties", {})):
            yield f"{at}: optional property"
    if not node.keys() & {"type", "anyOf", "$ref", "enum", "const"}:
        yield f"{at}: any value"
    for place, child in _children(node, at):
        yield from _unsafe(child, place)


def _children(node: Mapping[str, Any], at: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for word in _DEFINES_NAMES & node.keys():
        yield from ((f"{at}.{name}", child) for name, child in node[word].items())
    yield from ((f"{at}.anyOf[{n}]", child) for n, child in enumerate(node.get("anyOf", ())))
    if "items" in node:
        yield f"{at}.items", node["items"]


def _unknown(node: Mapping[str, Any]) -> Iterator[str]:
    yield from sorted(node.keys() - _SAID)
    if isinstance(node.get("type"), list) and "object" in node["type"]:
        yield "an object among several types"
    for _, child in _children(node, ""):
        yield from _unknown(child)


def _closed(node: Any, *, names: bool = False) -> Any:
    if isinstance(node, list):
        return [_closed(item) for item in node]
    if not isinstance(node, dict):
        return node
    closes = not names and "properties" in node and "additionalProperties" not in node
    found = {
        key: _closed(value, names=not names and key in _DEFINES_NAMES)
        for key, value in node.items()
    }
    return {**found, "additionalProperties": False} if closes else found


def _bare(node: Any, *, names: bool = False) -> Any:
    """Drop the words that are left out; under `properties` a key is a name and no word."""
    if isinstance(node, list):
        return [_bare(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        key: _bare(value, names=not names and key in _DEFINES_NAMES)
        for key, value in node.items()
        if names or key not in _LEFT_OUT
    }
