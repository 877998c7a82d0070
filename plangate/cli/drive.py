"""Takes a run from one question to the next, until it ends or nobody is there to answer.

It decides nothing: questions come from the journal, answers go through the one door for answers,
and what is printed on the way is read off the log.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from plangate.cli.follow import Follower
from plangate.cli.options import said_again
from plangate.cli.render_events import event_line
from plangate.cli.show import show_question
from plangate.cli.signals import draining_on_sigterm
from plangate.cli.terminal import put, say, talk_console
from plangate.journal.plans import read_plan
from plangate.named import run_asking
from plangate.nodes.decide import Counted, Refused
from plangate.plan.errors import Denied

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console

    from plangate.cli.ask import Asker
    from plangate.graph.payload import Answer
    from plangate.journal.events import Entry
    from plangate.journal.questions import (
        QuestionAsked,
    )
    from plangate.journal.view import RunView
    from plangate.runtime import Runtime


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """One command's way with one run.

    Args:
        runtime: The agent over its journal.
        asker: Answers questions.
        quiet: Print nothing on the way.
        console: Where plans and questions are shown; what is asked is talk, so stderr by default.
        on_entry: Sees each event before its line is printed.
        shown: Content hashes of plans that the person has seen already.
    """

    runtime: Runtime
    asker: Asker
    quiet: bool = False
    console: Console = field(default_factory=talk_console)
    on_entry: Callable[[Entry], None] = field(default=lambda _: None)
    shown: set[str] = field(default_factory=set)

    def drive(self, run_id: str, stream: Iterator[Any], *, after: int = 0) -> RunView:
        """Work until the end or an open question, and return where the run stands.

        Args:
            run_id: The run.
            stream: The work that was begun, from `Runtime.start` or `Runtime.advance`.
            after: Number of the last event that was shown before.

        Raises:
            Denied: An answer was refused.
            PlangateError: What the work raises.
        """
        while True:
            view = self.pursue(run_id, stream, after=after)
            after = view.seq
            if view.ended is not None or view.drained or not view.pending_questions:
                return view
            question = view.pending_questions[0]
            answer = self.ask(question, view)
            if answer is None:
                return view
            if counted := self.record(question, answer):
                say(counted)
                return view
            stream = self.runtime.advance(run_id)

    def pursue(self, run_id: str, stream: Iterator[Any], *, after: int = 0) -> RunView:
        """Work until the next question or the end, and ask nothing."""
        follower = Follower(self.runtime.journal, run_id, self._shown(), after)
        with draining_on_sigterm(self.runtime), follower.following():
            for _ in stream:
                pass
        return self.runtime.view(run_id)

    def ask(self, question: QuestionAsked, view: RunView) -> Answer | None:
        """Show a question and let the asker answer it; None: nobody did."""
        journal = self.runtime.journal
        plan = read_plan(view, journal.artifacts.get, question.plan_version)
        is_known = question.kind == "approval" and plan.content_hash in self.shown
        if not is_known and not (self.quiet and self.asker.yes):
            show_question(self.console, self.runtime, question, view, plan)
        if question.kind == "approval":
            return self.asker.approval(question)
        step = plan.by_id.get(question.step or "")
        if question.kind == "step" and step is not None and step.question is not None:
            return self.asker.step(question, step.question)
        if question.kind == "verdict":
            return self.asker.verdict(question)
        return self.asker.failure(question)

    def record(self, question: QuestionAsked, answer: Answer) -> str:
        """Record an answer.

        Returns:
            Empty; or, where it counts but more people have to agree, how many do.

        Raises:
            Denied: It changes nothing; the error says why.
        """
        got = self.runtime.answer(question, answer)
        if isinstance(got, Refused):
            run_id = run_asking(question.question_id)
            raise Denied(got.why, hint=f"See plangate run show {run_id}.")
        return got.says if isinstance(got, Counted) else ""

    def _shown(self) -> Callable[[Entry], None]:
        console = talk_console()

        def show(entry: Entry) -> None:
            self.on_entry(entry)
            shown = None if self.quiet else event_line(entry)
            if shown is not None:
                put(console, [shown])

        return show


def say_waiting(view: RunView) -> None:
    """Say how the open questions of a run can be answered, or how a drained one goes on."""
    again = said_again("agent", "world", "model", "base-url")
    if view.drained:
        say(f"drained; go on with: plangate run resume {view.run_id}{again}")
        return
    if view.stopped:
        say(f"stopped at {view.stopped.limit}; {_what_to_do(view)}")
    for question in view.pending_questions:
        say(f"waiting for {question.audience}: {question.kind} {question.question_id}")
        say(f"answer with: plangate approve {question.question_id}{again}")


def _what_to_do(view: RunView) -> str:
    stop = view.stopped
    return "" if stop is None else stop.hint.replace(" RUN ", f" {view.run_id} ")
