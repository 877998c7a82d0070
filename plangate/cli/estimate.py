"""`plangate plan estimate` and `plan preview`: what a plan would take and do, before it runs."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

from plangate.cli.options import agent_option, journal_option, json_option, prices_option
from plangate.cli.terminal import data_console, echo_json, put
from plangate.plan.errors import PlanRejected

if TYPE_CHECKING:
    from collections.abc import Callable

    from plangate.plan.preview import Preview

F = TypeVar("F", bound="Callable[..., Any]")


def _priced_options(command: F) -> F:
    for option in (
        click.option("--judge", metavar="openai:NAME", help="Price a judge of this model too."),
        click.option("--critic", metavar="openai:NAME", help="Price a critic of this model too."),
        click.option("--model", metavar="openai:NAME", help="Price this model; it is not called."),
    ):
        command = option(command)
    return command


@click.command("estimate")
@click.argument("file")
@agent_option(required=True)
@click.option(
    "--explain", is_flag=True, help="Each step and part, with where its figures are from."
)
@_priced_options
@prices_option
@journal_option
@json_option
def estimate_plan(file: str, explain: bool, as_json: bool, **how: Any) -> None:
    """Say what a plan will probably take: middle and high end of money, tokens, time, calls.

    Figures come from the tools' contracts and the schemas of answers; with a journal that holds
    enough calls of the very same tools and prompts, from what those took. Exit 10 if the plan is
    over its budget.
    """
    preview = _preview(file, how)
    if as_json:
        from plangate.cli.render_cost import estimate_json

        echo_json(estimate_json(preview))
    else:
        from plangate.cli.render_cost import estimate_lines

        put(data_console(), estimate_lines(preview, explain=explain))
    _exit_if_over(preview)


@click.command("preview")
@click.argument("file")
@agent_option(required=True)
@_priced_options
@prices_option
@journal_option
@click.option(
    "--world", "world_url", metavar="URL", help="A world to look up what will be cited; only read."
)
@json_option
def preview_plan(file: str, as_json: bool, **how: Any) -> None:
    """Show what a plan would do: tools, arguments, cost, evidence, and whether it fits its budget.

    No model is called and nothing is written; it can be repeated for free. Exit 3 if the plan has
    issues, 10 if it is over its budget: then it cannot be approved.
    """
    preview = _preview(file, how)
    if as_json:
        echo_json(preview.model_dump(mode="json"))
    else:
        from plangate.cli.render_cost import preview_lines

        put(data_console(), preview_lines(preview))
    _exit_if_over(preview)
    if not preview.approvable:
        click.get_current_context().exit(PlanRejected.exit_code)


def _preview(file: str, how: dict[str, Any]) -> Preview:
    from plangate.cli.contracts import Contracts, Set
    from plangate.cli.planfile import need_plan

    plan = need_plan(file)
    with ExitStack() as opened:
        named = {name: _named(how[name]) for name in ("model", "critic", "judge")}
        set_up = Set(recall=_recall(how["journal"], opened), **named)
        return Contracts.of(how["agent_name"], datetime.now(UTC), set_up=set_up).preview(
            plan, how.get("world_url")
        )


def _named(name: str | None) -> Any:
    if name is None:
        return None
    from plangate.models.roles import Named

    return Named.of(name)


def _recall(url: str, opened: ExitStack) -> Any:
    """Return the memory of a journal; None where the usual one is not there yet."""
    from plangate.cli.opened import file_of, opened_journal
    from plangate.cli.options import DEFAULT_JOURNAL

    path = file_of(url)
    if url == DEFAULT_JOURNAL and (path is None or not path.exists()):
        return None
    return opened.enter_context(opened_journal(url)).usage.of


def _exit_if_over(preview: Preview) -> None:
    from plangate.plan.errors import BudgetExceeded
    from plangate.plan.preview import BUDGET_CODES

    if any(each.code in BUDGET_CODES and each.severity == "error" for each in preview.issues):
        click.get_current_context().exit(BudgetExceeded.exit_code)
