"""What calls of earlier runs took: one row a run and subject, written as the run ends.

It is a fold of the log, kept so that an estimate asks one bounded query and never reads the events
of runs that are over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa
from pydantic import TypeAdapter

from plangate.journal.samples import Sample, Samples
from plangate.journal.schema import USAGE
from plangate.journal.store import insert_new

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime

    from plangate.journal.samples import Past, Used
    from plangate.journal.store import Store

MOST_RUNS = 100
"""Newest runs of a subject that are looked at."""

_SAMPLES: TypeAdapter[tuple[Sample, ...]] = TypeAdapter(tuple[Sample, ...])
_AT_ONCE = 10_000
"""Names in one statement; SQLite takes 32,766 values."""


class Usages:
    """What the runs of one journal used."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def of(self, subjects: Collection[str], since: datetime, until: datetime) -> Past:
        """Return what is known of some subjects from runs that ended in a time.

        Args:
            subjects: From `plangate.budget.history`; all are looked up in one query.
            since: Older runs do not count.
            until: Later ones do not either.
        """
        newest = sa.func.row_number().over(
            partition_by=USAGE.c.subject, order_by=(USAGE.c.at.desc(), USAGE.c.run_id)
        )
        found: dict[str, list[sa.Row[*tuple[object, ...]]]] = {}
        names = sorted(subjects)
        for start in range(0, len(names), _AT_ONCE):
            numbered = (
                sa.select(USAGE.c.subject, USAGE.c.calls, USAGE.c.body, newest.label("number"))
                .where(
                    USAGE.c.subject.in_(names[start : start + _AT_ONCE]),
                    USAGE.c.at.between(since, until),
                )
                .subquery()
            )
            query = (
                sa.select(numbered.c.subject, numbered.c.calls, numbered.c.body)
                .where(numbered.c.number <= MOST_RUNS)
                .order_by(numbered.c.subject, numbered.c.number)
            )
            for row in self._store.rows(query):
                found.setdefault(row.subject, []).append(row)
        return {subject: _samples(rows) for subject, rows in found.items()}


def _samples(rows: Sequence[sa.Row[*tuple[object, ...]]]) -> Samples:
    samples = [each for row in rows for each in _SAMPLES.validate_json(row.body)]
    return Samples(samples=tuple(samples), calls=tuple(row.calls for row in rows))


def note_usage(tx: sa.Connection, run_id: str, used: Sequence[Used], at: datetime) -> None:
    """Keep what a run used, in the transaction that ends it."""
    rows = [
        {
            "run_id": run_id,
            "subject": each.subject,
            "at": at,
            "calls": each.calls,
            "body": _SAMPLES.dump_json(each.samples).decode(),
        }
        for each in used
    ]
    if rows:
        tx.execute(insert_new(USAGE), rows)
