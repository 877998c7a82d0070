"""`plangate run show --cost`: what a run was said to take, and what it took."""

from __future__ import annotations

from plangate.cli.opened import journal_of, opened_journal
from plangate.cli.render_cost import cost_lines
from plangate.cli.terminal import data_console, echo_json, put
from plangate.journal.view import fold
from plangate.nodes.cost import cost_of, held
from plangate.nodes.worked import worked_s


def show_cost(run_id: str, journal_url: str, *, as_json: bool) -> None:
    """Print estimate against actual of a run, whether it has ended or not.

    Raises:
        ConfigError: No such run.
    """
    with opened_journal(journal_of(journal_url, run_id)) as journal:
        journal.runs.get(run_id)
        entries = journal.log.read(run_id)
    cost = cost_of(fold(entries), worked_s(entries))
    if as_json:
        echo_json({"run_id": run_id, **cost, "held": {**held(cost)}})
    else:
        put(data_console(), cost_lines(cost))
