"""The one clock of the journal: aware, UTC, and handed in, so that a test can move it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeAlias

Clock: TypeAlias = Callable[[], datetime]
"""Returns the current time, aware and in UTC."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""Stands for "not set yet" where a time is filled in by the journal."""


def utc_now() -> datetime:
    """Return the current time of this machine."""
    return datetime.now(UTC)
