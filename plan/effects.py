"""Names of what a call does to the world, made from its business values and nothing else.

An effect's identity never holds a step id, a plan version or an attempt, so that a replanned,
renamed or re-delivered step is recognised as the effect that happened already.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from pydantic import ValidationError

from plangate.plan.errors import ConfigError
from plangate.plan.value.frozen import canonical, digest
from plangate.plan.value.refs import Ref
from plangate.plan.verdict import EvidenceRef

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from plangate.plan.catalog import ToolSpec
    from plangate.plan.value.frozen import Json

_HOLE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_-]+)*)\}")


class EffectKey(NamedTuple):
    """The identity of an effect."""

    key: str
    """SHA-256, 64 hex digits: what the ledger is unique over and the tool is handed."""

    business: str
    """The same for people: `refund:ORD-1:12900`."""


class Claims(NamedTuple):
    """Resource keys that a call touches."""

    reads: frozenset[str]
    writes: frozenset[str]


def effect_key(spec: ToolSpec, args: Mapping[str, Json], goal_id: str) -> EffectKey:
    """Return the identity of a call that acts.

    Two tools with one key template are two ways to the same effect, and share its identity. A
    template without a leading word (`{order_id}`) says nothing of the kind of effect; the tool's
    name stands in for it.

    Args:
        spec: A contract with `key` and `scope`.
        args: The resolved arguments.
        goal_id: Where keys of scope `goal` are unique.

    Raises:
        ConfigError: The template names something that `args` does not hold, or there is none.
    """
    if spec.key is None or spec.scope is None:
        raise ConfigError(
            f"tool {spec.name!r} has no effect key", hint="Declare key= and scope= on the tool."
        )
    template = f"{spec.name}:{spec.key}" if spec.key.startswith("{") else spec.key
    business = fill(template, args)
    # The values stand apart in the hash: `a:{x}:{y}` must tell ("b:c", "d") from ("b", "c:d").
    identity = {
        "template": template,
        "values": [_composed(_look_up(name, args)) for name in holes(template)],
        "goal": goal_id if spec.scope == "goal" else None,
    }
    return EffectKey(digest(identity), business)


def _composed(value: Json) -> Json:
    """Return text in its composed form: é is one effect, however a client has typed it."""
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value)
    if isinstance(value, Mapping):
        return {_composed(key): _composed(each) for key, each in value.items()}  # type: ignore[misc]
    return [_composed(each) for each in value] if isinstance(value, (list, tuple)) else value


def fill(template: str, values: Mapping[str, Json]) -> str:
    """Return `template` with each `{dotted.name}` replaced, once: values are not searched again.

    Strings go in as they are, all else as canonical JSON.

    Raises:
        ConfigError: `values` has no such name, or the template holds a brace that is no name.
    """
    return _filled(template, values, _text)


def holes(template: str) -> tuple[str, ...]:
    """Return the dotted names in a template, in order of appearance.

    Raises:
        ConfigError: A brace encloses no name.
    """
    literal = _HOLE.sub("", template)
    if "{" in literal or "}" in literal:
        raise ConfigError(
            f"template {template!r} has a brace that encloses no name",
            hint="Write {name} or {dotted.name}.",
        )
    return tuple(_HOLE.findall(template))


def claims_of(spec: ToolSpec, args: Mapping[str, Json]) -> Claims:
    """Return the resources of a call, from the contract's `reads` and `writes` over `args`.

    Unresolved references may stand in `args`: equal references then give equal keys, and nothing
    follows from different ones.

    Raises:
        ConfigError: As `fill`.
    """
    return Claims(
        frozenset(fill(each, args) for each in spec.reads),
        frozenset(fill(each, args) for each in spec.writes),
    )


def evidence_of(
    spec: ToolSpec, args: Mapping[str, Json], output: Mapping[str, Json]
) -> tuple[str, ...]:
    """Return what a result shows, as evidence references.

    A name is looked up in the result, then in the arguments. A template with a name that neither
    holds, or that is null, or that makes no lawful reference, gives none: nothing was shown. A name
    that stands for a list gives a reference for each element, at most `MOST_REFS`.
    """
    values = {**args, **output}
    found: list[str] = []
    for template in spec.evidence:
        for one in _spread(template, values):
            try:
                found.append(EvidenceRef(ref=_filled(template, one, _quoted)).ref)
            except (ConfigError, ValidationError):
                continue
    return tuple(found)


MOST_REFS = 1_000
"""References that one template gives; what is over the limit was shown and is not referred to."""


def _spread(template: str, values: Mapping[str, Json]) -> Iterator[Mapping[str, Json]]:
    """Yield the values once, or once for each element of the list that the template names."""
    lists = [name for name in dict.fromkeys(holes(template)) if _is_list(values.get(name))]
    if len(lists) != 1:
        yield values
        return
    listed = values[lists[0]]
    for element in listed[:MOST_REFS] if isinstance(listed, Sequence) else ():
        yield {**values, lists[0]: element}


def _is_list(value: Json) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def expected_evidence(spec: ToolSpec, args: Mapping[str, Json]) -> tuple[str, ...]:
    """Return what a result will show, as far as the arguments tell; the rest stays in braces.

    Args:
        spec: The contract.
        args: Those that wait for an earlier step are still references.
    """
    return tuple(
        _HOLE.sub(partial(_foreseen, values), template)
        for template in spec.evidence
        for values in _spread(template, args)
    )


def _foreseen(args: Mapping[str, Json], hole: re.Match[str]) -> str:
    try:
        value = _look_up(hole[1], args)
        return hole[0] if Ref.parse(value) is not None else _quoted(value)
    except ConfigError:
        return hole[0]


def _filled(template: str, values: Mapping[str, Json], text: Callable[[Json], str]) -> str:
    holes(template)
    return _HOLE.sub(lambda match: text(_look_up(match[1], values)), template)


def _look_up(name: str, values: Mapping[str, Json]) -> Json:
    head, *path = name.split(".")
    try:
        return Ref(head, tuple(path)).resolve(values)
    except KeyError as exc:
        raise ConfigError(
            f"template name {name!r} is not there", hint="Use a name of the tool's schema."
        ) from exc


def _text(value: Json) -> str:
    return value if isinstance(value, str) else canonical(value).decode()


def _quoted(value: Json) -> str:
    if value is None:
        raise ConfigError("a null shows nothing", hint="Name a field that is always there.")
    return quote(_text(value), safe="-._~:@,")
