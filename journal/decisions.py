"""What people decided: one row a question, and the first answer is the answer.

Anybody may record a decision, with no lease; the owner of the run folds it in. So two consoles and
a command can answer at once, and all but one learn who was first.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa
from pydantic import Field
from pydantic_core import to_json

from plangate.journal.schema import DECISIONS
from plangate.journal.store import Store, insert_new
from plangate.plan.value.frozen import Args, Frozen, load_json, thaw


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


class Decisions:
    """All decisions of one journal."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def record(self, decision: Decision) -> Recorded:
        """Store an answer if it is the first one to its question."""
        row = {name: getattr(decision, name) for name in Decision.model_fields}
        row["answer"] = to_json(thaw(decision.answer)).decode()
        row["steps"] = to_json(decision.steps).decode()
        with self._store.write() as tx:
            won = tx.execute(insert_new(DECISIONS).values(row)).rowcount == 1
            first = tx.execute(_of(DECISIONS.c.question_id == decision.question_id)).one()
        return Recorded(won, _decision(first))

    def get(self, question_id: str) -> Decision | None:
        """Return the answer to a question, or None if there is none yet."""
        with self._store.read() as tx:
            row = tx.execute(_of(DECISIONS.c.question_id == question_id)).first()
        return None if row is None else _decision(row)

    def of_run(self, run_id: str) -> list[Decision]:
        """Return the answers to a run's questions, oldest first."""
        with self._store.read() as tx:
            return [_decision(row) for row in tx.execute(_of(DECISIONS.c.run_id == run_id))]


def _of(where: sa.ColumnElement[bool]) -> sa.Select[Any]:
    return sa.select(DECISIONS).where(where).order_by(DECISIONS.c.at, DECISIONS.c.question_id)


def _decision(row: sa.Row[*tuple[Any, ...]]) -> Decision:
    steps = load_json(row.steps)
    assert isinstance(steps, list)  # noqa: S101 (we wrote it)
    return Decision(**{**row._asdict(), "answer": load_json(row.answer), "steps": tuple(steps)})
