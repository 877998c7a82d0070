"""`plangate run delete` and `plangate run prune`: runs go for good, and nothing of another run."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from plangate.cli.options import journal_option, json_option
from plangate.cli.terminal import echo_json, need_yes, say, visible

if TYPE_CHECKING:
    from plangate.journal.retention import Idle
    from plangate.retention import Pruned, Records

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_rewrite_option = click.option(
    "--no-rewrite",
    is_flag=True,
    help="Do not write the files anew: quicker, and deleted bytes may be left in them.",
)
_sure_option = click.option("--yes", is_flag=True, help="Do not ask whether you are sure.")


@click.command()
@click.argument("run_id", metavar="RUN")
@_sure_option
@_rewrite_option
@journal_option
@json_option
def delete(run_id: str, yes: bool, no_rewrite: bool, journal: str, as_json: bool) -> None:
    """Delete a run: events, artifacts that no other run uses, decisions, checkpoints.

    Of effects that were done, key and state stay, so that they are never done again. Refused while
    somebody is at work on the run, while it is unknown what became of an effect, and while a run
    that follows from it has not ended. Inside another graph, its checkpoints stay in that thread.
    """
    from plangate.cli.opened import journal_of, opened_journal
    from plangate.graph.desk import outer_thread
    from plangate.retention import Pruned, open_records

    url = journal_of(journal, run_id)
    with opened_journal(url) as opened:  # a misspelt path must not make an empty journal
        run = opened.runs.get(run_id)
    if not yes:
        say(f"run {run_id} ({run.status}): {run.goal}")
        need_yes("Delete it for good?", yes=False)
    with open_records(url) as records:
        pruned = Pruned({run_id: records.delete(run_id)}, (), ())
        _finish(records, pruned, rewrite=not no_rewrite, as_json=as_json)
    if outer := outer_thread(run.thread_id):
        say(f"its checkpoints are in thread {outer!r} of the graph around it, and go with that")


def _age(_: click.Context, __: click.Parameter, given: str) -> timedelta:
    match = re.fullmatch(r"(\d{1,6})([smhdw])", given.strip())
    if match is None:
        raise click.BadParameter(f"{given!r} is no age; write it as 30d, 12h or 4w")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


@click.command()
@click.option(
    "--older-than",
    metavar="AGE",
    required=True,
    callback=_age,
    help="Nothing has happened in the run for so long: 30d, 12h, 4w.",
)
@click.option(
    "--status",
    type=click.Choice(["ended", "stopped", "waiting", "planning", "running"]),
    default="ended",
    show_default=True,
)
@click.option("--dry-run", is_flag=True, help="Only list the runs.")
@_sure_option
@_rewrite_option
@journal_option
@json_option
def prune(older_than: timedelta, status: Any, yes: bool, journal: str, **how: bool) -> None:
    """Delete old runs, as run delete does; those that cannot be deleted are named and kept."""
    from plangate.cli.opened import opened_journal
    from plangate.retention import open_records

    with opened_journal(journal):
        pass
    with open_records(journal) as records:
        found = records.idle(older_than, status)
        if how["dry_run"]:
            _list(found, as_json=how["as_json"])
            return
        if found:
            need_yes(f"Delete {len(found)} runs for good?", yes=yes)
        pruned = records.prune(found)
        _finish(records, pruned, rewrite=not how["no_rewrite"], as_json=how["as_json"])


def _list(found: list[Idle], *, as_json: bool) -> None:
    if as_json:
        echo_json({"would_delete": [each.run_id for each in found]})
        return
    for each in found:
        click.echo(visible(each.run_id))
    say(f"{len(found)} runs would be deleted")


def _finish(records: Records, pruned: Pruned, *, rewrite: bool, as_json: bool) -> None:
    """Say what went; the files are written anew last, since that can fail and change nothing."""
    is_clean = bool(pruned.removed) and rewrite and records.rewrite()
    if as_json:
        rows = {run_id: each._asdict() for run_id, each in pruned.removed.items()}
        kept = {each.run_id: each.why for each in pruned.kept}
        echo_json({"deleted": rows, "kept": kept, "gone": pruned.gone, "rewritten": is_clean})
        return
    for run_id, each in pruned.removed.items():
        said = f"{each.events} events, {each.artifacts} artifacts"
        say(f"deleted {run_id}: {said}; {each.kept_effects} effects stay known by their keys")
    for run_id, why in pruned.kept:
        say(f"kept {run_id}: {why}")
    if not any(pruned):
        say("no run is that old")
    for run_id in pruned.gone:
        say(f"{run_id} was deleted by somebody else meanwhile")
    if pruned.removed and not is_clean:
        say("deleted bytes may be left in the files until they are written anew")
