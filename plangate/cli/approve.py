"""`plangate approve`: answer a question of a run; the first answer is the answer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from plangate.cli.options import (
    WORKS,
    agent_option,
    change_option,
    chat_of,
    journal_option,
    json_option,
    model_option,
    prices_option,
    said_again,
    who,
    world_option,
)
from plangate.cli.terminal import echo_json, say
from plangate.plan.errors import ConfigError, RunBusy, WaitingForPerson

if TYPE_CHECKING:
    from plangate.cli.questions import Option
    from plangate.journal.questions import (
        QuestionAsked,
    )
    from plangate.journal.view import RunView
    from plangate.runtime import Runtime


@click.command()
@click.argument("name", metavar="[QUESTION|RUN]", required=False)
@click.option("--yes", is_flag=True, help="Approve or confirm without asking again.")
@click.option("--reject", is_flag=True, help="Say no; final for this plan.")
@click.option("--changes", metavar="TEXT", help="Ask for another plan; TEXT says what to change.")
@click.option(
    "--answer", metavar="JSON", help='Answer a question of the plan: {"confirmed": true}.'
)
@click.option(
    "--settle", type=click.Choice(["done", "failed"]), help="Say what became of an unknown effect."
)
@click.option(
    "--judge",
    type=click.Choice(["pass", "fail"]),
    help="Decide a check that nothing else could; --comment says what you rest it on.",
)
@click.option("--retry", is_flag=True, help="After a failure: try again.")
@click.option("--stop", is_flag=True, help="After a failure: end the run.")
@click.option(
    "--steps", metavar="ID=WORD,...", help="Review single steps: S6=approve,S7=deny; each of them."
)
@click.option(
    "--edit", metavar="JSON|FILE", help="Change the plan: step and args, or JSON Patch operations."
)
@change_option
@click.option("--escalate", metavar="ROLE", help="Hand the question to another role.")
@click.option(
    "--more-info",
    metavar="'TOOL NAME=VALUE'",
    multiple=True,
    help="Read something first, then ask again. Repeatable.",
)
@click.option("--comment", metavar="TEXT", default="", help="Recorded with the decision.")
@click.option("--role", metavar="ROLE", default="", help="In which role you decide.")
@click.option("--by", metavar="NAME", help="Who decides; default: your user name.")
@click.option(
    "--record-only", is_flag=True, help="Record the answer, and do not go on with the run."
)
@agent_option(required=False)
@model_option(WORKS)
@prices_option
@world_option
@journal_option
@json_option
def approve(
    name: str | None, journal: str, agent_name: str | None, world_url: str | None, **how: Any
) -> None:
    """Answer what a run asks, then go on with it.

    Without a name it is the only question that waits. An answer that came too late changes nothing
    and exits 9.
    """
    from plangate.cli.opened import reopened
    from plangate.cli.questions import run_of

    choice = _choice(how)
    run_id = run_of(journal, name)
    with reopened(journal, run_id, agent_name, world_url, chat_of(how)) as runtime:
        _answer(runtime, run_id, name, choice, how)


def _answer(
    runtime: Runtime, run_id: str, name: str | None, choice: Option | None, how: dict[str, Any]
) -> None:
    from plangate.cli.ask import Asker
    from plangate.cli.drive import Driver
    from plangate.cli.questions import answer_of, open_question

    question = open_question(runtime, name or run_id)
    asker = Asker(by=how["by"] or who(), yes=False, role=how["role"])
    driver = Driver(runtime=runtime, asker=asker, quiet=how["as_json"])
    given = answer_of(question, choice, asker, how["comment"]) if choice else None
    if given is None:
        given = driver.ask(question, runtime.view(run_id))
    if given is None:
        raise WaitingForPerson(
            f"question {question.question_id} is not answered",
            hint="Say --yes, --reject, --steps, --edit or another option of approve --help.",
        )
    counted = driver.record(question, given)
    say(f"recorded: {given.decision} by {given.by}{f': {counted}' if counted else ''}")
    if counted:
        raise WaitingForPerson(
            f"question {question.question_id} waits for more people",
            hint=f"Each says: plangate approve {question.question_id} --yes --by NAME.",
        )
    view = None if how["record_only"] else _advance(driver, run_id)
    _report(runtime, run_id, question, view, as_json=how["as_json"])


def _advance(driver: Any, run_id: str) -> RunView | None:
    """Go on with the run, if nobody else does; later questions are for another command."""
    run = driver.runtime.journal.runs.get(run_id)
    if run.status == "ended":
        return None
    try:
        view: RunView = driver.pursue(run_id, driver.runtime.advance(run_id), after=run.last_seq)
    except RunBusy as busy:
        say(f"{busy}; its owner takes the answer in")
        return None
    return view


def _report(
    runtime: Runtime, run_id: str, question: QuestionAsked, view: RunView | None, *, as_json: bool
) -> None:
    from plangate.cli.drive import say_waiting
    from plangate.cli.exits import exit_code
    from plangate.cli.snapshot import run_json

    decision = runtime.journal.decisions.get(question.question_id)
    assert decision is not None, "it was recorded above"  # noqa: S101 - ours
    if as_json:
        row = run_json(runtime.journal.runs.get(run_id))
        echo_json({"decision": decision.model_dump(mode="json"), "run": row})
    if view is None:
        return
    if not view.ended:
        say_waiting(view)
    say(f"see plangate run show {run_id}{said_again()}")
    click.get_current_context().exit(exit_code(view))


def _choice(how: dict[str, Any]) -> Option | None:
    from plangate.cli.questions import Option

    names = (
        "yes", "reject", "changes", "answer", "settle", "judge", "retry", "stop",
        "steps", "edit", "inputs", "escalate", "more_info",
    )  # fmt: skip
    said = [name for name in names if how[name] not in (None, False, (), {})]
    if len(said) > 1:
        first, second = (name.replace("_", "-") for name in said[:2])
        raise click.UsageError(f"--{first} and --{second} do not go together")
    if not said:
        return None
    word, content = said[0], how[said[0]]
    return Option(word, _json_object(content) if word == "answer" else content)


def _json_object(said: str) -> dict[str, Any]:
    try:
        found = json.loads(said)
    except ValueError as exc:
        raise ConfigError("--answer is not JSON", hint='Write {"confirmed": true}.') from exc
    if not isinstance(found, dict):
        raise ConfigError("--answer is not a JSON object", hint='Write {"confirmed": true}.')
    return found
