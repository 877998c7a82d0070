"""What people decided: one row a question, and the first answer is the answer.

Anybody may record a decision, with no lease; the owner of the run folds it in. So two consoles and
a command can answer at once, and all but one learn who was first. Where several people must agree,
each approval is a vote, one for each of them, and the last that it takes makes the decision.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import sqlalchemy as sa
from pydantic import Field
from pydantic_core import to_json

from plangate.journal.points import reached
from plangate.journal.schema import DECISIONS, VOTES
from plangate.journal.store import Store, insert_new, is_again
from plangate.plan.value.frozen import Args, Frozen, load_json, parse, thaw

if TYPE_CHECKING:
    from collections.abc import Sequence


class Decision(Frozen):
    """An answer to one question."""

    question_id: str
    run_id: str
    decision: str
    by: str
    """Who decided."""

    at: datetime
    """When, aware."""

    answer: Args = Field(default_factory=dict, validate_default=True)
    comment: str = ""
    content_hash: str = ""
    """What was approved: the content hash that was shown."""

    steps: tuple[str, ...] = ()
    """Approved steps; empty for an approval of all."""

    expires_at: datetime | None = None


class Recorded(NamedTuple):
    """What became of an answer."""

    won: bool
    decision: Decision
    """The one that counts: the given one if it won, else the one that was first."""


class Polled(NamedTuple):
    """What became of a vote."""

    votes: tuple[Decision, ...]
    """All that count so far, oldest first."""

    recorded: Recorded | None
    """None: more people have to agree."""


class Decisions:
    """All decisions of one journal."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def record(self, decision: Decision) -> Recorded:
        """Store an answer if it is the first one to its question."""

        def work(tx: sa.Connection) -> Recorded:
            recorded = _record(tx, decision)
            reached("decision.recording")
            return recorded

        recorded = self._store.change(work, alone=f"question {decision.question_id}")
        reached("decision.recorded")
        return recorded

    def vote(self, vote: Decision, *, needs: int) -> Polled:
        """Count one person's approval, and decide once enough different people gave theirs.

        The same person counts once, by name, without regard to case: the first vote stays.

        Args:
            vote: The approval.
            needs: How many different people it takes.
        """
        row = {
            "question_id": vote.question_id,
            "voter": vote.by.strip().casefold(),
            "run_id": vote.run_id,
            "at": vote.at,
            "body": vote.model_dump_json(),
        }
        this = DECISIONS.c.question_id == vote.question_id

        def work(tx: sa.Connection) -> Polled:
            first = tx.execute(_of(this)).first()
            if first is None:
                tx.execute(insert_new(VOTES).values(row))
            votes = _votes(tx.execute(_cast(vote.question_id)).all())
            if first is not None:
                mine = is_again(tx) and _is_same(joined(votes), _decision(first))
                return Polled(votes, Recorded(won=mine, decision=_decision(first)))
            if len(votes) < needs:
                return Polled(votes, None)
            return Polled(votes, _record(tx, joined(votes)))

        return self._store.change(work, alone=f"question {vote.question_id}")

    def votes(self, question_id: str) -> tuple[Decision, ...]:
        """Return the approvals of a question that takes several, oldest first."""
        return _votes(self._store.rows(_cast(question_id)))

    def get(self, question_id: str) -> Decision | None:
        """Return the answer to a question, or None if there is none yet."""
        rows = self._store.rows(_of(DECISIONS.c.question_id == question_id))
        return _decision(rows[0]) if rows else None

    def of_run(self, run_id: str) -> list[Decision]:
        """Return the answers to a run's questions, oldest first."""
        return [_decision(row) for row in self._store.rows(_of(DECISIONS.c.run_id == run_id))]


def joined(votes: tuple[Decision, ...]) -> Decision:
    """Return what several approvals say together: only what each of them approved.

    Where nothing is left, it is a rejection: an empty list of steps would mean all of them.
    """
    last = votes[-1]
    said = [
        {"by": each.by, "at": each.at.isoformat(), "answer": thaw(each.answer)} for each in votes
    ]
    partial = [each.steps for each in votes if each.steps]
    steps = tuple(step for step in (partial or [()])[0] if all(step in each for each in partial))
    return last.model_copy(
        update={
            "decision": "reject" if partial and not steps else "approve",
            "by": ", ".join(each.by for each in votes),
            "answer": {"votes": said},
            "comment": "; ".join(each.comment for each in votes if each.comment),
            "steps": steps,
            "expires_at": min((e.expires_at for e in votes if e.expires_at), default=None),
        }
    )


def _record(tx: sa.Connection, decision: Decision) -> Recorded:
    row = {name: getattr(decision, name) for name in Decision.model_fields}
    row["answer"] = to_json(thaw(decision.answer)).decode()
    row["steps"] = to_json(decision.steps).decode()
    won = tx.execute(insert_new(DECISIONS).values(row)).rowcount == 1
    first = _decision(tx.execute(_of(DECISIONS.c.question_id == decision.question_id)).one())
    return Recorded(won or (is_again(tx) and _is_same(first, decision)), first)


def _is_same(one: Decision, other: Decision) -> bool:
    return one.model_dump_json() == other.model_dump_json()


def _cast(question_id: str) -> sa.Select[Any]:
    found = sa.select(VOTES.c.body).where(VOTES.c.question_id == question_id)
    return found.order_by(VOTES.c.at, VOTES.c.voter)


def _votes(rows: Sequence[sa.Row[*tuple[Any, ...]]]) -> tuple[Decision, ...]:
    return tuple(parse(Decision, row.body) for row in rows)


def _of(where: sa.ColumnElement[bool]) -> sa.Select[Any]:
    return sa.select(DECISIONS).where(where).order_by(DECISIONS.c.at, DECISIONS.c.question_id)


def _decision(row: sa.Row[*tuple[Any, ...]]) -> Decision:
    steps = load_json(row.steps)
    assert isinstance(steps, list)  # noqa: S101 (we wrote it)
    return Decision(**{**row._asdict(), "answer": load_json(row.answer), "steps": tuple(steps)})
