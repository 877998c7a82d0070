"""The database under the journal: everything that depends on its dialect is in this file.

SQLite is opened in WAL mode with `synchronous=FULL` (a commit is on the disk before it returns) and
writes begin with `BEGIN IMMEDIATE`, so that a check and the insert that relies on it see one state.
Statements elsewhere are portable.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

from plangate.plan.errors import ConfigError, JournalError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy.sql.dml import Insert

BUSY_S = 30.0
"""How long a write waits for another process before it gives up."""

_HINTS = (
    ("not a database", "point the journal at another path, or move that file away"),
    ("unable to open", "check that its directory exists, is a directory and can be written"),
    ("readonly", "make the file and its directory writable, or point the journal elsewhere"),
    ("locked", f"another process has been writing for {BUSY_S:.0f} s; look for one that hangs"),
    ("disk is full", "free some space; nothing that was acknowledged is lost"),
    ("malformed", "keep the file, restore a copy, and check it with `PRAGMA integrity_check`"),
    ("no such", "the file has tables of another program; point the journal at a file of its own"),
    ("already exists", "the file has tables of another program; point the journal elsewhere"),
)
_OTHERWISE = "run `plangate doctor`; nothing of this transaction was written"


class Store:
    """One database, and how to read and write it from any thread."""

    def __init__(self, engine: sa.Engine) -> None:
        self.engine = engine
        self._writing = engine.execution_options(plangate_writes=True)
        # SQLite's own waiting is a sleep of up to 100 ms; threads of one process hand over at once.
        self._turn = threading.Lock()
        self._path = str(engine.url.database)
        self._file: tuple[int, int] | None = None

    @property
    def url(self) -> str:
        """Where the database is, with an absolute path."""
        return self.engine.url.render_as_string(hide_password=False)

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """Give a transaction that is committed, durably, at the end of the block or not at all.

        Raises:
            JournalError: The database refused.
        """
        with self._turn, _translated(self.engine.url), self._writing.begin() as tx:
            yield tx
            self._check_place()

    def _check_place(self) -> None:
        """A file that was taken away takes everything that is written, and keeps nothing."""
        found = _identity(self._path)
        self._file = self._file or found
        if found is None or found != self._file:
            raise JournalError(
                f"the journal at {self._path!r} was removed or replaced while it was open",
                hint="put the file back, or start anew; nothing more is done that it cannot keep",
            )

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """Give a transaction that sees one state of the database and waits for no writer.

        Raises:
            JournalError: The database refused.
        """
        with _translated(self.engine.url), self.engine.begin() as tx:
            yield tx

    def close(self) -> None:
        """Close all connections. A closed store opens them again when it is used."""
        self.engine.dispose()


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def insert_new(table: sa.Table) -> Insert:
    """Return an insert that leaves an existing row alone; its row count tells which it was."""
    return sqlite.insert(table).on_conflict_do_nothing()


def open_engine(url: str) -> sa.Engine:
    """Return an engine for the database at `url`; its directory is made if need be.

    Args:
        url: As `sqlite:///path/to/journal.db`. A relative path is fixed to an absolute one now, so
            that a later change of directory does not open a second journal.

    Raises:
        ConfigError: The URL cannot be read, or names a database that is not supported.
        JournalError: The directory cannot be made.
    """
    parsed = _parsed(url)
    path = Path(parsed.database or "").expanduser().absolute()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        what = f"the journal's directory {str(path.parent)!r} cannot be made: {exc.strerror}"
        raise JournalError(what, hint="point the journal at a directory you may write") from exc
    engine = sa.create_engine(
        parsed.set(database=str(path)),
        connect_args={"check_same_thread": False, "timeout": BUSY_S},
        hide_parameters=True,  # parameters hold payloads; errors must not
        pool_size=8,
        max_overflow=56,
    )
    sa.event.listen(engine, "connect", _prepare)
    sa.event.listen(engine, "begin", _begin)
    return engine


def _parsed(url: str) -> sa.URL:
    hint = "write it as sqlite:///path/to/journal.db"
    try:
        parsed = sa.make_url(url)
    except sa.exc.ArgumentError as exc:
        raise ConfigError(f"the journal's URL {url!r} cannot be read", hint=hint) from exc
    if parsed.get_backend_name() != "sqlite":
        what = f"a journal on {parsed.get_backend_name()!r} is not supported in this version"
        raise ConfigError(what, hint=hint)
    if parsed.database in (None, "", ":memory:") or str(parsed.database).startswith("file:"):
        what = "a journal in memory would not survive the process and cannot be shared by threads"
        raise ConfigError(what, hint=hint)
    return parsed


def _prepare(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None  # transactions begin in `_begin`, not behind our back
    try:
        enter_wal(connection)
        connection.execute("PRAGMA synchronous=FULL")
    except sqlite3.Error:
        connection.close()
        raise


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


def _begin(connection: sa.Connection) -> None:
    writes = connection.get_execution_options().get("plangate_writes", False)
    # Below SQLAlchemy's own execution, which costs more than the statement.
    connection.connection.cursor().execute("BEGIN IMMEDIATE" if writes else "BEGIN")


@contextmanager
def _translated(url: sa.URL) -> Iterator[None]:
    try:
        yield
    except UnicodeEncodeError as exc:
        what = "a record holds text that is not valid Unicode"
        raise JournalError(what, hint="clean text from outside before it is recorded") from exc
    except (sa.exc.DBAPIError, sa.exc.TimeoutError, sqlite3.Error) as exc:
        cause: Any = getattr(exc, "orig", None) or exc
        said = str(cause)
        hint = next((hint for mark, hint in _HINTS if mark in said), _OTHERWISE)
        raise JournalError(f"the journal at {url.database!r} refused: {said}", hint=hint) from exc
