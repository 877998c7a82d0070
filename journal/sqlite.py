"""A journal in a file: all that is SQLite's own, in WAL mode with `synchronous=FULL`.

A commit is on the disk before it returns, and a write begins with `BEGIN IMMEDIATE`, so that a
check and the insert that relies on it see one state.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import sqlalchemy as sa

from plangate.plan.errors import ConfigError, JournalError

if TYPE_CHECKING:
    from collections.abc import Iterator

BUSY_S: Final = 30.0
"""How long a write waits for another process before it gives up."""


class File:
    """The file under one store."""

    errors: tuple[type[Exception], ...] = (sqlite3.Error,)
    hints: tuple[tuple[str, str], ...] = (
        ("not a database", "point the journal at another path, or move that file away"),
        ("unable to open", "check that its directory exists, is a directory and can be written"),
        ("readonly", "make the file and its directory writable, or point the journal elsewhere"),
        ("locked", f"another process has been writing for {BUSY_S:.0f} s; look for one that hangs"),
        ("disk is full", "free some space; nothing that was acknowledged is lost"),
        ("malformed", "keep the file, restore a copy, and check it with `PRAGMA integrity_check`"),
        (
            "no such",
            "the file has tables of another program; point the journal at a file of its own",
        ),
        ("already exists", "the file has tables of another program; point the journal elsewhere"),
    )

    def __init__(self, engine: sa.Engine) -> None:
        self.url = engine.url.render_as_string(hide_password=False)
        self.name = str(engine.url.database)
        self._engine = engine
        self._writing = engine.execution_options(plangate_writes=True)
        # SQLite's own waiting is a sleep of up to 100 ms; threads of one process hand over at once.
        self._turn = threading.Lock()
        self._file: tuple[int, int] | None = None

    @contextmanager
    def write(self, alone: str, *, again: bool) -> Iterator[sa.Connection]:
        """Give a transaction that writes; there is one at a time, so all are `alone`."""
        del alone, again
        with self._turn, self._writing.begin() as tx:
            yield tx
            self._check_place()

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """Give a transaction that waits for no writer."""
        with self._engine.begin() as tx:
            yield tx

    def rewrite(self) -> bool:
        """Write the file anew and empty its log, so that no page holds what was deleted.

        Other writers wait meanwhile, up to `BUSY_S`; it takes the file's size in free space.
        """
        with self._turn:
            connection = self._engine.raw_connection()
            try:
                cursor = connection.cursor()
                cursor.execute("VACUUM")
                cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                busy, *_ = cursor.fetchone() or (1,)
                return not busy
            finally:
                connection.close()

    def is_lost(self, error: Exception) -> bool:
        """Return False: a file does not hang up."""
        del error
        return False

    def cause(self, error: Exception) -> Exception:
        """Return the error: with hidden parameters it holds no values."""
        return error

    def _check_place(self) -> None:
        """A file that was taken away takes everything that is written, and keeps nothing."""
        found = _identity(self.name)
        self._file = self._file or found
        if found is None or found != self._file:
            raise JournalError(
                f"the journal at {self.name!r} was removed or replaced while it was open",
                hint="put the file back, or start anew; nothing more is done that it cannot keep",
            )


def open_file(url: sa.URL) -> sa.Engine:
    """Return an engine for the file at `url`; its directory is made if need be.

    A relative path is fixed to an absolute one now, so that a later change of directory does not
    open a second journal.

    Raises:
        ConfigError: It is no file.
        JournalError: The directory cannot be made.
    """
    if url.database in (None, "", ":memory:") or str(url.database).startswith("file:"):
        what = "a journal in memory would not survive the process and cannot be shared by threads"
        raise ConfigError(what, hint="write it as sqlite:///path/to/journal.db")
    path = Path(str(url.database)).expanduser().absolute()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        what = f"the journal's directory {str(path.parent)!r} cannot be made: {exc.strerror}"
        raise JournalError(what, hint="point the journal at a directory you may write") from exc
    engine = sa.create_engine(
        url.set(database=str(path)),
        connect_args={"check_same_thread": False, "timeout": BUSY_S},
        hide_parameters=True,  # parameters hold payloads; errors must not
        pool_size=8,
        max_overflow=56,
    )
    sa.event.listen(engine, "connect", _prepare)
    sa.event.listen(engine, "begin", _begin)
    return engine


def enter_wal(connection: sqlite3.Connection) -> None:
    """Let readers and one writer of a file work at once; waits for others that open it now.

    Raises:
        sqlite3.Error: The file is no database, or was locked for `BUSY_S`.
    """
    deadline = time.monotonic() + BUSY_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as exc:
            # The first switch of a new file ignores the busy time-out: two openers, one fails.
            if "locked" not in str(exc) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _prepare(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None  # transactions begin in `_begin`, not behind our back
    try:
        enter_wal(connection)
        connection.execute("PRAGMA synchronous=FULL")
    except sqlite3.Error:
        connection.close()
        raise


def _begin(connection: sa.Connection) -> None:
    writes = connection.get_execution_options().get("plangate_writes", False)
    # Below SQLAlchemy's own execution, which costs more than the statement.
    connection.connection.cursor().execute("BEGIN IMMEDIATE" if writes else "BEGIN")
