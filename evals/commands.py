"""`plangate eval`: measure what plangate says of itself. Loaded only when it is asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from plangate.cli.options import (
    agent_option,
    chat_of,
    json_option,
    model_option,
    prices_option,
)
from plangate.cli.terminal import data_console, echo_json, line, put
from plangate.cli.textfile import write_text
from plangate.plan.errors import Denied

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from plangate.evals.estimates import Accuracy


@click.group("eval")
def evaluate() -> None:
    """Measure whether plangate keeps what it says."""


@evaluate.command()
@agent_option(required=False)
@click.option("--runs", default=5, show_default=True, type=click.IntRange(1, 1_000),
              help="Of each scenario.")  # fmt: skip
@click.option("--seed", default=1, show_default=True, help="Of the noise.")
@click.option("--journal", "journal_url", metavar="URL",
              help="Look at the runs of this journal instead, and make none.")  # fmt: skip
@json_option
def estimates(
    agent_name: str | None, runs: int, seed: int, journal_url: str | None, as_json: bool
) -> None:
    """Tell in how many runs the p95 of an estimate held; the goal is nine in ten.

    Runs the scenarios of an example (refund) with seeded noise in how long calls take, how long
    answers are and what fails; nothing outside is touched. Exit 9 if the goal is missed.
    """
    from plangate.agent import load_agent
    from plangate.cli.opened import opened_journal
    from plangate.evals.estimates import of_journal, of_scenarios

    if journal_url is None:
        found = of_scenarios(load_agent(agent_name or "refund"), runs, seed)
    else:
        with opened_journal(journal_url) as journal:
            found = of_journal(journal)
    if as_json:
        echo_json(_data(found))
    else:
        put(data_console(), _lines(found))
    if not found.is_good:
        click.get_current_context().exit(Denied.exit_code)


@evaluate.command()
@model_option("Judge what no rule decides with this model; without one that is unknown.")
@prices_option
@click.option("--against", metavar="FILE", help="Compare with an earlier report.")
@click.option("--out", metavar="FILE", type=click.Path(path_type=Path), help="Write the report.")
@json_option
def verifier(against: str | None, out: Path | None, as_json: bool, **how: Any) -> None:
    """Hold the verifier against labelled claims: what passes that should not comes first.

    Exit 9 if, against an earlier report, a claim passes now that did not and that is not so.
    """
    from plangate.cli.options import chosen_prices
    from plangate.evals.verdict_report import compared, read_report, report_lines, report_of
    from plangate.evals.verdicts import judge_all, load_cases, priced_judge

    old = None if against is None else read_report(against)
    chat = chat_of(how)
    judge = None if chat is None else priced_judge(chat, chosen_prices())
    found = judge_all(load_cases(), judge)
    report = report_of(found)
    if out is not None:
        write_text(out, json.dumps(report, indent=2) + "\n", "report")
    if old is not None:
        report["against"] = compared(old, found, report)
    if as_json:
        echo_json(report)
    else:
        put(data_console(), report_lines(report))
    if old is not None and report["against"]["false_pass_regressions"]:
        click.get_current_context().exit(Denied.exit_code)


def _data(found: Accuracy) -> dict[str, Any]:
    from plangate.evals.estimates import GOAL, METRICS

    return {
        "kind": found.kind,
        "seed": found.seed,
        "runs": len(found.cases),
        "goal": GOAL,
        "is_good": found.is_good,
        "metrics": {metric: _tally(found, metric) for metric in METRICS},
        "by_case": {
            name: {metric: _tally(found, metric, name) for metric in METRICS}
            for name in dict.fromkeys(each.name for each in found.cases)
        },
        "cases": [
            {
                "case": each.name,
                "run_id": each.run_id,
                "held": each.held,
                "estimate": each.cost["estimate"],
                "actual": each.cost["actual"],
            }
            for each in found.cases
        ],
    }


def _tally(found: Accuracy, metric: str, name: str | None = None) -> dict[str, Any]:
    said = found.tally(metric, name)
    return {"held": said.held, "of": said.of, "unknown": said.unknown, "share": said.share}


def _lines(found: Accuracy) -> Iterator[RenderableType]:
    from rich.table import Table

    from plangate.evals.estimates import GOAL, METRICS

    yield line(("estimates that held (p95)", "bold"), f"{len(found.cases)} runs, {found.kind}")
    table = Table(box=None)
    for name in ("", *METRICS):
        table.add_column(name, justify="right" if name else "left")
    for name in dict.fromkeys(each.name for each in found.cases):
        table.add_row(name, *(_cell(found, metric, name) for metric in METRICS))
    table.add_row("in all", *(_cell(found, metric) for metric in METRICS), style="bold")
    yield table
    verdict = ("the goal is reached", "green") if found.is_good else ("the goal is missed", "red")
    yield line(f"goal: {GOAL:.0%} of the runs for each metric;", verdict)


def _cell(found: Accuracy, metric: str, name: str | None = None) -> str:
    said = found.tally(metric, name)
    unknown = f" ({said.unknown} unknown)" if said.unknown else ""
    return f"{said.held} of {said.of}{unknown}"
