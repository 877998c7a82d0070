"""What may get into a checkpoint, whichever saver writes it.

Only what the run's present owner writes: a former owner that wakes up would fork the thread. The
fence that counts is in the node and in the journal, and a forked checkpoint changes no outcome;
this one keeps the history clean. Only plain JSON: what LangGraph's serializer makes of anything
else is found out when the run is read back. No answers to interrupts: those are the journal's. And
no secrets in what a caller hands in: LangGraph saves it before any node of ours could look.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import copy
from typing import Any, Final, Protocol, TypeAlias, TypeVar, cast, runtime_checkable

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import WRITES_IDX_MAP, BaseCheckpointSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.types import Command

from plangate.journal.lease import Lease
from plangate.journal.runs import Runs, refuse_former
from plangate.plan.errors import ConfigError, LeaseLost
from plangate.plan.secrets import refuse_secrets

S = TypeVar("S")
Owner: TypeAlias = Callable[[RunnableConfig], Lease | None]
"""Returns the newest hold that an invocation had on its run; None: it has had none yet."""

_ANSWER: Final = "__resume__"
"""The channel of answers to interrupts; its name in LangGraph is not public, a test pins it."""

_GIVEN: Final = ("__start__", "goal", "inputs", "goal_id", "task")
"""The channels of what the caller hands in."""

LONGEST_ID: Final = 200
"""Characters of a run id, and of a goal id in a plan."""

_WHOLE: Final = (-(2**63), 2**64 - 1)
"""Whole numbers that msgpack can write."""


@runtime_checkable
class OnJournal(Protocol):
    """A saver whose writes are transactions of the journal's database."""

    def under(self, lease: Lease) -> AbstractContextManager[None]:
        """Have each write in the block look at who owns the run."""


def fenced(saver: S, owner: Owner, runs: Runs) -> S:
    """Return a view of a saver that writes only what belongs into a checkpoint.

    Args:
        saver: Ours or a host's; it is not changed, since other graphs may use it.
        owner: From the desk.
        runs: Of the journal; asked right before each write, or, where the saver writes to the same
            database, in the transaction of the write.

    Raises:
        LeaseLost: (A write) another owner took the run over.
        ConfigError: (A write) the state holds something that is not JSON.
    """
    if not isinstance(saver, BaseCheckpointSaver):
        return saver
    view: Any = copy(saver)
    view.serde = _strict(saver.serde)
    guard = _Guard(saver, owner, runs)
    for name in ("put", "aput", "put_writes", "aput_writes"):
        setattr(view, name, getattr(guard, name))
    return cast("S", view)


class _Guard:
    def __init__(self, saver: BaseCheckpointSaver[Any], owner: Owner, runs: Runs) -> None:
        self._saver = saver
        self._owner = owner
        self._runs = runs

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        need_plain(_changed(checkpoint, new_versions))
        with self._checked(config):
            return self._saver.put(config, checkpoint, metadata, new_versions)

    async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        need_plain(_changed(checkpoint, new_versions))
        with await asyncio.to_thread(self._checked, config):
            return await self._saver.aput(config, checkpoint, metadata, new_versions)

    def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        kept = _kept(writes)
        if kept:
            with _dropped(kept), self._checked(config):
                self._saver.put_writes(config, kept, task_id, task_path)

    async def aput_writes(
        self, config: Any, writes: Any, task_id: str, task_path: str = ""
    ) -> None:
        kept = _kept(writes)
        if kept:
            with _dropped(kept), await asyncio.to_thread(self._checked, config):
                await self._saver.aput_writes(config, kept, task_id, task_path)

    def _checked(self, config: RunnableConfig) -> AbstractContextManager[None]:
        """Ask who owns the run: now, or inside the write where the saver can do that."""
        lease = self._owner(config)
        if lease is None:
            return nullcontext()
        if isinstance(self._saver, OnJournal):
            return self._saver.under(lease)
        refuse_former(self._runs.get(lease.run_id), lease)
        return nullcontext()


def need_plain(values: Sequence[tuple[str, Any]]) -> None:
    """Refuse what JSON does not have, before anything is written.

    Args:
        values: Pairs of channel and value. LangGraph's own channels (`__...`) hold its own types;
            of those only the input and an interrupt's payload are looked at.

    Raises:
        ConfigError: It names the channel, the place in it and the type, or a secret among what the
            caller handed in.
    """
    for channel, given in values:
        value = _said(given) if channel == "__start__" else given
        looked_at = not channel.startswith("__") or channel == "__start__"
        for path, what in _odd(value, channel) if looked_at else _odd_payloads(channel, value):
            raise ConfigError(
                f"the state cannot keep {what} at {path}",
                hint="give plain JSON: text, numbers, true, false, null, lists, objects",
            )
        if channel in ("__start__", "run_id"):
            need_name(value.get("run_id") if isinstance(value, dict) else value)
        if channel in _GIVEN:
            refuse_secrets("the run", value if channel == "__start__" else {channel: value})


def need_name(run_id: object) -> None:
    """Refuse a run id that is no short text: a thread keeps it, and each later goal fails of it.

    Raises:
        ConfigError: It is something else, or longer than a goal id, which it is where none is said.
    """
    if not isinstance(run_id, str | None):
        what = f"run_id is of type {type(run_id).__name__}, not text"
        raise ConfigError(what, hint='leave it out, or give text as "refund-17"')
    if run_id is not None and len(run_id) > LONGEST_ID:
        what = f"run_id has {len(run_id)} characters, and a plan has room for {LONGEST_ID}"
        raise ConfigError(what, hint='leave it out, or give text as "refund-17"')


def _said(given: Any) -> Any:
    """Return what a caller put into its input: a resume without a checkpoint comes as a command."""
    if not isinstance(given, Command):
        return given
    return {"resume": given.resume, "update": given.update}


def _odd_payloads(channel: str, value: Any) -> Iterator[tuple[str, str]]:
    if channel == "__interrupt__":
        for each in value:
            yield from _odd(each.value, "the interrupt's payload")


def _odd(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield the places and types of all that is not JSON."""
    if type(value) is list:
        for number, each in enumerate(value):
            yield from _odd(each, f"{path}[{number}]")
    elif type(value) is dict:
        for key, each in value.items():
            if type(key) is not str:
                yield path, f"a key of type {type(key).__name__}"
            yield from _odd(each, f"{path}.{key}")
    elif what := _odd_scalar(value):
        yield path, what


def _odd_scalar(value: Any) -> str:
    if type(value) not in (str, bool, int, float, type(None)):
        return f"a value of type {type(value).__name__}"
    if type(value) is float and not math.isfinite(value):
        return f"the number {value}"
    if type(value) is int and not _WHOLE[0] <= value <= _WHOLE[1]:
        return "a whole number of more than 64 bits"
    return ""


def _changed(checkpoint: Any, new_versions: Any) -> list[tuple[str, Any]]:
    values = checkpoint["channel_values"]
    return [(channel, values[channel]) for channel in new_versions if channel in values]


def _kept(writes: Sequence[tuple[str, Any]]) -> list[tuple[str, Any]]:
    kept = [(channel, value) for channel, value in writes if channel != _ANSWER]
    need_plain(kept)
    return kept


@contextmanager
def _dropped(writes: Sequence[tuple[str, Any]]) -> Iterator[None]:
    """Let a former owner go without a word where it only notes how its node ended.

    It let go of the run before it said so, and the journal has it; whoever came is right to have
    come, and whoever paused is told of its question and not of a lost lease.
    """
    try:
        yield
    except LeaseLost:
        if not all(channel in WRITES_IDX_MAP for channel, _ in writes):
            raise


def _strict(serde: Any) -> Any:
    """Return a serializer that makes nothing but plain data; a host's own kind is left as it is.

    LangGraph's default imports and calls whatever the database names.
    """
    is_default = type(serde) is JsonPlusSerializer
    return JsonPlusSerializer(allowed_msgpack_modules=None) if is_default else serde
