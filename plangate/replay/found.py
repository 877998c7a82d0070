"""Effects of other runs that a run met in the ledger: brought along, as they were found."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from plangate.journal.ledger import UNSETTLED, Intent
from plangate.journal.runs import Run

if TYPE_CHECKING:
    from plangate.journal.journal import Journal
    from plangate.journal.lease import Lease
    from plangate.journal.ledger import EffectRow
    from plangate.replay.record import Record

_OWNER = "replay"
_TTL_S = 60.0


def bring(journal: Journal, record: Record) -> None:
    """Write into the journal of a replay what the run's own journal held before it acted."""
    for run_id in dict.fromkeys(row.run_id for row in record.found):
        other = Run(
            run_id=run_id,
            goal_id=run_id,
            goal="another run",
            thread_id=run_id,
            agent=record.run.agent,
            principal=record.run.principal,
        )
        journal.runs.create(other)
        lease = journal.runs.acquire(run_id, _OWNER, _TTL_S)
        for row in record.found:
            if row.run_id == run_id:
                _bring(journal, record, lease, row)
        journal.runs.release(lease)


def _bring(journal: Journal, record: Record, lease: Lease, row: EffectRow) -> None:
    intent = {each.name: getattr(row, each.name) for each in fields(Intent)}
    journal.ledger.intend(lease, Intent(**intent))
    if row.operation_id is not None:
        journal.ledger.accept(lease, row.effect_key, row.operation_id)
    if row.state in UNSETTLED[:2]:
        return
    output = None if row.output is None else journal.artifacts.put(record.values[row.output])
    if row.state == "compensated":
        journal.ledger.settle(lease, row.effect_key, "done")
    journal.ledger.settle(
        lease,
        row.effect_key,
        row.state,
        output=output,
        error_code=row.error_code,
        business_state=row.business_state,
    )
