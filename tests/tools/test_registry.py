from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from plangate.plan.catalog import Undo
from plangate.plan.errors import ConfigError
from plangate.tools.registry import Registry
from plangate.tools.tool import Tool, tool


@dataclass
class Done:
    ok: bool


@tool(effect="read")
def look(name: str) -> Done:
    """Look."""
    return Done(ok=True)


@tool(effect="write", key="thing:{name}", scope="goal", undo="delete", scopes=("things:write",))
def create(name: str) -> Done:
    """Create a thing."""
    return Done(ok=True)


@tool(effect="write", key="thing:{name}", scope="goal", scopes=("things:write",))
def delete(name: str) -> Done:
    """Delete a thing."""
    return Done(ok=True)


@tool(effect="write", key="post:{text}", scope="goal")
def post(text: str) -> Done:
    """Post a text."""
    return Done(ok=bool(text))


def named(name: str, undo: str | Undo) -> Tool:
    def body(name: str) -> Done:
        """Do it."""
        return Done(ok=True)

    body.__name__ = name
    return tool(effect="write", key="thing:{name}", scope="goal", undo=undo)(body)


def made(**undo: Any) -> Tool:
    return named("make", undo=Undo(tool="make", **undo))


def test_a_registry_is_a_mapping_of_tools_by_name():
    registry = Registry([look, create, delete])

    assert (len(registry), list(registry)) == (3, ["look", "create", "delete"])
    assert registry["create"] is create


def test_the_catalog_hides_what_the_principal_may_not_use_and_says_why():
    registry = Registry([look, create, delete])

    catalog = registry.catalog(scopes=["other"])

    assert set(catalog.tools) == {"look"}
    assert catalog.forbidden["create"] == "needs scope things:write"
    assert set(registry.catalog().tools) == {"look", "create", "delete"}


def test_a_tool_may_be_listed_twice_but_two_tools_may_not_share_a_name():
    assert len(Registry([look, look])) == 1
    with pytest.raises(ConfigError, match="two tools are named 'create'"):
        Registry([create, delete, named("create", undo="delete")])


@pytest.mark.parametrize(
    ("tools", "says"),
    [
        ([create], "undone by 'delete', which is not here"),
        ([look, named("make", undo="look")], "undone by 'look', which does not act"),
        (
            [look, named("make", undo=Undo(tool="make", look="gone", gone="true"))],
            "'gone', which is",
        ),
        ([named("make", undo=Undo(tool="make", look="make", gone="true"))], "'make', which acts"),
        (
            [named("make", undo=Undo(tool="make", args={"x": "args.name"}))],
            "which it does not take",
        ),
        ([named("make", undo=Undo(tool="make", args={"name": "output.x"}))], "which there is not"),
        ([named("make", undo="post"), post], "'post' needs 'text', which it neither"),
        ([named], "'named' is not a tool"),
    ],
)
def test_a_registry_that_is_not_whole_is_refused(tools, says):
    with pytest.raises(ConfigError, match=says):
        Registry(tools)


def test_no_tool_has_the_name_of_a_kind_of_step():
    @tool(effect="none")
    def model(text: str) -> Done:
        """Stand where policies mean models."""
        return Done(text)

    with pytest.raises(ConfigError, match="'model', like a kind of step"):
        Registry([model])
