"""One owner's hold on a run: what nodes and engine read, and the only way they write.

An event is queued and applied to the view in one step, so the view is ahead of the disk by what
`flush` waits for, never behind it and never in another order.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Self

from plangate.journal.artifacts import ref_of
from plangate.journal.cut import ends_of_cut, has_cut, was_not_made
from plangate.journal.events import Event, RunResumed
from plangate.journal.points import reached
from plangate.journal.purse import Purse
from plangate.journal.reservations import account_of
from plangate.journal.spending import SpendingLost
from plangate.journal.stop import Stop
from plangate.journal.view import RunView, fold
from plangate.journal.writer import Writer
from plangate.plan.spent import Spent
from plangate.plan.value.frozen import F, Frozen, load_json, parse

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from pydantic import JsonValue

    from plangate.journal.journal import Journal
    from plangate.journal.lease import Lease
    from plangate.journal.reference import Ref
    from plangate.journal.runs import Run

_KEPT_BYTES = 32 * 1024 * 1024


class Session:
    """A run that is held: its row, its view, and its writer. Made by `Session.open`."""

    def __init__(
        self, journal: Journal, run: Run, lease: Lease, view: RunView, ttl_s: float
    ) -> None:
        self.journal = journal
        self.run = run
        """The run's row as it was when the session began."""

        self.lease = lease
        self.view = view
        self.stop = Stop()
        """Told from outside to stop; whoever works for the session heeds it."""
        self.looked_back = False
        """True once this owner has compared what the run is made of with what it was."""

        self.before_event: Callable[[Event], None] | None = None
        """Told of each event before it is recorded; what it raises stands in the event's place."""

        self._writer = Writer(journal, lease, view.seq, ttl_s=ttl_s)
        self._recent = _Recent(_KEPT_BYTES)
        self._read: dict[Ref, Frozen] = {}
        # Sync tools report from their own threads; view and queue must have one order.
        self._one_at_a_time = threading.Lock()
        self._closed = False
        account = account_of(run.principal)
        self.purse = Purse(journal.reservations, lease, account)
        """What this owner takes of its principal's day."""

    @classmethod
    def open(cls, journal: Journal, run_id: str, owner: str, ttl_s: float) -> Session:
        """Take a run and bring its view up to date.

        Args:
            journal: Where the run is recorded.
            run_id: Which run.
            owner: From `owner_name()`, one a session.
            ttl_s: Seconds until others may take over after this process stops answering.

        Raises:
            ConfigError: No such run.
            RunBusy: Another owner is at work on it.
            JournalError: The log cannot be read.
        """
        lease = journal.runs.acquire(run_id, owner, ttl_s)
        try:
            view = fold(journal.log.read(run_id))
            view.run_id = run_id
            session = cls(journal, journal.runs.get(run_id), lease, view, ttl_s)
        except BaseException:
            journal.runs.release(lease)
            raise
        reached("session.opened")
        if view.seq:
            session.emit(RunResumed(owner=owner))
        try:
            session._close_cut()
            if view.seq:
                session._take_back()
        except BaseException:
            session.close()
            raise
        return session

    def _close_cut(self) -> None:
        """End the attempts that the owner before left without an end."""
        if has_cut(self.view):
            rows = self.journal.ledger.list(run_id=self.run.run_id)
            for ended in ends_of_cut(self.view, rows):
                self.emit(ended)

    def _take_back(self) -> None:
        """End what the owner before held back; only what certainly did not happen is free again."""
        left = self.journal.reservations.left_behind(self.lease)
        if not left:
            return
        free = {e.row_id for e in left if e.ledgered and was_not_made(self.view, e.act)}
        lost = [each for each in left if each.row_id not in free]
        # Attempts were charged at their end, see `ends_of_cut`; of other calls nobody else knows.
        tried = self.view.attempts
        asked = [each for each in lost if each.asked.model_calls and each.act not in tried]
        if asked:
            whole = sum((each.asked for each in asked), Spent())
            acts = tuple(each.act for each in asked)
            self.emit(
                SpendingLost(
                    acts=acts, usd=whole.usd, tokens=whole.tokens, model_calls=whole.model_calls
                )
            )
            self.flush()
        self.journal.reservations.take_back(self.lease, free, [each.row_id for each in lost])

    def emit(self, event: Event) -> None:
        """Record an event and apply it to the view; does not wait for the disk.

        Raises:
            LeaseLost: Another owner came; the view is not changed.
            JournalError: The writer failed before, or the session is closed.
        """
        with self._one_at_a_time:
            if self.before_event is not None:
                self.before_event(event)
            self._writer.emit(event)
            self.view.apply(event)

    def record_stop(self) -> None:
        """Record that the owner was told to stop; nothing if it was not, or a cancel stands."""
        if self.stop.asked is not None and self.view.cancelled is None:
            self.emit(self.stop.asked)

    def put(self, value: object) -> Ref:
        """Store a value, at the latest with the next event, and return its reference.

        Raises:
            JournalError: As `emit`, or the value cannot be stored as JSON.
        """
        sealed = ref_of(value)
        with self._one_at_a_time:
            if not self._recent.has(sealed.ref):
                self._writer.put_sealed(sealed)
                self._recent.keep(sealed.ref, sealed.body)
        return sealed.ref

    def load(self, ref: Ref) -> JsonValue:
        """Return the value behind a reference, as fresh plain data.

        Raises:
            JournalError: It is not there, or is not what the reference says.
        """
        with self._one_at_a_time:
            body = self._recent.body(ref)
        if body is not None:
            return load_json(body)
        if not self._closed:
            self._writer.flush()  # it may be queued and no longer among the recent ones
        return self.journal.artifacts.get(ref)

    def load_as(self, kind: type[F], ref: Ref) -> F:
        """Return the value behind a reference as a frozen value, read once a session.

        Raises:
            JournalError: As `load`.
            pydantic.ValidationError: It is no `kind`.
        """
        read = self._read.get(ref)
        if not isinstance(read, kind):
            read = self._read[ref] = parse(kind, self.load(ref))
        return read

    def flush(self) -> None:
        """Wait until all that was recorded is on the disk.

        Raises:
            LeaseLost: Another owner came.
            JournalError: The writer's first failure.
        """
        self._writer.flush()

    async def aflush(self) -> None:
        """Do the same without blocking the event loop."""
        await self._writer.aflush()

    def close(self) -> None:
        """Write what is queued, stop the writer and let go of the run; a second call does nothing.

        Raises:
            JournalError: Something that was emitted could not be written.
        """
        if self._closed:
            return
        self._closed = True
        try:
            self._writer.close()
            self.purse.close()
        finally:
            self.journal.runs.release(self.lease)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class _Recent:
    """The bodies of the newest artifacts, up to a number of bytes."""

    def __init__(self, capacity_bytes: int) -> None:
        self._capacity = capacity_bytes
        self._size = 0
        self._bodies: OrderedDict[Ref, bytes] = OrderedDict()

    def has(self, ref: Ref) -> bool:
        return ref in self._bodies

    def body(self, ref: Ref) -> bytes | None:
        return self._bodies.get(ref)

    def keep(self, ref: Ref, body: bytes) -> None:
        self._bodies[ref] = body
        self._size += len(body)
        while self._size > self._capacity and len(self._bodies) > 1:
            self._size -= len(self._bodies.popitem(last=False)[1])
