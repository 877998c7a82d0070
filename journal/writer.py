"""One thread that writes a run's events: many events a transaction, in order, nothing dropped.

Whoever emits does not wait for the disk. What must be on the disk before something else happens (an
effect, a question, an answer to the caller) waits at `flush`. The first failure ends the writer:
what was not written then is never written later out of order, and every later call raises it.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from concurrent.futures import Future
from typing import TYPE_CHECKING, TypeAlias

from plangate.journal.artifacts import Sealed, ref_of
from plangate.journal.log import Written, write_down
from plangate.plan.errors import JournalError

if TYPE_CHECKING:
    from plangate.journal.events import Event
    from plangate.journal.journal import Journal
    from plangate.journal.lease import Lease
    from plangate.journal.reference import Ref

_Item: TypeAlias = "Written | Sealed"
_BATCH = 2_000
"""Items a transaction at most, so that other processes get their turn."""


class Writer:
    """Writes for one owner of one run, and renews its lease.

    Args:
        journal: Where to.
        lease: The owner's hold.
        last_seq: Number of the newest event in the log.
        ttl_s: Time to live of the lease, in seconds; it is renewed after each third of it.
        window_s: How long the first event of a batch waits for more; a flush ends the wait.
        capacity: Items in the queue at most; then `emit` blocks until there is room.
    """

    def __init__(
        self,
        journal: Journal,
        lease: Lease,
        last_seq: int,
        *,
        ttl_s: float,
        window_s: float = 0.002,
        capacity: int = 10_000,
    ) -> None:
        self._journal = journal
        self._lease = lease
        self._seq = last_seq
        self._ttl_s = ttl_s
        self._window_s = window_s
        self._capacity = capacity
        self._queue: deque[_Item] = deque()
        self._barriers: deque[tuple[int, Future[None]]] = deque()
        self._put = 0
        self._done = 0
        self._closing = False
        self._failure: Exception | None = None
        lock = threading.Lock()
        self._work = threading.Condition(lock)
        self._room = threading.Condition(lock)
        self._renew_at = time.monotonic() + ttl_s / 3
        # A daemon: a program that ends without closing loses what it did not flush, and ends.
        name = f"plangate-journal-{lease.run_id}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def emit(self, event: Event) -> None:
        """Queue an event; blocks only while the queue is full.

        Raises:
            JournalError: The writer failed before (its first failure), is closed, or the event
                cannot be written.
        """
        self._enqueue(write_down(event, self._journal.clock()))

    def put(self, value: object) -> Ref:
        """Queue an artifact, to be stored no later than the events that are emitted after it.

        Raises:
            JournalError: As `emit`, or the value has no canonical form.
        """
        return self.put_sealed(ref_of(value))

    def put_sealed(self, sealed: Sealed) -> Ref:
        """Queue an artifact whose canonical form is known already."""
        self._enqueue(sealed)
        return sealed.ref

    def flush(self) -> None:
        """Wait until all that was queued so far is on the disk.

        Raises:
            JournalError: The first failure of the writer.
        """
        self._barrier().result()

    async def aflush(self) -> None:
        """Do the same without blocking the event loop."""
        await asyncio.wrap_future(self._barrier())

    def close(self) -> None:
        """Write what is queued and stop the thread; may be called twice.

        Raises:
            JournalError: The first failure of the writer.
        """
        with self._work:
            self._closing = True
            self._work.notify()
            self._room.notify_all()
        self._thread.join()
        self._raise_failure()

    def _enqueue(self, item: _Item) -> None:
        with self._work:
            while len(self._queue) >= self._capacity and not self._stopped:
                self._room.wait()
            self._raise_failure()
            if self._closing:
                what = f"the writer of run {self._lease.run_id!r} is closed"
                raise JournalError(what, hint="open a new session on the run")
            self._queue.append(item)
            self._put += 1
            # In between, the thread sleeps through its window; waking it for each would cost more.
            if len(self._queue) in (1, _BATCH, self._capacity):
                self._work.notify()

    def _barrier(self) -> Future[None]:
        reached: Future[None] = Future()
        with self._work:
            self._raise_failure()
            if self._done == self._put:
                reached.set_result(None)
            else:
                self._barriers.append((self._put, reached))
                self._work.notify()
        return reached

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure.with_traceback(None)

    @property
    def _stopped(self) -> bool:
        return self._closing or self._failure is not None

    def _run(self) -> None:
        try:
            while (batch := self._next()) is not None:
                self._commit(batch)
        except Exception as exc:  # noqa: BLE001 (whoever emits or flushes next raises it)
            self._fail(exc)

    def _next(self) -> list[_Item] | None:
        """Wait for work; an empty batch means that only the lease is due, None that all is done."""
        with self._work:
            while not self._queue and not self._closing:
                left = self._renew_at - time.monotonic()
                if left <= 0:
                    return []
                self._work.wait(left)
            if not self._queue:
                return None
            self._gather()
            batch = [self._queue.popleft() for _ in range(min(len(self._queue), _BATCH))]
            self._room.notify_all()
        return batch

    def _gather(self) -> None:
        """Let a batch grow for the length of the window, unless somebody waits for it."""
        until = time.monotonic() + self._window_s
        full = min(_BATCH, self._capacity)
        while len(self._queue) < full and not self._barriers and not self._closing:
            left = until - time.monotonic()
            if left <= 0:
                return
            self._work.wait(left)

    def _commit(self, batch: list[_Item]) -> None:
        if batch:
            events = [item for item in batch if isinstance(item, Written)]
            bodies = {item.ref: item.body for item in batch if isinstance(item, Sealed)}
            log = self._journal.log
            self._seq = log.append_written(self._lease, self._seq, events, bodies)
            self._passed(len(batch))
        if time.monotonic() >= self._renew_at:
            self._journal.runs.renew(self._lease, self._ttl_s)
            self._renew_at = time.monotonic() + self._ttl_s / 3

    def _passed(self, count: int) -> None:
        reached = []
        with self._work:
            self._done += count
            while self._barriers and self._barriers[0][0] <= self._done:
                reached.append(self._barriers.popleft()[1])
        for future in reached:
            if future.set_running_or_notify_cancel():
                future.set_result(None)

    def _fail(self, exc: Exception) -> None:
        with self._work:
            self._failure = exc
            self._queue.clear()
            waiting = [future for _, future in self._barriers]
            self._barriers.clear()
            self._room.notify_all()
        for future in waiting:
            if future.set_running_or_notify_cancel():
                future.set_exception(exc)
