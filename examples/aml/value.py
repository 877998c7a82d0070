"""The base of what tools take and return: closed objects, so that nothing slips through a plan."""

from __future__ import annotations

from pydantic import ConfigDict


class Value:
    """A closed object: a field that is not declared is refused, in results and in arguments."""

    __slots__ = ()
    __pydantic_config__ = ConfigDict(extra="forbid")
