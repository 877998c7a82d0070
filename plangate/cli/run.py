"""`plangate run`: start, resume and look at runs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from plangate.cli.cost import show_day
from plangate.cli.options import (
    PLANS_AND_WORKS,
    WORKS,
    agent_option,
    chat_of,
    goal_option,
    inputs_option,
    journal_option,
    json_option,
    model_option,
    prices_option,
    raise_option,
    said_again,
    who,
    world_option,
    yes_option,
)
from plangate.cli.replay import replay_run
from plangate.cli.terminal import data_console, echo_json, echo_json_line, line, put, say, text
from plangate.plan.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from plangate.cli.follow import Versions
    from plangate.journal.runs import Run
    from plangate.runtime import Runtime

_EVERY_S = 0.2
"""How often `events --follow` looks."""


@click.group()
def run() -> None:
    """Start, resume and look at runs."""


run.add_command(replay_run)
run.add_command(show_day)


@run.command()
@agent_option(required=True)
@goal_option
@inputs_option
@click.option("--goal-id", help="Your own key for the goal: the same key never pays twice.")
@click.option("--task", help="Template to plan with, where there are several.")
@model_option(PLANS_AND_WORKS)
@prices_option
@yes_option
@world_option
@journal_option
@json_option
def start(agent_name: str, yes: bool, journal: str, as_json: bool, **given: Any) -> None:
    """Start a run; it stops where a person has to answer (exit 11)."""
    from plangate.cli.opened import opened_runtime
    from plangate.runtime import Options, new_run_id

    chat = chat_of(given)
    planner = None if given["task"] else chat
    options = Options(model=planner, step_model=chat, world_url=given["world_url"])
    with opened_runtime(agent_name, journal, options) as runtime:
        run_id = new_run_id()
        asked = {name: given[name] for name in ("goal", "inputs", "goal_id", "task") if given[name]}
        stream = runtime.start({"inputs": {}, **asked}, run_id=run_id)
        go_on(runtime, run_id, stream, yes=yes, as_json=as_json)


@run.command()
@click.argument("run_id", metavar="RUN")
@agent_option(required=False)
@model_option(WORKS)
@prices_option
@raise_option
@yes_option
@world_option
@journal_option
@json_option
def resume(run_id: str, agent_name: str | None, journal: str, **how: Any) -> None:
    """Go on with a run that was interrupted, that waits or that stopped at a limit."""
    from plangate.cli.opened import reopened
    from plangate.limits import raise_limits
    from plangate.nodes.madeof import changed_since

    with reopened(journal, run_id, agent_name, how["world_url"], chat_of(how)) as runtime:
        after = runtime.journal.runs.get(run_id).last_seq
        if how["raised"]:
            raise_limits(runtime, run_id, how["raised"], by=who())
        if runtime.waits(run_id):  # nobody goes on with it now, so nobody would say it
            for change in changed_since(runtime.journal, runtime.kit, run_id).reasons:
                say(f"changed since: {change}")
        stream = runtime.advance(run_id)
        go_on(runtime, run_id, stream, yes=how["yes"], as_json=how["as_json"], after=after)


@run.command()
@click.argument("run_id", metavar="RUN")
@click.option("--cost", is_flag=True, help="Estimate against actual, per step and in all.")
@journal_option
@json_option
def show(run_id: str, cost: bool, journal: str, as_json: bool) -> None:
    """Show where a run stands, at any time."""
    if cost:
        from plangate.cli.cost import show_cost

        show_cost(run_id, journal, as_json=as_json)
        return
    from plangate.cli.opened import journal_of, opened_journal
    from plangate.cli.snapshot import snapshot
    from plangate.journal.view import fold

    with opened_journal(journal_of(journal, run_id)) as opened:
        row = opened.runs.get(run_id)
        shown = snapshot(opened, row, fold(opened.log.read(run_id)))
    print_run(shown, as_json=as_json)


@run.command("list")
@click.option("--status", help="planning, waiting, running, stopped or ended.")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 10_000))
@journal_option
@json_option
def list_runs(status: str | None, limit: int, journal: str, as_json: bool) -> None:
    """List runs, newest first; without --journal also those of demos."""
    from plangate.cli.opened import journals, opened_journal
    from plangate.cli.snapshot import run_json

    found: list[Run] = []
    for url in journals(journal):
        with opened_journal(url) as opened:
            found += opened.runs.list(status, limit)  # type: ignore[arg-type]  # it checks the word
    runs = sorted(found, key=lambda run: run.created_at, reverse=True)[:limit]
    if as_json:
        echo_json([run_json(each) for each in runs])
        return
    if not runs:
        say("no runs")
        return
    from plangate.cli.render_run import run_table

    data_console().print(run_table(runs))


@run.command()
@click.argument("run_id", metavar="RUN")
@click.option(
    "--after", default=0, type=click.IntRange(0), help="Only events with a larger number."
)
@click.option("--follow", is_flag=True, help="Go on until the run ends.")
@click.option("--type", "only", multiple=True, metavar="TYPE", help="Only these. Repeatable.")
@journal_option
@json_option
def events(run_id: str, after: int, only: tuple[str, ...], journal: str, **how: bool) -> None:
    """Print the log of a run, one line an event; with --json the events themselves.

    Each says under which version of the plan it happened; v0 is before there was one.
    """
    from plangate.cli.follow import Follower, Versions
    from plangate.cli.opened import journal_of, opened_journal

    _known(only)
    with opened_journal(journal_of(journal, run_id)) as opened:
        opened.runs.get(run_id)
        versions, is_over = Versions(), list[bool]()
        for entry in opened.log.read(run_id, limit=after):
            versions.of(entry)
        show = _printer(only, versions, is_over, as_json=how["as_json"])
        follower = Follower(opened, run_id, show, after)
        follower.look()
        while how["follow"] and not is_over and opened.runs.get(run_id).status != "ended":
            time.sleep(_EVERY_S)
            follower.look()
        follower.look()


def go_on(
    runtime: Runtime,
    run_id: str,
    stream: Iterator[Any],
    *,
    yes: bool,
    as_json: bool,
    after: int = 0,
) -> None:
    """Take a run as far as it goes, print where it stands, and exit accordingly."""
    from plangate.cli.ask import Asker
    from plangate.cli.drive import Driver, say_waiting
    from plangate.cli.exits import exit_code
    from plangate.cli.snapshot import snapshot

    driver = Driver(runtime=runtime, asker=Asker(by=who(), yes=yes), quiet=as_json)
    view = driver.drive(run_id, stream, after=after)
    journal = runtime.journal
    print_run(snapshot(journal, journal.runs.get(run_id), view), as_json=as_json)
    if not view.ended:
        say_waiting(view)
    say(f"see plangate run show {run_id}{said_again()}")
    click.get_current_context().exit(exit_code(view))


def print_run(shown: Mapping[str, Any], *, as_json: bool) -> None:
    """Print a snapshot of a run."""
    if as_json:
        echo_json(shown)
        return
    from plangate.cli.render_run import run_lines

    put(data_console(), run_lines(shown))


def _known(only: tuple[str, ...]) -> None:
    from typing import get_args

    from plangate.journal.events import Event

    union = get_args(Event)[0]
    names = [each.model_fields["type"].default for each in get_args(union)]
    for name in only:
        if name not in names:
            raise ConfigError(f"no event has type {name!r}", hint=f"Types: {', '.join(names)}.")


def _printer(
    only: tuple[str, ...], versions: Versions, is_over: list[bool], *, as_json: bool
) -> Any:
    from plangate.cli.render_events import event_line

    console = data_console()

    def show(entry: Any) -> None:
        version = versions.of(entry)
        if entry.event.type == "run_ended":
            is_over.append(True)
        if only and entry.event.type not in only:
            return
        if as_json:
            echo_json_line({**entry.model_dump(mode="json"), "plan_version": version})
        else:
            says = event_line(entry) or line((f"{entry.at:%H:%M:%S} {entry.event.type}", "dim"))
            put(console, [text(f"{entry.seq:>5} v{version} ") + says])

    return show
