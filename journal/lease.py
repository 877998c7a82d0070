"""The hold of one owner on a run, and the fence that each of its writes passes.

A lease is a time-out, and a time-out can be wrong: a paused process wakes up and believes it still
owns the run. So the time decides only who may *take over*; whether a write is let in is decided by
the epoch, which grows with each takeover, inside the same transaction as the write.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import sqlalchemy as sa

from plangate.journal.schema import RUNS
from plangate.plan.errors import ConfigError, LeaseLost

if TYPE_CHECKING:
    from datetime import datetime


@dataclass(frozen=True, slots=True)
class Lease:
    """One owner's hold on one run."""

    run_id: str
    owner: str
    epoch: int
    """Fencing token: 1 for the first owner, one more for each later one."""

    expires_at: datetime
    """When others may take over, unless the lease is renewed."""


MINE = sa.and_(
    RUNS.c.run_id == sa.bindparam("lease_run"),
    RUNS.c.owner == sa.bindparam("lease_owner"),
    RUNS.c.epoch == sa.bindparam("lease_epoch"),
)
"""True of a run's row for its present owner; the parameters are those of `mine`."""

_HOLDER = (
    sa.select(RUNS.c.owner, RUNS.c.epoch)
    .where(RUNS.c.run_id == sa.bindparam("run_id"))
    .with_for_update()
)


def mine(lease: Lease) -> dict[str, object]:
    """Return the parameters of `MINE`."""
    return {
        "lease_run": lease.run_id,
        "lease_owner": lease.owner,
        "lease_epoch": lease.epoch,
    }


def fence(tx: sa.Connection, lease: Lease) -> None:
    """Stop a former owner. The run's row cannot change until the transaction ends.

    Raises:
        LeaseLost: Another owner came, or this one let go.
        ConfigError: No such run.
    """
    row = tx.execute(_HOLDER, {"run_id": lease.run_id}).first()
    if row is None:
        raise unknown_run(lease.run_id)
    if (row.owner, row.epoch) != (lease.owner, lease.epoch):
        raise lost(lease, row.owner, row.epoch)


def lost(lease: Lease, owner: str | None, epoch: int) -> LeaseLost:
    """Return the error for a former owner, naming the present one."""
    now = f"{owner} holds it with epoch {epoch}" if owner else "nobody holds it"
    return LeaseLost(
        f"run {lease.run_id!r} is no longer held by {lease.owner} (epoch {lease.epoch}); {now}",
        hint="stop here; whoever holds the run goes on from what is recorded",
    )


def unknown_run(run_id: str) -> ConfigError:
    """Return the error for a run that is not in this journal."""
    return ConfigError(
        f"unknown_run: no run {run_id!r} in this journal",
        hint="see `plangate run list`, and check that --journal names the right file",
    )
