"""An agent as one frozen value: its contracts, rules and knowledge, but not its world.

Loading an agent opens nothing: a plan can be checked against it with no database driver at hand.
`connect` names the function that opens the world, and it is called at the first tool call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module, resources
from typing import TYPE_CHECKING, Any, TypeAlias

from plangate.plan.errors import ConfigError
from plangate.plan.facts import Rights
from plangate.plan.value.plan import Budget

if TYPE_CHECKING:
    from plangate.tools.tool import Tool

Connect: TypeAlias = str | Callable[[str], Any]
"""`module:function`, or the function: called with a URL, returns the world that tools see as
`ToolContext.world`. A `close()` on it is called at the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One named situation of an example agent, with what must come out of it."""

    name: str
    summary: str
    goal: str
    inputs: Mapping[str, Any]
    world: Mapping[str, Any] = field(default_factory=dict)
    """Switches that `connect(url).prepare(switches)` sets before the run."""

    expect: Mapping[str, Any] = field(default_factory=dict)
    """`ending`, `verdict`, `payments`, `plan_versions`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """Everything that makes one kind of agent.

    Args:
        name: Shown to people and written into the log.
        tools: The tools, from `@tool`.
        policy: TOML text; see `plangate.plan.policy`. There is no default policy.
        templates: YAML texts; see `plangate.plan.templates`.
        repairs: YAML text of known failures and their repairs; see `plangate.plan.repair`.
        connect: How to open the world.
        world_url: Argument of `connect`, unless the caller names another.
        budget: Limits of a run, where the plan's own budget says nothing.
        rights: Who acts, where the caller names nobody.
        scenarios: For demos and tests.
    """

    name: str
    tools: tuple[Tool, ...]
    policy: str
    templates: tuple[str, ...] = ()
    repairs: str = ""
    connect: Connect | None = None
    world_url: str = ""
    budget: Budget = field(default_factory=Budget)
    rights: Rights = field(default_factory=lambda: Rights(principal="local"))
    scenarios: Mapping[str, Scenario] = field(default_factory=dict)


def load_agent(name: str) -> Agent:
    """Find an agent by the name of an example or by `module:attribute`.

    Raises:
        ConfigError: No such module or attribute, or it is not an `Agent`.
    """
    module_name, _, attribute = name.partition(":")
    if not attribute:
        module_name, attribute = f"plangate.examples.{name}.agent", "agent"
    try:
        found = getattr(import_module(module_name), attribute)
    except ModuleNotFoundError as exc:
        if exc.name is None or not f"{module_name}.".startswith(f"{exc.name}."):
            raise  # a missing dependency of the agent's own module is not a misspelt name
        raise ConfigError(
            f"no agent named {name!r}", hint="Name an example (refund) or module:attribute."
        ) from exc
    except AttributeError as exc:
        raise ConfigError(
            f"module {module_name!r} has no attribute {attribute!r}", hint="Check the spelling."
        ) from exc
    if not isinstance(found, Agent):
        raise ConfigError(f"{name!r} is not a plangate Agent", hint="Build it with Agent(...).")
    return found


def open_world(connect: Connect | None, url: str) -> Any:
    """Call `connect`; without one there is no world and tools see None."""
    if connect is None:
        return None
    if callable(connect):
        return connect(url)
    module, _, function = connect.partition(":")
    return getattr(import_module(module), function)(url)


def load_scenarios(package: str) -> dict[str, Scenario]:
    """Read `scenarios/*.yaml` of a package, by name and in order of file name."""
    import yaml

    found: dict[str, Scenario] = {}
    for file in sorted(resources.files(package).joinpath("scenarios").iterdir(), key=str):
        if file.name.endswith(".yaml"):
            scenario = Scenario(**yaml.safe_load(file.read_text(encoding="utf-8")))
            found[scenario.name] = scenario
    return found
