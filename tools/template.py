"""Templates over arguments and results (`refund:{order_id}`) are checked when a tool is declared.

A name that is not there would otherwise show up in the middle of a run, after the plan was
approved. What an argument template names must be a required argument, since an effect's identity
cannot hang on something that a plan may leave out.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from plangate.plan.effects import holes
from plangate.plan.errors import ConfigError
from plangate.plan.shape.shape import compile_shape
from plangate.plan.shape.value import Missing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from plangate.tools.signature import Signature

_EVIDENCE = re.compile(r"[a-z][a-z0-9+.-]*://\S+")


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
    try:
        return tuple(tuple(each.split(".")) for each in holes(template))
    except ConfigError as exc:
        raise ConfigError(f"tool {name!r}: {field}: {exc}", hint=exc.hint) from exc


def _arguments(signature: Signature) -> str:
    names = ", ".join(sorted(signature.params["properties"])) or "none"
    return f"Its arguments are: {names}."
