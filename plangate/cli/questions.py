"""Finds the question that a person means, and turns what they chose into an answer to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from plangate.cli.ask import reply
from plangate.cli.opened import journal_of, opened_journal
from plangate.journal.view import fold
from plangate.plan.errors import ConfigError, Denied

if TYPE_CHECKING:
    from plangate.graph.answer import Answer, Choice
    from plangate.journal.events import QuestionAsked
    from plangate.runtime import Runtime


class Option(NamedTuple):
    """An option of the command, and what stands behind it."""

    word: str
    content: Any


def run_of(journal_url: str, name: str | None) -> str:
    """Return the id of the run that a question or run name means; None: the only one that waits.

    Raises:
        ConfigError: There is no such run, or none or several wait.
    """
    run_id = "" if name is None else run_named(name)
    with opened_journal(journal_of(journal_url, run_id)) as journal:
        if run_id:
            return journal.runs.get(run_id).run_id
        waiting = journal.runs.list("waiting", limit=20)
        pending = [
            (run.run_id, each.question_id)
            for run in waiting
            for each in fold(journal.log.read(run.run_id)).pending_questions
            if journal.decisions.get(each.question_id) is None
        ]
    if len(pending) != 1:
        ids = ", ".join(question for _, question in pending) or "none"
        raise ConfigError(f"{len(pending)} questions wait", hint=f"Name one of: {ids}.")
    return pending[0][0]


def run_named(name: str) -> str:
    """Return the run in the name of a run or of a question."""
    return name.rpartition("-q")[0] if "-q" in name else name


def open_question(runtime: Runtime, name: str) -> QuestionAsked:
    """Return a question that nobody has answered.

    Raises:
        ConfigError: No such question, or the run has several.
        Denied: Somebody was first.
    """
    run_id = run_named(name)
    view = runtime.view(run_id)
    if "-q" not in name and not view.pending_questions and view.decisions:
        name = list(view.decisions)[-1]
    _, question = runtime.question(name)
    first = runtime.journal.decisions.get(question.question_id)
    if first is not None:
        raise Denied(
            f"decided already: {first.decision} by {first.by} at {first.at:%Y-%m-%d %H:%M:%S} UTC",
            hint=f"Nothing was changed; see plangate run show {run_id}.",
        )
    return question


def answer_of(question: QuestionAsked, chosen: Option, *, by: str) -> Answer:
    """Return the answer; whether it fits the question is decided where it is recorded.

    Raises:
        ConfigError: `--yes` was said to a question that is not one of yes or no.
    """
    word, content = chosen
    if word == "changes":
        return reply(question, "changes", by=by, comment=content)
    if word == "settle":
        return reply(question, "settle", by=by, answer={"state": content})
    if word == "answer":
        return reply(question, "answer", by=by, answer=content)
    if question.kind == "step" and word in ("yes", "reject"):
        return reply(question, "answer", by=by, answer={"confirmed": word == "yes"})
    return reply(question, _decision(question, word), by=by)


def _decision(question: QuestionAsked, word: str) -> Choice:
    """Say what a bare word means for a plan or a failure."""
    if word == "retry":
        return "retry"
    if word == "yes" and question.kind == "approval":
        return "approve"
    if word == "yes":
        raise ConfigError(
            f"{question.question_id} is about a failure, and yes is no answer to it",
            hint="Say --settle done|failed, --retry or --stop.",
        )
    return "reject" if question.kind == "approval" and word == "reject" else "stop"
