"""`plangate effects`: what the outside world remembers of our runs, as the ledger has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import click

from plangate.cli.options import agent_option, journal_option, json_option, said_again
from plangate.cli.terminal import data_console, echo_json, put, say
from plangate.plan.errors import ConfigError

if TYPE_CHECKING:
    from plangate.journal.ledger import EffectRow


@click.group()
def effects() -> None:
    """Look at the effect ledger; settle, reconcile, take back."""


@effects.command("list")
@click.option("--run", "run_id", metavar="RUN", help="Only of this run.")
@click.option("--state", help="intended, accepted, done, failed, unknown or compensated.")
@journal_option
@json_option
def list_effects(run_id: str | None, state: str | None, journal: str, as_json: bool) -> None:
    """List effects, oldest first; without --journal also those of demos."""
    from plangate.cli.opened import journal_of, journals, opened_journal
    from plangate.cli.snapshot import effect_json
    from plangate.plan.outcome import EffectState

    if state is not None and state not in get_args(EffectState):
        known = ", ".join(get_args(EffectState))
        raise ConfigError(f"no effect has state {state!r}", hint=f"States: {known}.")
    found: list[EffectRow] = []
    for url in (journal_of(journal, run_id),) if run_id else journals(journal):
        with opened_journal(url) as opened:
            if run_id is not None:
                opened.runs.get(run_id)
            found += opened.ledger.list(run_id=run_id, state=state)  # type: ignore[arg-type]
    rows = [effect_json(row) for row in sorted(found, key=lambda row: row.created_at)]
    if as_json:
        echo_json(rows)
        return
    if not rows:
        say("no effects")
        return
    from plangate.cli.render_run import effect_line

    put(data_console(), map(effect_line, rows))


@effects.command()
@click.argument("name", metavar="KEY")
@agent_option(required=False)
@journal_option
@json_option
def show(name: str, agent_name: str | None, journal: str, as_json: bool) -> None:
    """Show one effect: its history, who allowed it, and what can be done about it.

    KEY is an effect key, its first eight or more digits, or a business key as refund:ORD-1.
    """
    from plangate.cli.effect_story import story, story_lines
    from plangate.cli.opened import opened_journal

    url, row = effect_of(journal, name)
    with opened_journal(url) as opened:
        told = story(opened, row, agent_name, said_again("agent"))
    if as_json:
        echo_json(told)
        return
    put(data_console(), story_lines(told))


def effect_of(journal: str, name: str) -> tuple[str, EffectRow]:
    """Return the one effect that is named, and its journal; without --journal also in demos.

    Raises:
        ConfigError: There is none, or there are several.
    """
    from plangate.cli.opened import journals, opened_journal
    from plangate.effects import only_one

    found: dict[str, tuple[str, EffectRow]] = {}
    for url in journals(journal):
        with opened_journal(url) as opened:
            found |= {f"{url} {row.effect_key}": (url, row) for row in opened.ledger.named(name)}
    only_one(name, [row for _, row in found.values()])
    return next(iter(found.values()))
