"""Deletes runs for good: their records, their checkpoints, and the bytes that these leave behind.

Checkpoints go first. A run whose checkpoints are gone is whole all the same (the journal is the
truth), so a crash in between leaves something that the same command finishes.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from plangate.graph.saver import open_saver
from plangate.journal.journal import Journal
from plangate.journal.owner import owner_name
from plangate.plan.errors import Conflict, EffectUnknown, RunBusy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import timedelta

    from plangate.journal.lease import Lease
    from plangate.journal.retention import Removed
    from plangate.journal.runs import Status

_TTL_S = 60.0


class Kept(NamedTuple):
    """A run that was not deleted."""

    run_id: str
    why: str


class Pruned(NamedTuple):
    """What became of the runs that were old enough."""

    removed: dict[str, Removed]
    kept: tuple[Kept, ...]


@dataclass(frozen=True, slots=True)
class Records:
    """A journal and the checkpoints that belong to it.

    Args:
        journal: Where the runs are.
        saver: Of their threads, ours or a host's.
    """

    journal: Journal
    saver: Any

    def delete(self, run_id: str) -> Removed:
        """Delete a run. Bytes that it leaves in a file are there until `rewrite`.

        Raises:
            ConfigError: No such run.
            RunBusy: Somebody is at work on it.
            EffectUnknown: It has effects of which nobody knows whether they happened.
            Conflict: Another run of its thread has not ended, and needs the thread's checkpoints.
        """
        runs, retention = self.journal.runs, self.journal.retention
        lease = runs.acquire(run_id, owner_name(), _TTL_S)
        try:
            retention.refuse_unsettled(run_id)
            self._forget_thread(lease)
            return retention.remove(lease)
        except BaseException:
            runs.release(lease)
            raise

    def prune(self, older_than: timedelta, status: Status = "ended") -> Pruned:
        """Delete all runs in a status in which nothing has happened for so long.

        One that cannot be deleted is kept, with why, and stops none of the others.
        """
        removed: dict[str, Removed] = {}
        kept: list[Kept] = []
        for run_id in self.idle(older_than, status):
            try:
                removed[run_id] = self.delete(run_id)
            except (RunBusy, EffectUnknown, Conflict) as exc:
                kept.append(Kept(run_id, str(exc)))
        return Pruned(removed, tuple(kept))

    def idle(self, older_than: timedelta, status: Status = "ended") -> list[str]:
        """Return the runs that `prune` would look at, oldest first."""
        before = self.journal.clock() - older_than
        return self.journal.retention.idle_since(before, status)

    def rewrite(self) -> bool:
        """Write the files anew, so that they hold nothing of what was deleted.

        Takes as much free space as the files have, and other writers wait. On a server, whose own
        clean-up does this, nothing happens.

        Returns:
            False where somebody reads an older state, so that traces are left for the moment.
        """
        done = self.journal.store.rewrite()
        rewrite = getattr(self.saver, "rewrite", None)
        return (rewrite is None or rewrite()) and done

    def _forget_thread(self, lease: Lease) -> None:
        """Delete the checkpoints of a run's thread; runs that have ended need none."""
        run = self.journal.runs.get(lease.run_id)
        beside = self.journal.retention.open_beside(run.run_id)
        if beside is not None:
            raise Conflict(
                f"run {beside!r} of the same thread has not ended and needs its checkpoints",
                hint="end it first: answer it, or plangate run cancel",
            )
        if run.thread_id and self.saver is not None:
            self.saver.delete_thread(run.thread_id)


@contextmanager
def open_records(journal_url: str) -> Iterator[Records]:
    """Open a journal and the checkpoints beside it.

    Raises:
        ConfigError: The URL cannot be read.
        JournalError: One of them cannot be opened.
    """
    with Journal.open(journal_url) as journal:
        saver = open_saver(journal.store)
        try:
            yield Records(journal, saver)
        finally:
            saver.close()
