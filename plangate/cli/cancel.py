"""`plangate run cancel`: a person ends a run, whoever is at work on it."""

from __future__ import annotations

from typing import Any

import click

from plangate.cli.options import (
    agent_option,
    journal_option,
    json_option,
    said_again,
    who,
    world_option,
)
from plangate.cli.run import print_run
from plangate.cli.terminal import say
from plangate.plan.errors import EffectUnknown


@click.command()
@click.argument("run_id", metavar="RUN")
@click.option("--reason", metavar="TEXT", default="", help="Recorded with the cancellation.")
@click.option("--by", metavar="NAME", help="Who cancels; default: your user name.")
@click.option(
    "--wait",
    "wait_s",
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for an owner that is at work.",
)
@agent_option(required=False)
@world_option
@journal_option
@json_option
def cancel(run_id: str, agent_name: str | None, journal: str, **how: Any) -> None:
    """End a run: nothing new is begun, reads are broken off, effects under way are waited for.

    What was done stays done and is named in the report. Exit 6 if it is unknown what became of an
    effect. Cancelled twice, it is ended once.
    """
    from plangate.cancel import cancel as cancel_run
    from plangate.cli.opened import reopened
    from plangate.cli.snapshot import snapshot

    with reopened(journal, run_id, agent_name, how["world_url"]) as runtime:
        by = how["by"] or who()
        view = cancel_run(runtime, run_id, by=by, reason=how["reason"], wait_s=how["wait_s"])
        shown = snapshot(runtime.journal, runtime.journal.runs.get(run_id), view)
    print_run(shown, as_json=how["as_json"])
    say(f"see plangate run show {run_id}{said_again()}")
    unknown = view.ended is not None and view.ended.verdict == "unknown"
    click.get_current_context().exit(EffectUnknown.exit_code if unknown else 0)
