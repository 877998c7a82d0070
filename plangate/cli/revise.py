"""`plangate run revise`: another goal for a run that has not ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from plangate.cli.options import (
    WORKS,
    agent_option,
    change_option,
    chat_of,
    goal_option,
    journal_option,
    json_option,
    model_option,
    said_again,
    who,
    world_option,
    yes_option,
)
from plangate.cli.terminal import need_yes, say

if TYPE_CHECKING:
    from plangate.revise import Proposal


@click.command()
@click.argument("run_id", metavar="RUN")
@goal_option
@change_option
@click.option("--goal-id", default="", help="Your own key for the new goal; default: a new one.")
@click.option("--message-ref", metavar="REF", default="", help="Where the user's words are kept.")
@yes_option
@agent_option(required=False)
@model_option(WORKS)
@world_option
@journal_option
@json_option
def revise(run_id: str, journal: str, **how: Any) -> None:
    """Change the goal of a run: it ends, what it did stays, and a new run plans the new goal.

    You see what will not run and what was done, and confirm. Nothing that was done is undone by
    this: see plangate effects compensate.
    """
    from plangate.cli.opened import reopened
    from plangate.cli.run import go_on
    from plangate.revise import proposed, revise_goal

    with reopened(journal, run_id, how["agent_name"], how["world_url"], chat_of(how)) as runtime:
        seen = proposed(runtime, run_id, how["goal"], how["inputs"])
        _show(run_id, seen)
        need_yes("Operator: change the goal?", yes=how["yes"])
        refs = {"goal_id": how["goal_id"], "message_ref": how["message_ref"]}
        revised = revise_goal(runtime, run_id, seen, by=who(), **refs)
        if any(each.row.state == "done" for each in seen.stands):
            say(f"to take back what was done: plangate effects compensate {run_id}{said_again()}")
        new = runtime.journal.runs.get(revised.run_id)
        say(f"run {new.run_id} takes the new goal on")
        stream = iter(()) if new.status == "ended" else runtime.advance(new.run_id)
        # The plan of the new goal is confirmed by itself: --yes was for the change alone.
        go_on(runtime, new.run_id, stream, yes=False, as_json=how["as_json"], after=new.last_seq)


def _show(run_id: str, seen: Proposal) -> None:
    say(f"run {run_id} ends, and these steps will not run: {', '.join(seen.cancelled) or 'none'}")
    for each in seen.stands:
        shown = each.shown()
        can = f"can be undone by {shown['undo']}" if shown["undo"] else str(shown["why_not"])
        say(f"{each.row.state}: {each.row.business_key}; {can}")
