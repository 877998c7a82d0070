"""Deletes runs for good: their records, their checkpoints, and the bytes that these leave behind.

Checkpoints go first. A run whose checkpoints are gone is whole all the same (the journal is the
truth), so a crash in between leaves something that the same command finishes.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from plangate.graph.saver import open_saver
from plangate.journal.clock import EPOCH
from plangate.journal.journal import Journal
from plangate.journal.owner import owner_name
from plangate.plan.errors import ConfigError, Conflict, EffectUnknown, LeaseLost, RunBusy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import timedelta

    from plangate.journal.lease import Lease
    from plangate.journal.retention import Idle, Removed
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
    gone: tuple[str, ...]
    """Ids of runs that somebody else deleted meanwhile."""


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

        The checkpoints of a run inside another graph are in that graph's thread, which stays: see
        `plangate.graph.desk.outer_thread`.

        Raises:
            ConfigError: No such run.
            RunBusy: Somebody is at work on it.
            EffectUnknown: It has effects of which nobody knows whether they happened.
            Conflict: A run that has not ended needs it: one of its thread, or one that follows
                from it.
            LeaseLost: Somebody took it up meanwhile.
        """
        return self._delete(run_id, None)

    def prune(self, found: Iterable[Idle]) -> Pruned:
        """Delete runs that `idle` found. One that has to stay stops none of the others.

        A run that has gone on since it was found is kept, whatever its status is by now.
        """
        removed: dict[str, Removed] = {}
        kept: list[Kept] = []
        gone: list[str] = []
        for each in found:
            try:
                removed[each.run_id] = self._delete(each.run_id, each)
            except ConfigError:
                if self.journal.runs.find(each.run_id) is not None:
                    raise
                gone.append(each.run_id)
            except (RunBusy, EffectUnknown, Conflict, LeaseLost) as exc:
                kept.append(Kept(each.run_id, str(exc)))
        return Pruned(removed, tuple(kept), tuple(gone))

    def idle(self, older_than: timedelta, status: Status = "ended") -> list[Idle]:
        """Return the runs in a status in which nothing has happened for so long, oldest first."""
        now = self.journal.clock()
        before = now - min(older_than, now - EPOCH)
        return self.journal.retention.idle_since(before, status)

    def _delete(self, run_id: str, seen: Idle | None) -> Removed:
        runs, retention = self.journal.runs, self.journal.retention
        lease = runs.acquire(run_id, owner_name(), _TTL_S)
        try:
            self._refuse_moved(seen)
            retention.refuse_unsettled(run_id)
            self._refuse_needed(run_id)
            self._forget_thread(lease)
            return retention.remove(lease)
        except BaseException:
            runs.release(lease)
            raise

    def _refuse_moved(self, seen: Idle | None) -> None:
        if seen is not None and not self.journal.retention.is_still(seen):
            hint = "look at it, and delete it by name if you mean it"
            raise Conflict(f"run {seen.run_id!r} has gone on since it was listed", hint=hint)

    def _refuse_needed(self, run_id: str) -> None:
        """Stop where a run that has not ended rests on this one."""
        follower = self.journal.retention.open_after(run_id)
        if follower is not None:
            raise Conflict(
                f"run {follower!r} follows from run {run_id!r} and has not ended: it reads its"
                " record",
                hint=f"end {follower} first: answer it, or plangate run cancel {follower}",
            )

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
