"""Opens what a command works on: a journal, or an agent over its journal, and closes it again."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plangate.cli.options import DEFAULT_JOURNAL, chosen_prices
from plangate.plan.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plangate.journal.journal import Journal
    from plangate.journal.runs import Run
    from plangate.plan.value.plan import Plan
    from plangate.runtime import Options, Runtime

DEMOS = Path(".plangate/demo")
NEWEST = 50
"""Demos that are looked at where no run is named."""


@contextmanager
def opened_journal(url: str) -> Iterator[Journal]:
    """Open a journal for reading, or for decisions.

    Raises:
        ConfigError: There is none at that place: a misspelt path must not make an empty one.
        JournalError: It cannot be opened.
    """
    from plangate.journal.journal import Journal

    path = file_of(url)
    if path is not None and not path.exists():
        raise ConfigError(
            f"there is no journal at {url}",
            hint="Check --journal and PLANGATE_JOURNAL, or start a run.",
        )
    with Journal.open(url) as journal:
        yield journal


def journals(url: str) -> tuple[str, ...]:
    """Return the journals to look at where no run is named: the named one, or ours and the demos'.

    The newest demos come first, and old ones are left out: each is a file to open.
    """
    if url != DEFAULT_JOURNAL:
        return (url,)
    islands = sorted(DEMOS.glob("*/journal.db"), key=lambda at: at.stat().st_mtime, reverse=True)
    path = file_of(url)
    own = (url,) if not islands or (path is not None and path.exists()) else ()
    return (*own, *(f"sqlite:///{at}" for at in islands[:NEWEST]))


@contextmanager
def opened_runtime(agent: str, journal_url: str, options: Options) -> Iterator[Runtime]:
    """Open an agent over a journal, which is made if it is not there.

    Raises:
        ConfigError: No such agent.
        JournalError: The journal cannot be opened.
    """
    from plangate.agent import load_agent
    from plangate.runtime import Runtime

    options = replace(options, prices=options.prices or chosen_prices())
    runtime = Runtime(load_agent(agent), journal_url, options)
    try:
        yield runtime
    finally:
        runtime.close()


@contextmanager
def reopened(
    journal_url: str, run_id: str, agent: str | None, world_url: str | None, chat: Any = None
) -> Iterator[Runtime]:
    """Open the agent of a run that exists, over the world that the run acts on.

    A chat model carries model steps out; a run that was given a template goes on planning with it.

    Raises:
        ConfigError: No such run, its agent is not known here, or another one was named.
    """
    from plangate.journal.view import fold
    from plangate.runtime import Options

    journal_url = journal_of(journal_url, run_id)
    with opened_journal(journal_url) as journal:
        run = journal.runs.get(run_id)
        task = fold(journal.log.read(run_id)).task if chat is not None else ""
    world = world_url or _demo_world(journal_url, run_id)
    named = agent_of(run, agent)
    options = Options(model=None if task else chat, step_model=chat, world_url=world)
    with opened_runtime(named, journal_url, options) as runtime:
        _need_same(runtime, run, named)
        yield runtime


def demo_journal(run_id: str) -> str:
    """Return the journal of a demo run whose caller names none.

    Each such run is an island. A world that is made anew has not seen the payments of earlier
    demos, while a journal that they share has: it would rightly refuse to pay for an order again.
    """
    return f"sqlite:///{DEMOS / run_id / 'journal.db'}"


def demo_world(journal_url: str, run_id: str) -> str:
    """Return where the world of a demo run is: beside its journal, so that a resume finds it."""
    place = (file_of(journal_url) or DEMOS.parent / "journal.db").absolute().parent
    if place.name != run_id:
        place = place / "demo" / run_id
    return f"sqlite:///{place / 'world.db'}"


def journal_of(journal_url: str, run_id: str) -> str:
    """Return the journal that holds a run: the island of a demo, or the one that was named."""
    island = demo_journal(run_id)
    path = file_of(island)
    is_there = path is not None and "/" not in run_id and path.exists()
    return island if journal_url == DEFAULT_JOURNAL and is_there else journal_url


def plan_of(journal_url: str, run_id: str, version: int | None = None) -> Plan:
    """Return a version of a run's plan; None: the newest.

    Raises:
        ConfigError: No such run or version.
    """
    from plangate.journal.plans import read_plan
    from plangate.journal.view import fold

    with opened_journal(journal_of(journal_url, run_id)) as journal:
        journal.runs.get(run_id)
        view = fold(journal.log.read(run_id))
        proposed = view.plans.get(version or view.version)
        if proposed is None:
            known = ", ".join(map(str, view.plans)) or "none"
            raise ConfigError(
                f"run {run_id} has no plan version {version or ''}".rstrip(),
                hint=f"Versions: {known}.",
            )
        return read_plan(view, journal.artifacts.get, proposed.version)


def file_of(url: str) -> Path | None:
    """Return the file behind an SQLite URL; None for another database."""
    if not url.startswith("sqlite:///"):
        return None
    return Path(url.removeprefix("sqlite:///")).expanduser()


def _demo_world(journal_url: str, run_id: str) -> str | None:
    url = demo_world(journal_url, run_id)
    path = file_of(url)
    return url if path is not None and path.exists() else None


def _need_same(runtime: Runtime, run: Run, named: str) -> None:
    """Another agent has other tools: with it the run would fail, for good, at its next step.

    `create_plan_agent` gives an agent any name, so one with the same contracts is the same.
    """
    if runtime.agent.name == run.agent:
        return
    view = runtime.view(run.run_id)
    checked = view.validated.get(view.version)
    here = runtime.kit.registry.catalog(run.principal.scopes).content_hash
    if checked is None or checked.catalog_hash != here:
        raise ConfigError(
            f"run {run.run_id} is of agent {run.agent!r}, and {named} is agent"
            f" {runtime.agent.name!r} with other tools",
            hint="Name the agent that the run was started with.",
        )


def agent_of(run: Run, named: str | None) -> str:
    """Return the name of a run's agent, to load it by.

    Raises:
        ConfigError: The run's agent is no example, and no other was named.
    """
    from plangate.agent import load_agent

    if named:
        return named
    try:
        load_agent(run.agent)
    except ConfigError as exc:
        raise ConfigError(
            f"run {run.run_id} is of agent {run.agent!r}, which is no example",
            hint="Name it: --agent module:attribute.",
        ) from exc
    return run.agent
