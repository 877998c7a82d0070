"""`plangate effects settle`, `reconcile` and `compensate`: what changes a row of the ledger."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from plangate.cli.effects import effect_of
from plangate.cli.options import (
    agent_option,
    journal_option,
    json_option,
    said_again,
    who,
    world_option,
    yes_option,
)
from plangate.cli.terminal import data_console, echo_json, put, say
from plangate.plan.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plangate.journal.ledger import EffectRow
    from plangate.nodes.undo import Candidate
    from plangate.runtime import Runtime

_by_option = click.option("--by", metavar="NAME", help="Who says so; default: your user name.")


@click.command()
@click.argument("name", metavar="KEY")
@click.option(
    "--as", "state", type=click.Choice(["done", "failed"]), required=True, help="What became of it."
)
@click.option(
    "--evidence", metavar="TEXT", required=True, help="What you saw and where; a reference is fine."
)
@click.option("--output", metavar="JSON", help="What the tool would have returned, if it is done.")
@click.option("--role", metavar="ROLE", default="", help="In which role you decide.")
@_by_option
@agent_option(required=False)
@world_option
@journal_option
@json_option
def settle(name: str, journal: str, **how: Any) -> None:
    """Say what became of an effect of which nobody knows whether it happened.

    It counts as the answer to the run's question about it; then: plangate run resume RUN.
    """
    from plangate.cli.opened import reopened
    from plangate.effects import run_of_effect, settle_effect
    from plangate.nodes.follow import Word

    output = None if how["output"] is None else _json(how["output"])
    url, row = effect_of(journal, name)
    word = Word(how["state"], how["by"] or who(), how["evidence"], output)
    with reopened(url, run_of_effect(row), how["agent_name"], how["world_url"]) as runtime:
        now = settle_effect(runtime, row.effect_key, word, role=how["role"])
        _told(runtime, now, as_json=how["as_json"])


@click.command()
@click.argument("name", metavar="KEY")
@_by_option
@agent_option(required=False)
@world_option
@journal_option
@json_option
def reconcile(name: str, journal: str, **how: Any) -> None:
    """Ask the outside what became of an effect; nothing is done there (exit 6: it cannot say)."""
    from plangate.cli.opened import reopened
    from plangate.effects import reconcile as reconciled
    from plangate.effects import run_of_effect

    url, row = effect_of(journal, name)
    with reopened(url, run_of_effect(row), how["agent_name"], how["world_url"]) as runtime:
        now = reconciled(runtime, row.effect_key, by=how["by"] or who())
        _told(runtime, now, as_json=how["as_json"])


@click.command()
@click.argument("name", metavar="RUN|KEY")
@click.option("--only", metavar="KEY", multiple=True, help="Undo only this effect. Repeatable.")
@yes_option
@agent_option(required=False)
@world_option
@journal_option
@json_option
def compensate(name: str, only: tuple[str, ...], journal: str, **how: Any) -> None:
    """Take back what a run did, newest first, by a plan of its own that a person approves.

    The run must have ended. What cannot be undone is named and left to people.
    """
    from plangate.cli.opened import reopened
    from plangate.cli.run import go_on
    from plangate.compensate import compensate as begin
    from plangate.effects import effect_named

    url, run_id, named = _meant(journal, name, only)
    with reopened(url, run_id, how["agent_name"], how["world_url"]) as runtime:
        keys = [effect_named(runtime.journal, each).effect_key for each in named]
        begun = begin(runtime, run_id, keys, by=who())
        _say_left(begun.left)
        say(f"run {begun.run_id} takes back {len(begun.effects)} of what run {run_id} did")
        after = runtime.journal.runs.get(begun.run_id).last_seq
        stream = runtime.advance(begun.run_id)
        go_on(runtime, begun.run_id, stream, yes=how["yes"], as_json=how["as_json"], after=after)


def _meant(journal: str, name: str, only: tuple[str, ...]) -> tuple[str, str, tuple[str, ...]]:
    """Tell a run from an effect, which stands for its run and itself alone."""
    from plangate.cli.opened import journal_of, opened_journal
    from plangate.effects import run_of_effect

    url = journal_of(journal, name)
    try:
        with opened_journal(url) as opened:
            return url, opened.runs.get(name).run_id, only
    except ConfigError as exc:
        try:
            url, row = effect_of(journal, name)
        except ConfigError:
            raise exc from None
    return url, run_of_effect(row), (*only, row.effect_key)


def _say_left(left: Sequence[Candidate]) -> None:
    for each in left:
        shown = each.shown()
        if shown["why_not"]:
            say(f"left: {each.row.business_key}: {shown['why_not']} ({shown['code']})")
        else:
            say(f"left: {each.row.business_key}, since only others were named")


def _told(runtime: Runtime, row: EffectRow, *, as_json: bool) -> None:
    from plangate.cli.render_run import effect_line
    from plangate.cli.snapshot import effect_json

    if as_json:
        echo_json(effect_json(row))
    else:
        put(data_console(), [effect_line(effect_json(row))])
    run = runtime.journal.runs.get(row.run_id)
    if run.status != "ended":
        say(f"go on with: plangate run resume {run.run_id}{said_again('agent', 'world')}")


def _json(said: str) -> Any:
    try:
        return json.loads(said)
    except ValueError as exc:
        raise ConfigError("--output is not JSON", hint='Write {"name": "value"}.') from exc
