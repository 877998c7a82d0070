"""What runs took: `plangate run show --cost` for one of them, `plangate run day` for a day."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from plangate.cli.opened import journal_of, opened_journal
from plangate.cli.options import agent_option, journal_option, json_option
from plangate.cli.terminal import data_console, echo_json, put, say

if TYPE_CHECKING:
    from plangate.plan.limits import DayCaps


def show_cost(run_id: str, journal_url: str, *, as_json: bool) -> None:
    """Print estimate against actual of a run, whether it has ended or not.

    Raises:
        ConfigError: No such run.
    """
    from plangate.cli.render_cost import cost_lines
    from plangate.journal.view import fold
    from plangate.nodes.cost import cost_of, held
    from plangate.nodes.worked import worked_s

    with opened_journal(journal_of(journal_url, run_id)) as journal:
        journal.runs.get(run_id)
        entries = journal.log.read(run_id)
    cost = cost_of(fold(entries), worked_s(entries))
    if as_json:
        echo_json({"run_id": run_id, **cost, "held": {**held(cost)}})
    else:
        put(data_console(), cost_lines(cost))


@click.command("day")
@click.option("--date", "day", type=click.DateTime(["%Y-%m-%d"]), help="Of UTC; default: today.")
@agent_option(required=False)
@journal_option
@json_option
def show_day(day: datetime | None, agent_name: str | None, journal: str, as_json: bool) -> None:
    """Say what each principal has taken of a day, and with --agent what its policy allows.

    Counted is what a cap of the day is compared with: what acts did cost, and what is held back for
    those that go on. Calls of tools are counted where a policy limits days.
    """
    from plangate.cli.render_day import day_json, day_lines

    caps = _caps(agent_name)
    with opened_journal(journal) as opened:
        found = opened.reservations.accounts(day.date() if day else None)
    shown = (day or datetime.now(UTC)).date().isoformat()
    if as_json:
        echo_json({"day": shown, "accounts": [day_json(each, caps) for each in found]})
    elif not found:
        say(f"nothing was taken on {shown}")
    else:
        put(data_console(), day_lines(found, caps))


def _caps(agent_name: str | None) -> DayCaps | None:
    if agent_name is None:
        return None
    from plangate.agent import load_agent
    from plangate.plan.policy import Policy

    return Policy.from_toml(load_agent(agent_name).policy).limits.day
