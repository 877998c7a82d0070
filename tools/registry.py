"""The tools of one agent by name: built once and passed in, never filled by importing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from plangate.plan.catalog import Catalog
from plangate.plan.compensation import undo_faults
from plangate.plan.contract import RESERVED
from plangate.plan.errors import ConfigError
from plangate.tools.tool import Tool


class Registry(Mapping[str, Tool]):
    """Tools by name.

    Args:
        tools: All tools of the agent.

    Raises:
        ConfigError: Something is no tool, two share a name, one has the name of a kind of step, or
            an undo is not among them.
    """

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools: dict[str, Tool] = {}
        self._catalogs: dict[frozenset[str] | None, Catalog] = {}
        for each in tools:
            if not isinstance(each, Tool):
                raise ConfigError(
                    f"{getattr(each, '__name__', each)!r} is not a tool",
                    hint='Decorate the function with @tool(effect="...").',
                )
            if each.spec.name in RESERVED:
                raise ConfigError(
                    f"a tool is named {each.spec.name!r}, like a kind of step",
                    hint="Rename it: policies could not tell the two apart.",
                )
            if self._tools.setdefault(each.spec.name, each) is not each:
                raise ConfigError(f"two tools are named {each.spec.name!r}", hint="Rename one.")
        for each in self._tools.values():
            _check_undo(each, self._tools)

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    def catalog(self, scopes: Iterable[str] | None = None) -> Catalog:
        """Return the contracts alone, for code that must not be able to call anything.

        Args:
            scopes: Rights of the principal; tools that need more are listed as forbidden. None:
                all rights.
        """
        held = None if scopes is None else frozenset(scopes)
        if held not in self._catalogs:
            self._catalogs[held] = Catalog.of((each.spec for each in self._tools.values()), held)
        return self._catalogs[held]


def _check_undo(each: Tool, tools: Mapping[str, Tool]) -> None:
    undo = each.spec.undo
    if undo is None:
        return
    for says, hint in undo_faults(each.spec, {name: tool.spec for name, tool in tools.items()}):
        raise ConfigError(f"tool {each.spec.name!r} is undone by {undo.tool!r}, {says}", hint=hint)
