"""Reads plan files for commands: JSON or YAML, told apart by what is in them, `-` for stdin."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pydantic import ConfigDict

from plangate.plan.document import read_yaml
from plangate.plan.errors import ConfigError, PlanRejected
from plangate.plan.foreign import Mapped, form_of, import_plan, mapped
from plangate.plan.layers.run import read_plan
from plangate.plan.value.frozen import Frozen, load_json
from plangate.plan.value.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plangate.plan.catalog import Catalog
    from plangate.plan.issue import Report
    from plangate.plan.value.frozen import Json

_GOAL_ID = "unset"
"""Of a foreign plan, which has none; no part of its content hash."""

LARGEST_BYTES = 64_000_000


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
    data = _data(name, _text(name))
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
    found = read_plan(_data(name, _text(name)))
    if not isinstance(found, Plan):
        raise PlanRejected(found.errors, hint=f"See plangate plan check {name}.")
    return found


def _text(name: str) -> str:
    try:
        if name == "-":
            said = sys.stdin.buffer.read(LARGEST_BYTES + 1)
        else:
            with Path(name).open("rb") as file:
                said = file.read(LARGEST_BYTES + 1)
    except OSError as exc:
        raise ConfigError(
            f"plan file {name!r} cannot be read: {exc.strerror}",
            hint="Give a file, or - for stdin.",
        ) from exc
    if len(said) > LARGEST_BYTES:
        raise ConfigError(
            f"plan file {name!r} is larger than {LARGEST_BYTES} bytes", hint="Split the plan."
        )
    try:
        return str(said, "utf-8-sig")
    except UnicodeDecodeError as exc:
        raise ConfigError(
            f"plan file {name!r} is not UTF-8 at byte {exc.start}", hint="Save it as UTF-8."
        ) from exc


def _data(name: str, said: str) -> object:
    """JSON goes on as text, since its reader is the stricter one; YAML as plain data."""
    if said.lstrip().startswith(("{", "[")):
        return said
    return read_yaml(_Document, said, f"plan file {name!r}").model_extra


class _Document(Frozen):
    """Any mapping: what it may hold is for the first layer of validation to say."""

    model_config = ConfigDict(extra="allow")
