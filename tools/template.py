"""Templates over arguments and results (`refund:{order_id}`) are checked when a tool is declared.

A name that is not there would otherwise show up in the middle of a run, after the plan was
approved. What an argument template names must be a required argument, since an effect's identity
cannot hang on something that a plan may leave out.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from plangate.plan.errors import ConfigError
from plangate.plan.shape.shape import compile_shape
from plangate.plan.shape.value import Missing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from plangate.tools.signature import Signature

_HOLE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_-]+)*)\}")
_EVIDENCE = re.compile(r"[a-z][a-z0-9+.-]*://\S+")


def holes(template: str) -> tuple[tuple[str, ...], ...]:
    """Return the dotted names in a template, split at the dots, in order of appearance."""
    return tuple(tuple(name.split(".")) for name in _HOLE.findall(template))


def check_identity(name: str, field: str, templates: Iterable[str], signature: Signature) -> None:
    """Refuse a template that names anything but required arguments.

    Args:
        name: The tool.
        field: `key`, `reads` or `writes`.
        templates: The templates under that field.
        signature: The tool's schemas.

    Raises:
        ConfigError: Names the tool, the template and the part of it that is wrong.
    """
    for template in templates:
        for path in _paths(name, field, template):
            if not knows(signature.params, path):
                raise ConfigError(
                    f"tool {name!r}: {field} {template!r} names {'.'.join(path)!r}, "
                    "which is not an argument",
                    hint=_arguments(signature),
                )
            if path[0] not in signature.params.get("required", ()):
                raise ConfigError(
                    f"tool {name!r}: {field} {template!r} names {path[0]!r}, which has a default",
                    hint="Make that argument required, or leave it out of the template.",
                )


def check_evidence(name: str, templates: Iterable[str], signature: Signature) -> None:
    """Refuse an evidence template that is no reference or names an unknown field.

    Raises:
        ConfigError: As `check_identity`; names may also be fields of the result.
    """
    for template in templates:
        if _EVIDENCE.fullmatch(template) is None:
            raise ConfigError(
                f"tool {name!r}: evidence {template!r} is not a reference",
                hint="Write scheme://id?version=N#part, as order://{order_id}?version={version}.",
            )
        for path in _paths(name, "evidence", template):
            if not (knows(signature.output, path) or knows(signature.params, path)):
                fields = ", ".join(sorted(signature.output["properties"]))
                raise ConfigError(
                    f"tool {name!r}: evidence {template!r} names {'.'.join(path)!r}, "
                    "which is neither a field of the result nor an argument",
                    hint=f"The result has: {fields}. {_arguments(signature)}",
                )


def knows(schema: Mapping[str, Any], path: tuple[str, ...]) -> bool:
    """True if a value of this schema can have something at that path."""
    return not isinstance(compile_shape(schema).at(path), Missing)


def _paths(name: str, field: str, template: str) -> tuple[tuple[str, ...], ...]:
    if re.search(r"[{}]", _HOLE.sub("", template)):
        raise ConfigError(
            f"tool {name!r}: {field} {template!r} has a brace that holds no name",
            hint="Write names in braces, as {order_id} or {order.version}.",
        )
    return holes(template)


def _arguments(signature: Signature) -> str:
    names = ", ".join(sorted(signature.params["properties"])) or "none"
    return f"Its arguments are: {names}."
