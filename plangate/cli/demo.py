"""`plangate demo`: an example agent from goal to verified result, everything shown."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from plangate.cli.options import (
    chat_of,
    journal_option,
    json_option,
    model_option,
    prices_option,
    said_again,
    who,
    yes_option,
)
from plangate.cli.terminal import data_console, echo_json, line, put, say
from plangate.plan.errors import ConfigError, WaitingForPerson

if TYPE_CHECKING:
    from plangate.agent import Scenario
    from plangate.cli.showing import Shown


@click.command()
@click.argument("agent_name", metavar="[AGENT]", default="refund")
@click.option("--scenario", "name", metavar="NAME", help="Which situation; see --list.")
@click.option("--list", "only_list", is_flag=True, help="List the scenarios.")
@click.option(
    "--rows", type=int, metavar="N", help="Of what size the world is, where it has one (aml)."
)
@model_option("Let this model draft, where the agent has a template for that (aml).")
@prices_option
@yes_option
@journal_option
@json_option
def demo(agent_name: str, name: str | None, rows: int | None, journal: str, **how: Any) -> None:
    """Run an example from goal to result.

    It acts on a world of its own, and every part of it is shown. Exit 0 if it ended as the scenario
    says, also where that is a refusal.
    """
    from plangate.agent import load_agent

    agent = load_agent(agent_name)
    if how["only_list"]:
        _list(dict(agent.scenarios), as_json=how["as_json"])
        return
    scenario = _scenario(dict(agent.scenarios), name)
    if rows is not None:
        scenario = replace(scenario, world={**scenario.world, "rows": rows})
    if how["model"]:
        scenario = _with_model(scenario, agent_name)
    chat = chat_of(how)
    from plangate.cli.ask import Asker
    from plangate.cli.showing import show_scenario

    asker, quiet = Asker(by=who(), yes=how["yes"]), how["as_json"]
    shown = show_scenario(agent, scenario, journal, asker=asker, quiet=quiet, chat=chat)
    if shown.is_waiting:
        if how["as_json"]:
            echo_json(shown.report)
        again = said_again("agent", "model", "base-url")
        raise WaitingForPerson(
            f"run {shown.run_id} waits for an answer",
            hint=f"Answer with: plangate approve {shown.question_id}{again}",
        )
    _finish(shown, as_json=how["as_json"])


def _finish(shown: Shown, *, as_json: bool) -> None:
    if as_json:
        echo_json(shown.report)
    else:
        _print(shown)
    if shown.unlike:
        say(f"not as the scenario says: {shown.unlike}")
    click.get_current_context().exit(shown.exit_code)


def _print(shown: Shown) -> None:
    from plangate.cli.render_run import result_lines

    put(data_console(), result_lines(shown.report))
    put(data_console(), (line(each) for each in shown.report.get("told", ())))
    say(f"look closer: plangate run show {shown.run_id}{said_again()}")
    say(f"             plangate run events {shown.run_id}{said_again()}")


def _with_model(scenario: Scenario, agent_name: str) -> Scenario:
    if not scenario.with_model:
        raise ConfigError(
            f"agent {agent_name!r} has no template with model steps",
            hint="Leave out --model; run start --model lets a model plan.",
        )
    return replace(scenario, task=scenario.with_model)


def _scenario(scenarios: dict[str, Scenario], name: str | None) -> Scenario:
    if not scenarios:
        raise ConfigError("this agent has no scenarios", hint="Use plangate run start.")
    if name is None:
        return next(iter(scenarios.values()))
    if name not in scenarios:
        raise ConfigError(
            f"no scenario is named {name!r}", hint=f"Scenarios: {', '.join(scenarios)}."
        )
    return scenarios[name]


def _list(scenarios: dict[str, Scenario], *, as_json: bool) -> None:
    if as_json:
        rows: list[dict[str, Any]] = [
            {"name": each.name, "summary": each.summary, "expect": dict(each.expect)}
            for each in scenarios.values()
        ]
        echo_json(rows)
        return
    put(data_console(), (line((each.name, "bold"), each.summary) for each in scenarios.values()))
