"""Checkpoints in the journal's own Postgres database, over the journal's own connections.

So a checkpoint is backed up and restored with what it belongs to, a connection that broke is
replaced as the journal's are, and a write looks in its own transaction at who owns the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import sqlalchemy as sa
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from psycopg import Cursor
from psycopg.rows import DictRow, dict_row

from plangate.graph.threaded import Threaded
from plangate.journal.lease import Lease
from plangate.journal.runs import locked, refuse_former
from plangate.journal.store import Store

_OWNER: ContextVar[Lease | None] = ContextVar("plangate_checkpoint_owner", default=None)


class ThreadedPostgresSaver(Threaded, PostgresSaver):
    """LangGraph's Postgres saver on the connections of a journal."""

    def __init__(self, store: Store) -> None:
        # Nothing but plain data is let in when they are read; the default runs what a row names.
        super().__init__(conn=None, serde=JsonPlusSerializer(allowed_msgpack_modules=None))  # type: ignore[arg-type]  # `_cursor` is all that uses it
        self._store = store

    @contextmanager
    def _cursor(self, *, pipeline: bool = False) -> Iterator[Cursor[DictRow]]:
        """Give a cursor in one transaction, as the inherited one does for its pipelines."""
        del pipeline
        with self._store.write() as tx:
            if lease := _OWNER.get():
                refuse_former(locked(tx, lease.run_id), lease)
            connection: Any = tx.connection.driver_connection
            with connection.cursor(binary=True, row_factory=dict_row) as cursor:
                yield cursor

    def setup(self) -> None:
        """Make the tables, or bring them up; any number of processes may do so at once."""
        # Not `CONCURRENTLY`: that waits for every other transaction, so two set-ups for each other.
        todo = [text.replace("CONCURRENTLY", "") for text in self.MIGRATIONS]
        with self._store.write(alone="checkpoints") as tx:
            tx.exec_driver_sql(todo[0])
            done = tx.exec_driver_sql("SELECT max(v) FROM checkpoint_migrations").scalar()
            for version in range(0 if done is None else done + 1, len(todo)):
                tx.exec_driver_sql(todo[version])
                note = sa.text("INSERT INTO checkpoint_migrations (v) VALUES (:v)")
                tx.execute(note, {"v": version})

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Read one checkpoint."""
        return self._store.patiently(lambda _: PostgresSaver.get_tuple(self, config))

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Write a checkpoint; the same one twice is the same."""
        return self._store.patiently(
            lambda _: PostgresSaver.put(self, config, checkpoint, metadata, new_versions)
        )

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Write what a node gave; the same twice is the same."""
        self._store.patiently(
            lambda _: PostgresSaver.put_writes(self, config, writes, task_id, task_path)
        )

    @contextmanager
    def under(self, lease: Lease) -> Iterator[None]:
        """Have each write in the block look, in its own transaction, at who owns the run."""
        token = _OWNER.set(lease)
        try:
            yield
        finally:
            _OWNER.reset(token)

    def close(self) -> None:
        """Do nothing: the connections are the journal's."""


def open_postgres_saver(store: Store) -> ThreadedPostgresSaver:
    """Return the saver in a journal's database; its tables are made if need be."""
    saver = ThreadedPostgresSaver(store)
    saver.setup()
    return saver
