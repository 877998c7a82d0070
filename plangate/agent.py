"""An agent as one frozen value: its contracts, rules and knowledge, but not its world.

Loading an agent opens nothing: a plan can be checked against it with no database driver at hand.
`connect` names the function that opens the world, and it is called at the first tool call.
"""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module, resources
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias

from plangate.plan.errors import ConfigError, PlangateError
from plangate.plan.facts import Rights
from plangate.plan.value.plan import Budget

if TYPE_CHECKING:
    from plangate.budget.prices import PriceBook
    from plangate.tools.credentials import Credentials, Granted, Wanted
    from plangate.tools.tool import Tool

Connect: TypeAlias = str | Callable[[str], Any]
"""`module:function`, or the function: called with a URL, returns the world that tools see as
`ToolContext.world`. A `close()` on it is called at the end."""

Lend: TypeAlias = "str | Credentials"
"""`module:function`, or the function: see `plangate.tools.credentials.Credentials`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One named situation of an example agent, with what must come out of it."""

    name: str
    summary: str
    goal: str
    inputs: Mapping[str, Any]
    task: str = ""
    """Template to plan with, where the agent has several."""

    with_model: str = ""
    """The same where a model is at hand: a template with model steps. Empty: there is none."""

    world: Mapping[str, Any] = field(default_factory=dict)
    """Switches that `connect(url).prepare(switches)` sets before the run."""

    expect: Mapping[str, Any] = field(default_factory=dict)
    """By field of the report, or by what `results(inputs)` of the world returns; a number stands
    for the length of a list: `ending`, `verdict`, `payments`, `plan_versions`."""


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
        credentials: Who gives credentials, call by call; see `plangate.tools.credentials`.
        step_model: A LangChain chat model that carries model steps out; None: the model that plans,
            where there is one.
        critic: A chat model that reads plans before people do; None: the caller's, where it names
            one.
        judge: A chat model that decides checks of level L3; None: the same.
        budget: Limits of a run, where the plan's own budget says nothing.
        prices: What models cost; None: the packaged table alone.
        rights: Who acts, where the caller names nobody.
        scenarios: For demos and tests.

    Raises:
        ConfigError: Where texts or tools are expected, there is something else.
    """

    name: str
    tools: tuple[Tool, ...]
    policy: str
    templates: tuple[str, ...] = ()
    repairs: str = ""
    connect: Connect | None = None
    world_url: str = ""
    credentials: Lend | None = None
    step_model: Any = None
    critic: Any = None
    judge: Any = None
    budget: Budget = field(default_factory=Budget)
    prices: PriceBook | None = None
    rights: Rights = field(default_factory=lambda: Rights(principal="local"))
    scenarios: Mapping[str, Scenario] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("tools", "templates"):
            object.__setattr__(self, name, several(name, getattr(self, name)))
        for name, said in (("policy", self.policy), *(("template", t) for t in self.templates)):
            _need_text(name, said)
        for role in ("step_model", "critic", "judge"):
            need_chat(role, getattr(self, role))
        need_prices(self.prices)


def need_chat(role: str, chat: Any) -> None:
    """Refuse what is no chat model.

    Args:
        role: The keyword that it was given as.
        chat: None is none, and no fault.

    Raises:
        ConfigError: It cannot be asked.
    """
    if chat is None or callable(getattr(chat, "ainvoke", None)):
        return
    hint = 'Pass a LangChain chat model, as ChatOpenAI(model="..."), or None.'
    if not isinstance(chat, str):
        hint += " Tools go to tools=[...]."
    raise ConfigError(f"{role}= is of type {type(chat).__name__}, not a chat model", hint=hint)


def need_prices(given: object) -> None:
    """Refuse what is no price book.

    Raises:
        ConfigError: It says how to make one.
    """
    from plangate.budget.prices import PriceBook

    if given is not None and not isinstance(given, PriceBook):
        raise ConfigError(
            f"prices= is of type {type(given).__name__}, not a PriceBook",
            hint='Write PriceBook({"my-model": {"input": "0.25", "output": "2"}}).',
        )


def several(name: str, given: object) -> tuple[Any, ...]:
    """Return what a keyword lists; one text or one tool is no list of it.

    Raises:
        ConfigError: It is a single thing.
    """
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ConfigError(f"{name}= is a single thing, not a list", hint=f"Write {name}=[...].")
    return tuple(given)


def _need_text(name: str, said: object) -> None:
    if isinstance(said, str) and not ("\n" not in said and said.endswith(_SUFFIXES)):
        return
    file = said if isinstance(said, str) else f"{name}{_SUFFIXES[0 if name == 'policy' else 1]}"
    raise ConfigError(
        f"the {name} is {said!r:.80}, not the text of one",
        hint=f'Read its file: Path("{file}").read_text().',
    )


_SUFFIXES = (".toml", ".yaml", ".yml")


def load_agent(name: str) -> Agent:
    """Find an agent by the name of an example or by `module:attribute`.

    Raises:
        ConfigError: No such module or attribute, it cannot be imported, or it is not an `Agent`.
    """
    module_name, colon, attribute = name.partition(":")
    if not colon:
        module_name, attribute = f"plangate.examples.{name}.agent", "agent"
    if not all(part.isidentifier() for part in (*module_name.split("."), attribute)):
        raise _nowhere(name)
    found = getattr(_module(name, module_name), attribute, None)
    if isinstance(found, Agent):
        return found
    if found is None:
        raise ConfigError(
            f"module {module_name!r} has no attribute {attribute!r}", hint="Check the spelling."
        )
    raise ConfigError(
        f"{name!r} is of type {type(found).__name__}, not a plangate Agent",
        hint="Name an Agent(...); a graph of create_plan_agent has the same keywords.",
    )


def _module(name: str, module_name: str) -> Any:
    try:
        return import_module(module_name)
    except PlangateError:
        raise  # it says itself what is wrong with which tool
    except ModuleNotFoundError as exc:
        if exc.name is not None and f"{module_name}.".startswith(f"{exc.name}."):
            raise _nowhere(name) from exc
        raise _broken(module_name, exc) from exc
    except Exception as exc:
        raise _broken(module_name, exc) from exc


def _nowhere(name: str) -> ConfigError:
    stem = name.partition(":")[0].removesuffix(".py").rpartition("/")[2]
    like = stem if stem.isidentifier() else "letters"
    return ConfigError(
        f"no agent named {name!r}",
        hint=f"Name an example (refund, aml) or module:attribute, as {like}:agent.",
    )


def _broken(module_name: str, exc: Exception) -> ConfigError:
    """Say where the caller's own module breaks, as a mistake in it is not a bug of ours."""
    spec = find_spec(module_name)
    frames = traceback.extract_tb(exc.__traceback__)
    at = [each.lineno for each in frames if spec is not None and each.filename == spec.origin]
    where = f" at line {at[-1]}" if at else ""
    return ConfigError(
        f"module {module_name!r} cannot be imported{where}: {type(exc).__name__}: {exc}",
        hint=f"Correct it; python -c 'import {module_name}' shows the whole traceback.",
    )


def open_world(connect: Connect | None, url: str) -> Any:
    """Call `connect`; without one there is no world and tools see None."""
    if connect is None:
        return None
    if callable(connect):
        return connect(url)
    module, _, function = connect.partition(":")
    return getattr(import_module(module), function)(url)


def lender(credentials: Lend | None) -> Credentials | None:
    """Return who gives credentials; what is named by text is loaded when it is first asked."""
    if not isinstance(credentials, str):
        return credentials
    module, _, function = credentials.partition(":")

    def lend(wanted: Wanted) -> Granted | Awaitable[Granted]:
        given: Granted | Awaitable[Granted] = getattr(import_module(module), function)(wanted)
        return given

    return lend


def load_scenarios(package: str) -> dict[str, Scenario]:
    """Read `scenarios/*.yaml` of a package, by name and in order of file name."""
    import yaml

    found: dict[str, Scenario] = {}
    for file in sorted(resources.files(package).joinpath("scenarios").iterdir(), key=str):
        if file.name.endswith(".yaml"):
            scenario = Scenario(**yaml.safe_load(file.read_text(encoding="utf-8")))
            found[scenario.name] = scenario
    return found
