"""What an owner is told from outside while it works: to drain, or that its run was cancelled.

A cancel is a row like a decision: anybody may write it, with no lease, the first one counts, and
whoever owns the run folds it in. A drain is a matter of one process and lies in no database.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from plangate.journal.questions import StopAsked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from plangate.journal.decisions import Decision, Decisions


def cancel_id(run_id: str) -> str:
    """Return the id under which the cancellation of a run is recorded."""
    return f"{run_id}-cancel"


def cancellation(decisions: Decisions, run_id: str) -> StopAsked | None:
    """Return who cancelled a run, whether its owner has folded it in or not."""
    said: Decision | None = decisions.get(cancel_id(run_id))
    return None if said is None else StopAsked(kind="cancel", by=said.by, reason=said.comment)


class Stop:
    """Told once, in any thread; a cancel outweighs a drain, and nothing takes either back."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked: StopAsked | None = None
        self._listeners: list[Callable[[], object]] = []

    @property
    def asked(self) -> StopAsked | None:
        """What was asked; None: go on."""
        return self._asked

    def ask(self, what: StopAsked) -> None:
        """Tell the owner to stop; nothing if it knows already."""
        with self._lock:
            if self._asked is not None and (self._asked.kind, what.kind) != ("drain", "cancel"):
                return
            self._asked = what
            for tell in self._listeners:
                tell()

    @contextmanager
    def telling(self, listener: Callable[[], object]) -> Iterator[None]:
        """Have `listener` called at each change inside the block, and at once if there was one.

        Args:
            listener: Called in the thread of whoever asks, under a lock; must return at once.
        """
        with self._lock:
            self._listeners.append(listener)
            if self._asked is not None:
                listener()
        try:
            yield
        finally:
            with self._lock:
                self._listeners.remove(listener)
