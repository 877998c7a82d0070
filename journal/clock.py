"""The one clock of the journal: aware, UTC, and handed in, so that a test can move it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

Clock: TypeAlias = Callable[[], datetime]
"""Returns the current time, aware and in UTC."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""Stands for "not set yet" where a time is filled in by the journal."""


def utc_now() -> datetime:
    """Return the current time of this machine."""
    return datetime.now(UTC)


class Steady:
    """The wall clock of one process, which never goes back and never stands still.

    A clock that is set back would make what has expired valid again. After such a change the time
    goes on by the machine's monotonic clock until the wall clock has caught up.

    Args:
        wall: May jump either way.
        monotonic: Seconds that only grow.
    """

    def __init__(
        self, wall: Clock = utc_now, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._wall = wall
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._last = EPOCH
        self._at_s = monotonic()

    def __call__(self) -> datetime:
        """Return the current time, not before any that was returned."""
        with self._lock:
            now_s = self._monotonic()
            passed = timedelta(seconds=now_s - self._at_s)
            self._last, self._at_s = max(self._wall(), self._last + passed), now_s
            return self._last


def not_before(clock: Clock, known: datetime) -> Clock:
    """Return the clock, but for times before one that is known to be past: then that one.

    What a run has recorded is past, whatever a clock says that was set back since.
    """
    return lambda: max(clock(), known)
