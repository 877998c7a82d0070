"""Puts a run's question to the person at the terminal and turns the reply into an answer.

Only a clear yes is consent. No terminal, end of input or any other word is not.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
from pydantic import ValidationError

from plangate.cli.terminal import is_person_there, say, visible
from plangate.graph.payload import Answer
from plangate.plan.errors import ConfigError
from plangate.plan.value.frozen import parse

if TYPE_CHECKING:
    from pydantic import JsonValue

    from plangate.graph.answer import Choice
    from plangate.journal.questions import (
        QuestionAsked,
    )
    from plangate.plan.value.step import Question

BY_YES = "--yes"
"""What is recorded where consent was given in advance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Who answers, and how.

    Args:
        by: The name that is recorded.
        yes: Consent was given in advance: approvals and confirmations are not asked.
        role: In which role; recorded, and asked for where a rule names roles.
    """

    by: str
    yes: bool = False
    role: str = ""

    def approval(self, question: QuestionAsked) -> Answer | None:
        """Ask the operator for the approval of a plan."""
        if self.yes:
            return reply(question, "approve", by=BY_YES, role=self.role)
        text = f"Operator: approve plan v{question.plan_version} as shown above? [y/n]"
        said = self._words(text, _YES_NO)
        if said is None:
            return None
        decision: Choice = "approve" if said == "y" else "reject"
        return reply(question, decision, by=self.by, role=self.role)

    def step(self, question: QuestionAsked, asks: Question) -> Answer | None:
        """Ask what a human step of the plan asks; `--yes` can only confirm."""
        if asks.type == "confirm" and self.yes:
            return reply(question, "answer", by=BY_YES, answer={"confirmed": True})
        said = self._words(*_wording(asks))
        if said is None:
            return None
        return reply(question, "answer", by=self.by, answer=_typed(asks.type, said))

    def failure(self, question: QuestionAsked) -> Answer | None:
        """Ask what to do about a failure, or about an effect that nobody knows the state of."""
        if question.kind == "escalation":
            said = self._words("Operator: try again, or stop the run? [retry/stop]", _ESCALATION)
        else:
            text = "Operator: what became of it? [done/failed], or [retry/stop]"
            said = self._words(text, _EFFECT)
        if said is None:
            return None
        if said in _ESCALATION:
            return reply(question, "retry" if said == "retry" else "stop", by=self.by)
        return reply(question, "settle", by=self.by, answer={"state": said})

    def verdict(self, question: QuestionAsked) -> Answer | None:
        """Ask whether a check is passed that nobody could decide, and what that rests on."""
        said = self._words("Is it so? [pass/fail], or [retry/stop]", (*_VERDICT, *_ESCALATION))
        if said is None:
            return None
        if said in _ESCALATION:
            return reply(question, "retry" if said == "retry" else "stop", by=self.by)
        evidence = self._words("What do you rest it on?", ())
        if evidence is None:
            return None
        content: JsonValue = {"says": said, "evidence": evidence}
        return reply(question, "judge", by=self.by, role=self.role, answer=content)

    def _words(self, text: str, words: tuple[str, ...]) -> str | None:
        """Read one line until it is one of the words; None if nobody is there to answer."""
        if not is_person_there():
            return None
        while True:
            click.echo(f"{visible(text)} ", err=True, nl=False)
            said = sys.stdin.readline()
            if not said:
                return None
            said = _LONG.get(said.strip().lower(), said.strip()) if words else said.strip()
            if said in words or (said and not words):
                return said
            say(f"answer with one of: {', '.join(words)}" if words else "an answer is needed")


def reply(
    question: QuestionAsked,
    decision: Choice,
    *,
    by: str,
    answer: JsonValue = None,
    **more: Any,
) -> Answer:
    """Return an answer that is bound to the very question and plan that were shown.

    Args:
        question: What was asked.
        decision: The decision.
        by: Who decides.
        answer: Its content.
        **more: `comment`, `role`, `steps`, `edits`, as in `Answer`.

    Raises:
        ConfigError: What was given is no answer.
    """
    said = {"decision": decision, "by": by, "answer": answer, **more}
    bound = {"question_id": question.question_id, "plan_hash": question.content_hash}
    try:
        return parse(Answer, {**said, **bound})
    except ValidationError as exc:
        first = exc.errors(include_input=False, include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ConfigError(f"{where}: {first['msg']}", hint="See plangate approve --help.") from exc


def _wording(asks: Question) -> tuple[str, tuple[str, ...]]:
    """Say who is asked: the customer's confirmation is not the operator's approval."""
    text = f"{asks.audience.capitalize()}: {asks.text}"
    if asks.type == "confirm":
        return f"{text} [y/n]", _YES_NO
    return (f"{text} [{' / '.join(asks.options)}]", asks.options) if asks.options else (text, ())


def _typed(kind: str, said: str) -> dict[str, JsonValue]:
    """A number that is none goes on as text: it is refused where the answer's type is checked."""
    if kind == "confirm":
        return {"confirmed": said == "y"}
    if kind == "number":
        try:
            return {"answer": float(said)}
        except ValueError:
            pass
    return {"answer": said}


_LONG = {"yes": "y", "no": "n"}
_YES_NO = ("y", "n")
_ESCALATION = ("retry", "stop")
_VERDICT = ("pass", "fail")
_EFFECT = ("done", "failed", "retry", "stop")
