"""Reads plan files for commands: JSON or YAML, told apart by what is in them, `-` for stdin."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pydantic import ConfigDict

from plangate.cli.textfile import read_text
from plangate.plan.document import read_yaml
from plangate.plan.errors import ConfigError, PlanRejected
from plangate.plan.foreign import Mapped, form_of, import_plan, mapped
from plangate.plan.layers.run import read_plan
from plangate.plan.layers.schema import formless
from plangate.plan.value.frozen import Frozen, load_json
from plangate.plan.value.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plangate.plan.catalog import Catalog
    from plangate.plan.issue import Report
    from plangate.plan.value.frozen import Json

_HINT = "Give a file, or - for stdin."
_GOAL_ID = "unset"
"""Of a foreign plan, which has none; no part of its content hash."""


class Found(NamedTuple):
    """What is in a plan file."""

    plan: Plan | Report
    """A report says why it is no plan."""

    mapped: Mapped | None = None
    """How it was read where it has the form of somebody else."""


def read_file(name: str, catalog: Catalog, inputs: Mapping[str, Json]) -> Found:
    """Read a plan of our form or of a foreign one, or report why what is there is none.

    Args:
        name: The file.
        catalog: Gives the arguments of a foreign plan their names.
        inputs: What the user gave, for a foreign plan, which only refers to it.

    Raises:
        ConfigError: There is no such file, it cannot be read as text, or inputs were given for a
            plan that has its own.
    """
    data = _data(name, read_text(name, "plan file", hint=_HINT))
    ours = read_plan(data)
    foreign = None if isinstance(ours, Plan) else _foreign(data)
    if foreign is not None:
        plan = import_plan(foreign, catalog, goal_id=_GOAL_ID, inputs=inputs)
        return Found(plan, mapped(foreign))
    if inputs:
        raise ConfigError(
            f"plan file {name!r} has its own inputs",
            hint="Leave --input out, or change the file.",
        )
    return Found(ours)


def _foreign(data: object) -> object | None:
    """Return plain data of a foreign form; None: it is of none."""
    try:
        plain = load_json(data) if isinstance(data, str) else data
    except ValueError:
        return None
    return None if form_of(plain) is None else plain


def need_plan(name: str) -> Plan:
    """Read a plan for a command that can do nothing without one.

    Raises:
        ConfigError: As `read_file`.
        PlanRejected: What is there is no plan.
    """
    found = read_plan(_data(name, read_text(name, "plan file", hint=_HINT)))
    errors = tuple(formless(found)) if isinstance(found, Plan) else found.errors
    if not isinstance(found, Plan) or errors:
        raise PlanRejected(errors, hint=f"See plangate plan check {name}.")
    return found


def _data(name: str, said: str) -> object:
    """JSON goes on as text, since its reader is the stricter one; YAML as plain data."""
    if said.lstrip().startswith(("{", "[")):
        return said
    return read_yaml(_Document, said, f"plan file {name!r}").model_extra


class _Document(Frozen):
    """Any mapping: what it may hold is for the first layer of validation to say."""

    model_config = ConfigDict(extra="allow")
