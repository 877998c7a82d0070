"""Async methods for a sync saver: each runs the sync one in a worker thread.

One of LangGraph's async savers belongs to one event loop; ours are used from the caller's loop,
from the portal's and from plain threads at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)

from plangate.journal.points import reached


class Threaded(BaseCheckpointSaver[str]):
    """Stands before a sync saver among the bases of a class."""

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Read at once what matches, newest first.

        The inherited ones hold a lock or a connection from one item to the next, so a caller that
        reads a checkpoint inside its loop waits for itself.
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
