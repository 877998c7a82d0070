"""Runs one scenario of an example agent over a fresh goal and a world of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plangate.agent import open_world
from plangate.cli.drive import Driver
from plangate.cli.exits import OK, exit_code
from plangate.cli.opened import demo_journal, demo_world
from plangate.cli.options import DEFAULT_JOURNAL, chosen_prices
from plangate.cli.render_diff import diff_lines
from plangate.cli.render_plan import plan_tree
from plangate.cli.show import sheet_of
from plangate.cli.snapshot import snapshot
from plangate.cli.terminal import data_console, put, talk_console
from plangate.journal.events import PlanProposed, PlanValidated
from plangate.journal.plans import read_plan
from plangate.runtime import Options, Runtime, new_run_id

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from plangate.agent import Agent, Scenario
    from plangate.cli.ask import Asker
    from plangate.journal.events import Entry
    from plangate.journal.view import RunView


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """How a scenario went."""

    run_id: str
    report: dict[str, Any]
    """The run's report with `kept`, `scenario`, `journal`, `world`, and what the world itself shows
    (as `payments`); while it waits, a snapshot."""

    question_id: str = ""
    unlike: str = ""
    """What came out otherwise than the scenario says."""

    exit_code: int = OK

    @property
    def is_waiting(self) -> bool:
        """True if the run has a question that nobody answered."""
        return bool(self.question_id)


def show_scenario(
    agent: Agent,
    scenario: Scenario,
    journal_url: str,
    *,
    asker: Asker,
    quiet: bool,
    chat: Any = None,
) -> Shown:
    """Run a scenario until its end or an open question.

    Args:
        agent: The agent.
        scenario: What happens.
        journal_url: Where the run is recorded.
        asker: Who answers.
        quiet: Print nothing on the way.
        chat: A chat model for model steps; None: the scenario's template needs none.
    """
    run_id = new_run_id()
    if journal_url == DEFAULT_JOURNAL:
        journal_url = demo_journal(run_id)
    world_url = demo_world(journal_url, run_id)
    _prepare(agent, scenario, world_url)
    chosen = Options(world_url=world_url, step_model=chat, prices=chosen_prices())
    runtime = Runtime(agent, journal_url, chosen)
    try:
        view = _run(runtime, scenario, run_id, asker, quiet=quiet)
        if view.ended is None:
            return _open(runtime, view, scenario)
        report = _report(runtime, view, scenario)
    finally:
        runtime.close()
    report |= {"journal": runtime.journal.url, "world": world_url}
    report |= _results(agent, scenario, world_url)
    unlike = _unlike(scenario, report)
    if not scenario.expect:
        return Shown(run_id=run_id, report=report, exit_code=exit_code(view))
    code = (exit_code(view) or 1) if unlike else OK
    return Shown(run_id=run_id, report=report, unlike=unlike, exit_code=code)


def _prepare(agent: Agent, scenario: Scenario, world_url: str) -> None:
    world = open_world(agent.connect, world_url)
    if world is None:
        return
    try:
        world.prepare(scenario.world)
    finally:
        world.close()


def _run(
    runtime: Runtime, scenario: Scenario, run_id: str, asker: Asker, *, quiet: bool
) -> RunView:
    console = talk_console() if quiet else data_console()  # with --json stdout is one object

    shown: set[str] = set()

    def see(entry: Entry) -> None:
        if not quiet:
            shown.update(_show(entry, runtime, run_id, console))

    given = {"goal": scenario.goal, "inputs": dict(scenario.inputs), "task": scenario.task}
    driver = Driver(
        runtime=runtime, asker=asker, quiet=quiet, console=console, on_entry=see, shown=shown
    )
    return driver.drive(run_id, runtime.start(given, run_id=run_id))


def _show(entry: Entry, runtime: Runtime, run_id: str, console: Console) -> Iterator[str]:
    """Show the first plan, also where nobody is asked, and each change; yield what was shown."""
    event = entry.event
    if isinstance(event, PlanProposed) and event.diff is not None:
        changes = runtime.journal.artifacts.get(event.diff)
        put(console, diff_lines(changes if isinstance(changes, dict) else {}))
    if isinstance(event, PlanValidated) and event.version == 1:
        view = runtime.view(run_id)
        plan = read_plan(view, runtime.journal.artifacts.get, 1)
        console.print(plan_tree(sheet_of(runtime, view, plan)))
        yield event.content_hash


def _open(runtime: Runtime, view: RunView, scenario: Scenario) -> Shown:
    run = runtime.journal.runs.get(view.run_id)
    seen = snapshot(runtime.journal, run, view)
    pending = view.pending_questions
    return Shown(
        run_id=run.run_id,
        report={**seen, "scenario": scenario.name, "journal": runtime.journal.url},
        question_id=pending[0].question_id if pending else "",
        exit_code=exit_code(view),
    )


def _report(runtime: Runtime, view: RunView, scenario: Scenario) -> dict[str, Any]:
    assert view.ended is not None, "the caller looked"  # noqa: S101 - ours
    report = runtime.journal.artifacts.get(view.ended.report)
    assert isinstance(report, dict), "settle wrote an object"  # noqa: S101 - ours
    diffs: Any = report["plan_diffs"]
    kept = diffs[-1]["diff"]["kept"] if diffs else []
    return {**report, "kept": kept, "scenario": scenario.name}


def _results(agent: Agent, scenario: Scenario, world_url: str) -> dict[str, Any]:
    """Ask the world itself, not our record of it."""
    world = open_world(agent.connect, world_url)
    if not hasattr(world, "results"):
        return {}
    try:
        shown = dict(world.results(scenario.inputs))
        told = {"told": world.told(scenario.inputs)} if hasattr(world, "told") else {}
        return {**shown, **told}
    finally:
        world.close()


def _unlike(scenario: Scenario, report: dict[str, Any]) -> str:
    """Say what came out otherwise; where a number is expected of a list, its length counts."""
    found = {
        name: len(report[name])
        if isinstance(wanted, int) and isinstance(report.get(name), list)
        else report.get(name)
        for name, wanted in scenario.expect.items()
    }
    return ", ".join(
        f"{name} is {found[name]!r}, not {wanted!r}"
        for name, wanted in scenario.expect.items()
        if found[name] != wanted
    )
