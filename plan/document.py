"""Reads the YAML files that people write for us, as plain data and with lines in every complaint.

Only `true` and `false` are booleans (so `on:` stays a word), dates stay text, a key that occurs
twice is refused, and no tag can build an object.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

import yaml
from pydantic import ValidationError

from plangate.plan.errors import ConfigError
from plangate.plan.value.frozen import Frozen, fault_in_text, parse

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

F = TypeVar("F", bound=Frozen)
_LEFT_OUT = ("tag:yaml.org,2002:bool", "tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:merge")


class _Plain(yaml.SafeLoader):
    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's own way to say what plain words mean
        first: [(tag, pattern) for tag, pattern in found if tag not in _LEFT_OUT]
        for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(
        self,
        node: yaml.MappingNode,
        deep: bool = False,  # noqa: FBT001, FBT002 - PyYAML's signature
    ) -> dict[Hashable, object]:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"key {key.value!r} occurs twice", problem_mark=key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


_Plain.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^(true|false)$"), ["t", "f"])


def read_yaml(kind: type[F], text: str, what: str) -> F:
    """Read one document into a value.

    Args:
        kind: The class of the value.
        text: The file's text.
        what: How messages call the file, as `template`.

    Raises:
        ConfigError: The text is not YAML, or does not fit; with the line of the first fault.
    """
    try:
        data = yaml.load(text, Loader=_Plain)  # noqa: S506 - a SafeLoader
        return parse(kind, {} if data is None else data)
    except ValidationError as exc:
        says = fault_in_text(exc, lambda where: _line_of(text, where))
        raise ConfigError(f"{what} {says}", hint=_HINT) from exc
    except yaml.MarkedYAMLError as exc:
        line = exc.problem_mark.line + 1 if exc.problem_mark else 1
        raise ConfigError(f"{what} line {line}: {exc.problem}", hint="Correct the YAML.") from exc
    except RecursionError as exc:
        raise ConfigError(f"{what} is nested too deeply", hint="Flatten it.") from exc
    except (yaml.YAMLError, ValueError) as exc:
        raise ConfigError(f"{what} is not readable: {exc}", hint="Correct the YAML.") from exc


_HINT = "Correct it; an unknown key is refused, so check its spelling as well."


def _line_of(text: str, where: Sequence[str]) -> int:
    node: yaml.Node | None = yaml.compose(text, Loader=_Plain)
    line = 1
    for part in where:
        found = _child(node, part)
        if found is None:
            break
        line, node = found.start_mark.line + 1, found
    return line


def _child(node: yaml.Node | None, part: str) -> yaml.Node | None:
    if isinstance(node, yaml.SequenceNode) and part.isdecimal():
        found: yaml.Node = node.value[int(part)]
        return found
    if isinstance(node, yaml.MappingNode):
        return next((value for key, value in node.value if key.value == part), None)
    return None
