"""Where LangGraph's checkpoints go: a file of their own beside the journal, for both doors.

A file of its own, since a checkpoint is a program counter and the journal the truth: it may be
committed more cheaply (`synchronous=NORMAL`: a power cut can lose the newest ones, which costs a
node that runs again and finds its work in the journal), and its writes never wait for the
journal's. Measured per superstep, with a journal committing all the time (langgraph 1.2.24, ext4):
1.9 ms this way, 3.4 ms in the journal's file, 6.1 ms there with the journal's `synchronous=FULL`.

The saver is sync underneath. One `AsyncSqliteSaver` belongs to one event loop; ours is used from
the caller's loop, from the portal's and from plain threads at once.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver

from plangate.journal.points import reached
from plangate.journal.sqlite import enter_wal
from plangate.plan.errors import ConfigError, JournalError

BUSY_S: Final = 30.0
"""How long a write waits for another process before it gives up, in seconds."""

_ANSWER: Final = "__resume__"
"""The channel of answers to interrupts; its name in LangGraph is not public, a test pins it."""

S = TypeVar("S")
_HOMES: Final = {
    "langgraph.checkpoint.sqlite": "sqlite",
    "langgraph.checkpoint.postgres": "postgresql",
}


class ThreadedSqliteSaver(SqliteSaver):
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

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Read at once what matches, newest first.

        The inherited one holds the saver's lock from one item to the next, so a caller that reads a
        checkpoint inside its loop waits for itself.
        """
        return iter(tuple(super().list(config, filter=filter, before=before, limit=limit)))

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Read one checkpoint."""
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Read at once what matches, newest first."""
        found = await asyncio.to_thread(
            self.list, config, filter=filter, before=before, limit=limit
        )
        for item in found:
            yield item

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Write a checkpoint."""
        reached("checkpoint.writing")
        kept = await asyncio.to_thread(self.put, config, checkpoint, metadata, new_versions)
        reached("checkpoint.written")
        return kept

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Write what a node gave before its superstep ended."""
        await asyncio.to_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """Forget a thread."""
        await asyncio.to_thread(self.delete_thread, thread_id)

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


def open_saver(journal_url: str) -> ThreadedSqliteSaver:
    """Return the saver that belongs to a journal; its file is made if need be.

    Args:
        journal_url: As `Journal.url`, which is absolute; `sqlite:////srv/journal.db` gives
            `/srv/journal.checkpoints.db`.

    Raises:
        ConfigError: There is no saver for such a journal in this version.
        JournalError: The file cannot be opened.
    """
    if _family(journal_url) != "sqlite":
        raise ConfigError(
            f"there is no saver of our own for a journal on {_family(journal_url)!r}",
            hint="hand one in with checkpointer=",
        )
    path = checkpoints_path(journal_url)
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


def forgetting_answers(saver: S) -> S:
    """Return a view of a saver that keeps no answer to an interrupt.

    LangGraph saves what `Command(resume=...)` brought before the node runs. A node that refuses the
    caller (another principal, a run that is held elsewhere) leaves it there, and the next
    `invoke(None)` by whoever may would take it for an answer. What counts is in the journal.

    Args:
        saver: Ours or a host's; it is not changed, since other graphs may use it.
    """
    if not isinstance(saver, BaseCheckpointSaver):
        return saver
    view: Any = copy(saver)

    def put_writes(config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        if kept := _without_answers(writes):
            saver.put_writes(config, kept, task_id, task_path)

    async def aput_writes(config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        if kept := _without_answers(writes):
            await saver.aput_writes(config, kept, task_id, task_path)

    view.put_writes, view.aput_writes = put_writes, aput_writes
    return cast("S", view)


def _without_answers(writes: Sequence[tuple[str, Any]]) -> list[tuple[str, Any]]:
    return [(channel, value) for channel, value in writes if channel != _ANSWER]


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
