"""Which types of task succeeded before: the history that lets a plan with effects run unasked."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import sqlalchemy as sa

from plangate.journal.schema import VERIFIED
from plangate.journal.store import insert_new

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from plangate.journal.events import VerifiedAs
    from plangate.journal.store import Store


class VerifiedRuns:
    """The runs of one journal that reached their goal, by what they ran under."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def counts(
        self, *, catalog_hash: str, policy_hash: str, since: datetime, until: datetime
    ) -> Mapping[str, int]:
        """Return by task type how many runs ended verified under just these hashes, in a time."""
        query = sa.select(VERIFIED.c.task_type).where(
            VERIFIED.c.catalog_hash == catalog_hash,
            VERIFIED.c.policy_hash == policy_hash,
            VERIFIED.c.at.between(since, until),
        )
        return Counter(row.task_type for row in self._store.rows(query))


def note_verified(tx: sa.Connection, run_id: str, said: VerifiedAs, at: datetime) -> None:
    """Count a run, in the transaction that ends it."""
    tx.execute(insert_new(VERIFIED).values(run_id=run_id, at=at, **said.model_dump()))
