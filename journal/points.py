"""Named moments of a run at which a process may die; nothing happens at them unless watched.

They are named where they stand in the code, so that the crash harness (`tests/crash`) finds them by
reading it: a moment cannot be added, or taken away, without a trial of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Watcher: TypeAlias = Callable[[str], None]
"""Called with a point, in whichever thread reaches it."""

_watcher: Watcher | None = None


def reached(point: str) -> None:
    """Tell the watcher, if there is one, that the process has come this far."""
    if _watcher is not None:
        _watcher(point)


def watch(watcher: Watcher | None) -> None:
    """Have all points of this process told to `watcher`; None ends it."""
    global _watcher  # noqa: PLW0603 (one a process, set before any run by a program for tests)
    _watcher = watcher
