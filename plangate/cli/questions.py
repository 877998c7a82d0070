"""Finds the question that a person means, and turns what they chose into an answer to it."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any, NamedTuple

from plangate.cli.ask import reply
from plangate.cli.opened import journal_of, journals, opened_journal
from plangate.cli.options import pairs_of
from plangate.cli.textfile import read_text
from plangate.journal.view import fold
from plangate.named import run_ids_in, run_named
from plangate.plan.errors import ConfigError, Denied

if TYPE_CHECKING:
    from collections.abc import Callable

    from plangate.cli.ask import Asker
    from plangate.graph.answer import Answer, Choice
    from plangate.journal.questions import (
        QuestionAsked,
    )
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
    if name is not None:
        urls = {journal_of(journal_url, run_id) for run_id in run_ids_in(name)}
        url = next(iter(urls - {journal_url}), journal_url)
        with opened_journal(url) as journal:
            return run_named(journal, name).run_id
    pending = [each for url in journals(journal_url) for each in _pending(url)]
    if not pending:
        raise ConfigError("no question waits for an answer", hint="See plangate run list.")
    if len(pending) > 1:
        ids = ", ".join(question for _, question in pending)
        raise ConfigError(f"{len(pending)} questions wait", hint=f"Name one of: {ids}.")
    return pending[0][0]


def _pending(journal_url: str) -> list[tuple[str, str]]:
    with opened_journal(journal_url) as journal:
        return [
            (run.run_id, each.question_id)
            for run in journal.runs.list("waiting", limit=20)
            for each in fold(journal.log.read(run.run_id)).pending_questions
            if journal.decisions.get(each.question_id) is None
        ]


def open_question(runtime: Runtime, name: str) -> QuestionAsked:
    """Return a question that nobody has answered.

    Raises:
        ConfigError: No such question, or the run has several.
        Denied: Somebody was first.
    """
    run_id = run_named(runtime.journal, name).run_id
    view = runtime.view(run_id)
    if name == run_id and not view.pending_questions and view.decisions:
        name = list(view.decisions)[-1]
    if name not in (run_id, *view.questions):
        known = ", ".join(view.questions) or "none"
        raise ConfigError(f"run {run_id} has no question {name!r}", hint=f"Its questions: {known}.")
    _, question = runtime.question(name)
    first = runtime.journal.decisions.get(question.question_id)
    if first is not None:
        raise Denied(
            f"decided already: {first.decision} by {first.by} at {first.at:%Y-%m-%d %H:%M:%S} UTC",
            hint=f"Nothing was changed; see plangate run show {run_id}.",
        )
    return question


def answer_of(question: QuestionAsked, chosen: Option, asker: Asker, comment: str = "") -> Answer:
    """Return the answer; whether it fits the question is decided where it is recorded.

    Raises:
        ConfigError: `--yes` was said to a question that is not one of yes or no, or what an option
            holds cannot be read.
    """
    word, content = chosen
    more: dict[str, Any] = {"by": asker.by, "role": asker.role, "comment": comment}
    if word in ("yes", "reject", "retry", "stop"):
        if question.kind == "step" and word in ("yes", "reject"):
            return reply(question, "answer", answer={"confirmed": word == "yes"}, **more)
        return reply(question, _decision(question, word), **more)
    return _with_content(question, word, content, more)


def _with_content(question: QuestionAsked, word: str, content: Any, more: dict[str, Any]) -> Answer:
    """Read the options that say more than yes or no."""
    made: dict[str, tuple[Choice, Callable[[], dict[str, Any]]]] = {
        "changes": ("changes", lambda: {"comment": content}),
        "settle": ("settle", lambda: {"answer": {"state": content}}),
        "judge": ("judge", lambda: {"answer": {"says": content}}),
        "answer": ("answer", lambda: {"answer": content}),
        "steps": ("approve", lambda: {"steps": _steps(content)}),
        "edit": ("edit", lambda: {"edits": _edits(content)}),
        "inputs": ("edit", lambda: {"edits": [{"inputs": dict(content)}]}),
        "escalate": ("escalate", lambda: {"answer": {"to": content}}),
        "more_info": (
            "request_more_info",
            lambda: {"answer": [_read(each) for each in content]},
        ),
    }
    decision, said = made[word]
    return reply(question, decision, **{**more, **said()})


def _steps(said: str) -> dict[str, str]:
    """Read `S6=approve,S7=deny`."""
    found: dict[str, str] = {}
    for each in said.split(","):
        step, _, word = (part.strip() for part in each.partition("="))
        if word not in ("approve", "deny") or step in found:
            raise ConfigError(
                f"--steps {each.strip()!r} is no single answer for a step",
                hint="Write --steps S6=approve,S7=deny.",
            )
        found[step] = word
    return found


def _edits(said: str) -> list[Any]:
    """Read JSON, or the file that holds it: one edit or a list of them."""
    text = said
    if not said.lstrip().startswith(("[", "{")):
        text = read_text(said, "--edit is no JSON, and file", hint=_EDIT)
    try:
        found = json.loads(text)
    except ValueError as exc:
        raise ConfigError(f"--edit holds no JSON: {exc}", hint=_EDIT) from exc
    return found if isinstance(found, list) else [found]


_EDIT = 'Write {"step": "S6", "args": {"amount_cents": 5000}}, or JSON Patch operations.'


def _read(said: str) -> dict[str, Any]:
    """Read `query_order order_id=ORD-1`, with quotes as in a shell."""
    try:
        tool, *pairs = shlex.split(said)
    except ValueError as exc:
        hint = "Write --more-info 'TOOL NAME=VALUE ...'."
        raise ConfigError(f"--more-info {said!r} names no tool", hint=hint) from exc
    return {"tool": tool, "args": pairs_of(pairs)}


def _decision(question: QuestionAsked, word: str) -> Choice:
    """Say what a bare word means for a plan or a failure."""
    if word == "retry":
        return "retry"
    if word == "yes" and question.kind == "approval":
        return "approve"
    if word == "yes":
        raise ConfigError(
            f"{question.question_id} is about a failure, and yes is no answer to it",
            hint="Say --judge pass|fail, --retry or --stop."
            if question.kind == "verdict"
            else "Say --settle done|failed, --retry or --stop.",
        )
    return "reject" if question.kind == "approval" and word == "reject" else "stop"
