"""Where LangGraph's checkpoints go: a file of their own beside the journal, for both doors.

A file of its own, since a checkpoint is a program counter and the journal the truth: it may be
committed more cheaply (`synchronous=NORMAL`: a power cut can lose the newest ones, which costs a
node that runs again and finds its work in the journal), and its writes never wait for the
journal's. Measured per superstep, with a journal committing all the time (langgraph 1.2.24, ext4):
1.9 ms this way, 3.4 ms in the journal's file, 6.1 ms there with the journal's `synchronous=FULL`.

A journal on Postgres has its checkpoints in the same database (`plangate.graph.postgres_saver`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver

from plangate.graph.threaded import Threaded
from plangate.journal.sqlite import enter_wal
from plangate.journal.store import Store
from plangate.plan.errors import ConfigError, JournalError

if TYPE_CHECKING:
    from plangate.graph.postgres_saver import ThreadedPostgresSaver

BUSY_S: Final = 30.0
"""How long a write waits for another process before it gives up, in seconds."""

_HOMES: Final = {
    "langgraph.checkpoint.sqlite": "sqlite",
    "langgraph.checkpoint.postgres": "postgresql",
}


class ThreadedSqliteSaver(Threaded, SqliteSaver):
    """LangGraph's SQLite saver with async methods, which run the sync ones in a worker thread."""

    @contextmanager
    def cursor(self, transaction: bool = True) -> Iterator[sqlite3.Cursor]:  # noqa: FBT001, FBT002
        """Give a cursor, as the inherited one does; what the file refuses is said in our words."""
        try:
            with super().cursor(transaction) as cursor:
                yield cursor
        except sqlite3.Error as exc:
            raise JournalError(
                f"the checkpoints refused: {exc}",
                hint="free space, or make the file writable; nothing in the journal is lost",
            ) from exc

    def rewrite(self) -> bool:
        """Write the file anew, so that nothing of what was deleted is left in it.

        Returns:
            False where somebody reads an older state, so that the trace is left for the moment.
        """
        with self.cursor(transaction=False) as cursor:
            cursor.execute("VACUUM")
            busy, *_ = cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone() or (1,)
        return not busy

    def close(self) -> None:
        """Close the file. A closed saver cannot be used again."""
        with self.lock:
            self.conn.close()


def open_saver(store: Store) -> ThreadedSqliteSaver | ThreadedPostgresSaver:
    """Return the saver that belongs to a journal; its file or its tables are made if need be.

    Args:
        store: The journal's. `/srv/journal.db` has them in `/srv/journal.checkpoints.db`.

    Raises:
        JournalError: The file cannot be opened, or the database refused.
    """
    if _family(store.url) == "postgresql":
        from plangate.graph.postgres_saver import open_postgres_saver  # noqa: PLC0415 (an extra)

        return open_postgres_saver(store)
    path = checkpoints_path(store.url)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return open_file(path)
    except (OSError, sqlite3.Error) as exc:
        what = f"the checkpoints at {str(path)!r} cannot be opened: {exc}"
        raise JournalError(what, hint="make the directory and the file writable") from exc


def open_file(path: Path) -> ThreadedSqliteSaver:
    """Open the checkpoints in one file, with nothing but plain data let in when they are read.

    LangGraph's default serializer imports and calls whatever the file names.
    """
    connection = sqlite3.connect(path, timeout=BUSY_S, check_same_thread=False)
    try:
        _settle(connection)
        saver = ThreadedSqliteSaver(
            connection, serde=JsonPlusSerializer(allowed_msgpack_modules=None)
        )
        saver.setup()
    except sqlite3.Error:
        connection.close()
        raise
    return saver


def checkpoints_path(journal_url: str) -> Path:
    """Return the file beside the journal's that holds its checkpoints."""
    journal = Path(journal_url.partition(":///")[2].partition("?")[0])
    return journal.with_name(f"{journal.stem}.checkpoints{journal.suffix or '.db'}")


def check_saver(saver: object, journal_url: str) -> None:
    """Refuse a saver on another kind of database than the journal's.

    The two would be backed up, moved and lost apart from each other. Savers that are neither on
    SQLite nor on Postgres are the host's affair and let in, as is None.

    Raises:
        ConfigError: One is on SQLite, the other on Postgres.
    """
    modules = [base.__module__ for base in type(saver).__mro__]
    kinds = [kind for home, kind in _HOMES.items() if any(home in module for module in modules)]
    if kinds and _family(journal_url) not in kinds:
        raise ConfigError(
            f"the journal is on {_family(journal_url)!r} and the checkpoints are on {kinds[0]!r}",
            hint="put both on the same database, or leave checkpointer= out",
        )


def _family(url: str) -> str:
    name = url.partition(":")[0].partition("+")[0]
    return "postgresql" if name == "postgres" else name


def _settle(connection: sqlite3.Connection) -> None:
    enter_wal(connection)
    connection.execute("PRAGMA synchronous=NORMAL")
