"""`plangate plan promote`: what a run has proved becomes the template of the next ones."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from plangate.cli.options import agent_option, journal_option
from plangate.cli.terminal import say
from plangate.cli.textfile import write_text
from plangate.plan.errors import ConfigError, PlanRejected

if TYPE_CHECKING:
    from plangate.plan.value.plan import Plan


@click.command("promote")
@click.argument("run_id", metavar="RUN")
@click.option("--name", required=True, help="Of the template: the task type of its plans.")
@click.option("--out", type=click.Path(path_type=Path), help="Write it to a file.")
@agent_option(required=True)
@journal_option
def promote_plan(run_id: str, name: str, out: Path | None, agent_name: str, journal: str) -> None:
    """Make a template of the plan that a run reached its goal with.

    Its inputs become parameters, and what it repaired is in it. Nothing that only looks like an
    input is taken for one: it is named on stderr. Exit 3 if the agent would refuse what it makes.
    """
    from plangate.cli.contracts import Contracts
    from plangate.plan.promote import promoted
    from plangate.plan.templates import Template

    proved = _proved(journal, run_id)
    contracts = Contracts.of(agent_name, datetime.now(UTC))
    known = (Template.from_yaml(text).template for text in contracts.agent.templates)
    if name in known:
        raise ConfigError(f"the agent has a template {name!r}", hint="Give another --name.")
    made = promoted(proved, name)
    again = Template.from_yaml(made.text).fill(None, proved.inputs, proved.goal_id)
    report = contracts.check(again)
    for each in made.remarks:
        say(each)
    if not report.valid:
        raise PlanRejected(report.errors, hint="The plan has what a template may not say so.")
    if out is None:
        click.echo(made.text, nl=False)
        return
    write_text(out, made.text, "template")
    say(f"template {name} written to {out}; add it to the agent's templates")


def _proved(journal_url: str, run_id: str) -> Plan:
    """Return the last plan of a run that reached its goal.

    Raises:
        ConfigError: It did not, or its plan only takes back what another run did.
    """
    from plangate.cli.opened import journal_of, opened_journal
    from plangate.journal.plans import read_plan
    from plangate.journal.view import fold

    with opened_journal(journal_of(journal_url, run_id)) as journal:
        journal.runs.get(run_id)
        view = fold(journal.log.read(run_id))
        ended = view.ended
        if ended is None or (ended.ending, ended.verdict) != ("completed", "pass"):
            stands = f"{ended.ending}, {ended.verdict}" if ended else "not ended"
            raise ConfigError(
                f"run {run_id} has not reached its goal ({stands}), so it proves nothing",
                hint="Promote a run that is completed with verdict pass.",
            )
        if view.cause is not None and view.cause.kind == "compensation":
            raise ConfigError(
                f"run {run_id} only takes back what another run did", hint="Promote another run."
            )
        return read_plan(view, journal.artifacts.get, view.version)
