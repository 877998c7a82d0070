"""`plangate run replay`: what would be done otherwise today than a recorded run did."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from plangate.cli.options import agent_option, chat_of, journal_option, json_option, model_option
from plangate.cli.terminal import count, data_console, echo_json, line, put
from plangate.cli.textfile import read_text
from plangate.plan.errors import ReplayDiffers

if TYPE_CHECKING:
    from plangate.agent import Agent
    from plangate.replay.compare import Difference
    from plangate.replay.drive import Replayed


@click.command("replay")
@click.argument("run_id", metavar="RUN")
@agent_option(required=False)
@click.option(
    "--policy",
    "policy_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Replay under this policy instead of the agent's own.",
)
@model_option("Ask this model to plan anew; it is called. Model steps answer as they did.")
@journal_option
@json_option
def replay_run(
    run_id: str, agent_name: str | None, policy_file: Path | None, journal: str, **how: Any
) -> None:
    """Drive a run again from its record, with no effects, and say what would differ.

    No tool is called and nothing is written: tools and people answer as they did. Exit 0: nothing
    would differ; exit 5: something would, one line each.
    """
    from plangate.cli.opened import agent_of, journal_of, opened_journal
    from plangate.replay.drive import replay

    chat = chat_of(how)
    with opened_journal(journal_of(journal, run_id)) as opened:
        agent = _under(agent_of(opened.runs.get(run_id), agent_name), policy_file)
        replayed = replay(opened, run_id, agent, model=chat)
    if how["as_json"]:
        echo_json(_shown(replayed))
    else:
        _print(replayed)
    if replayed.differences:
        click.get_current_context().exit(ReplayDiffers.exit_code)


def _under(agent_name: str, policy_file: Path | None) -> Agent:
    from plangate.agent import load_agent

    agent = load_agent(agent_name)
    if policy_file is None:
        return agent
    return replace(agent, policy=read_text(policy_file, "policy file", hint="Check the path."))


def _print(replayed: Replayed) -> None:
    found = replayed.differences
    for each in found:
        put(data_console(), [_line(each)])
    said = "would differ" if found else "nothing would differ"
    head = f"{count(replayed.compared, 'event')} of {replayed.run_id} replayed:"
    put(data_console(), [line((head, "bold"), str(len(found)) if found else "", said)])
    put(data_console(), [line(("changed since:", "dim"), each.says) for each in replayed.changes])


def _line(each: Difference) -> Any:
    because = (f"({'; '.join(each.why)})", "dim") if each.why else ""
    return line(
        (each.kind, "bold"), f"{each.about}:", f"was {each.was},", f"would be {each.would}", because
    )


def _shown(replayed: Replayed) -> dict[str, Any]:
    return {
        "run_id": replayed.run_id,
        "same": not replayed.differences,
        "compared": replayed.compared,
        "differences": [
            {
                "kind": each.kind,
                "about": each.about,
                "was": each.was,
                "would": each.would,
                "why": list(each.why),
            }
            for each in replayed.differences
        ],
        "changes": [{"part": each.part, "says": each.says} for each in replayed.changes],
    }
