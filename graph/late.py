"""An answer that comes to a question which is decided: refused with who was first, never dropped.

Whoever goes back to an old checkpoint and answers there otherwise than it was answered would else
see the run go on under the old answer. The same answer again is no news and changes nothing.
"""

from __future__ import annotations

from typing import Any

from plangate.graph.answer import read_answer
from plangate.journal.decisions import Decision
from plangate.journal.session import Session
from plangate.plan.errors import Denied


def refuse_late(answer: Any, session: Session) -> None:
    """Stop an invocation whose answer cannot count any more.

    Args:
        answer: What came with `Command(resume=...)`.
        session: The run, held.

    Raises:
        Denied: The question has another answer, or the run has ended without one.
    """
    view, decisions = session.view, session.journal.decisions
    asked = [each.question_id for each in view.pending_questions] or list(view.decisions)[-1:]
    first = decisions.get(asked[0]) if asked else None
    if first is not None and _says(answer, first):
        return
    if first is not None:
        what = f"{first.decision} by {first.by} at {first.at:%Y-%m-%d %H:%M:%S} UTC"
        raise _denied(f"{first.question_id} was decided already: {what}")
    if view.ended is not None:
        raise _denied(f"run {session.run.run_id} has ended ({view.ended.ending}) and asks nothing")


def _says(answer: Any, decision: Decision) -> bool:
    said = read_answer(answer)
    if isinstance(said, str) or said.decision != decision.decision:
        return False
    return not said.by or said.by in decision.by.split(", ")


def _denied(what: str) -> Denied:
    return Denied(what, hint="Nothing was changed; go on with invoke(None, ...).")
