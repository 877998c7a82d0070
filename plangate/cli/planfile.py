"""Reads plan files for commands: JSON or YAML, told apart by what is in them, `-` for stdin."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ConfigDict

from plangate.plan.document import read_yaml
from plangate.plan.errors import ConfigError, PlanRejected
from plangate.plan.layers.run import read_plan
from plangate.plan.value.frozen import Frozen
from plangate.plan.value.plan import Plan

if TYPE_CHECKING:
    from plangate.plan.issue import Report

LARGEST_BYTES = 64_000_000


def read_file(name: str) -> Plan | Report:
    """Read a plan, or report why what is there is none.

    Raises:
        ConfigError: There is no such file, or it cannot be read as text.
    """
    return read_plan(_data(name, _text(name)))


def need_plan(name: str) -> Plan:
    """Read a plan for a command that can do nothing without one.

    Raises:
        ConfigError: As `read_file`.
        PlanRejected: What is there is no plan.
    """
    found = read_file(name)
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
