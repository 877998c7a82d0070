"""`plangate plan`: make, check, price, show and compare plans. Nothing here starts a run."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from plangate.cli.estimate import estimate_plan, preview_plan
from plangate.cli.options import (
    PLANS_AND_WORKS,
    agent_option,
    goal_option,
    inputs_option,
    journal_option,
    json_option,
    model_option,
    prices_option,
)
from plangate.cli.promote import promote_plan
from plangate.cli.terminal import data_console, echo_json, put, say
from plangate.cli.textfile import write_text
from plangate.plan.errors import BoundaryGrew, PlanRejected

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plangate.cli.contracts import Contracts
    from plangate.plan.value.plan import Plan


@click.group()
def plan() -> None:
    """Make, check, price, show and compare plans."""


@plan.command()
@agent_option(required=True)
@goal_option
@inputs_option
@click.option("--task", default="", help="Template to plan with, where there are several.")
@model_option(PLANS_AND_WORKS)
@prices_option
@click.option("--out", type=click.Path(path_type=Path), help="Write the plan to a file.")
@json_option
def make(
    agent_name: str,
    goal: str,
    inputs: Mapping[str, Any],
    as_json: bool,
    **how: Any,
) -> None:
    """Make a plan without starting a run. Exit 3 if it has issues."""
    from plangate.cli.make import drafted, filled

    contracts = _contracts(agent_name, how["model"])
    out = how.pop("out")
    if how["model"] and not how["task"]:
        made = drafted(contracts, goal, inputs, model=how["model"], base_url=how["base_url"])
    else:
        made = filled(contracts, goal, inputs, task=how["task"])
    _hand_over(made, contracts, out, as_json=as_json)
    report = contracts.check(made)
    if not report.valid:
        raise PlanRejected(report.errors)


@plan.command()
@click.argument("file")
@agent_option(required=True)
@inputs_option
@click.option(
    "--model", metavar="openai:NAME", help="Who would carry model steps out; it is not called."
)
@prices_option
@json_option
def check(
    file: str, agent_name: str, inputs: Mapping[str, Any], model: str | None, as_json: bool
) -> None:
    """Check a plan file layer by layer; - reads stdin. Exit 3 if it has issues.

    A plan in the form of somebody else (numbered actions, capabilities, tools with their sources)
    is read as one of ours, and it is said how; --input gives what it only refers to.
    """
    from plangate.cli.planfile import read_file
    from plangate.cli.render_issues import mapped_line, report_json, report_lines
    from plangate.plan.value.plan import Plan

    contracts = _contracts(agent_name, model)
    found = read_file(file, contracts.catalog, inputs)
    report = contracts.check(found.plan) if isinstance(found.plan, Plan) else found.plan
    if as_json:
        read_as = found.mapped.model_dump(mode="json") if found.mapped else None
        echo_json({**report_json(report), "read_as": read_as})
    else:
        heading = [mapped_line(found.mapped)] if found.mapped else []
        put(data_console(), [*heading, *report_lines(report)])
    if not report.valid:
        click.get_current_context().exit(PlanRejected.exit_code)


@plan.command()
@click.argument("file", required=False)
@click.option("--run", "run_id", metavar="RUN", help="Show the plan of a run, not a file.")
@click.option("--version", type=click.IntRange(1), help="Of a run's plan; default: the newest.")
@agent_option(required=False)
@prices_option
@journal_option
@json_option
def show(file: str | None, agent_name: str | None, as_json: bool, **where: Any) -> None:
    """Show a plan; with --agent also its effects, cost and tier."""
    if (file is None) == (where["run_id"] is None):
        raise click.UsageError("give a plan file, or --run")
    if file is not None:
        from plangate.cli.planfile import need_plan

        found = need_plan(file)
    else:
        from plangate.cli.opened import plan_of

        found = plan_of(where["journal"], where["run_id"], where["version"])
    contracts = _contracts(agent_name) if agent_name else None
    _print(found, contracts, as_json=as_json)


@plan.command()
@click.argument("old")
@click.argument("new")
@agent_option(required=True)
@json_option
def diff(old: str, new: str, agent_name: str, as_json: bool) -> None:
    """Compare two plan files. Exit 4 if the new one may do more than the old one."""
    from plangate.cli.planfile import need_plan
    from plangate.plan.revise.diff import diff as compare

    contracts = _contracts(agent_name)
    before, after = need_plan(old), need_plan(new)
    changes = compare(before, after, catalog=contracts.catalog).model_dump(mode="json")
    if as_json:
        echo_json(changes)
    else:
        from plangate.cli.render_diff import diff_lines

        put(data_console(), diff_lines(changes))
    if changes["boundary"]:
        click.get_current_context().exit(BoundaryGrew.exit_code)


plan.add_command(estimate_plan)
plan.add_command(preview_plan)
plan.add_command(promote_plan)


def _contracts(name: str, model: str | None = None) -> Contracts:
    from plangate.cli.contracts import Contracts

    return Contracts.of(name, datetime.now(UTC), model)


def _hand_over(made: Plan, contracts: Contracts, out: Path | None, *, as_json: bool) -> None:
    if out is not None:
        write_text(out, made.model_dump_json(indent=2) + "\n", "plan file")
        say(f"plan written to {out}")
    if out is None or as_json:
        _print(made, contracts, as_json=as_json)


def _print(found: Plan, contracts: Contracts | None, *, as_json: bool) -> None:
    if as_json:
        echo_json(found.model_dump(mode="json"))
        return
    from plangate.cli.render_plan import Sheet, plan_tree

    sheet = contracts.sheet(found) if contracts else Sheet(plan=found)
    data_console().print(plan_tree(sheet))
