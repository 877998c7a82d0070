"""Follows a run by reading its log: what is shown is what is recorded, whoever does the work."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from plangate.journal.events import Entry
    from plangate.journal.journal import Journal

POLL_S = 0.05
"""Twenty looks a second seem immediate to a person, and cost a reader of SQLite nothing."""


class Versions:
    """Says which version of the plan each event belongs to; is shown each event of a run once."""

    def __init__(self) -> None:
        self._now = 0
        self._of_attempt: dict[str, int] = {}

    def of(self, entry: Entry) -> int:
        """Return the version; 0: before there was a plan.

        A late end of an attempt belongs to the version under which the attempt began.
        """
        event = entry.event
        attempt = getattr(event, "attempt_id", "")
        own = int(getattr(event, "plan_version", 0) or getattr(event, "version", 0))
        found = own or self._of_attempt.get(attempt, self._now)
        self._now = max(self._now, found)
        if attempt:
            self._of_attempt.setdefault(attempt, found)
        return found


class Follower:
    """One reader of one run's log, from a given event on.

    Args:
        journal: Where the log is.
        run_id: Whose log.
        show: Is given each entry, once and in order.
        after: Number of the last event that is known already.
    """

    def __init__(
        self, journal: Journal, run_id: str, show: Callable[[Entry], None], after: int = 0
    ) -> None:
        self._journal = journal
        self._run_id = run_id
        self._show = show
        self._seen = after
        self._reading = threading.Lock()  # the last look must not overlap one of the thread

    def look(self) -> None:
        """Show what is new."""
        with self._reading:
            for entry in self._journal.log.read(self._run_id, after=self._seen):
                self._seen = entry.seq
                self._show(entry)

    @contextmanager
    def following(self) -> Iterator[None]:
        """Show what happens while the block runs, and the rest of it at the end."""
        over = threading.Event()

        def watch() -> None:
            while not over.wait(POLL_S):
                self.look()

        thread = threading.Thread(target=watch, name="plangate-follow", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            self.look()
