"""The outside of a replay: it answers what is on the record, and can do nothing else.

No body of a tool is called and no world is opened. What was never recorded is not made up: the
outcome is unknown, and the replay says what was asked.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NoReturn

from plangate.engine.authorizer import AUTHORIZER
from plangate.nodes.kit import LazyWorld
from plangate.plan.facts import Rights
from plangate.plan.value.frozen import digest, parse
from plangate.tools.answers import Found, NotSent, Operation, Refused, ToolFailed
from plangate.tools.tool import Tool

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from plangate.journal.attempts import AttemptEnded
    from plangate.journal.events import ModelCalled
    from plangate.journal.grounds import OutsideAsked
    from plangate.journal.runs import Run
    from plangate.plan.catalog import ToolSpec
    from plangate.replay.record import Attempt, Item
    from plangate.replay.tape import Tape
    from plangate.tools.context import ToolContext

_TOO_LARGE = 1_000_001
_NOT_REACHED: Final[Mapping[str, type[NotSent]]] = {"transient": NotSent, "denied": Refused}
"""By outcome, how a body said that the outside was not reached."""

_ASKED_AGAIN: Final[Mapping[str, tuple[str, ...]]] = {
    "call": ("call", "reconcile"),
    "reconcile": ("call", "reconcile"),
    "status": ("call", "reconcile", "status"),
}
"""By what was answered, the questions of a later owner that show that the ledger never got it."""


class Unrecorded(Exception):
    """Nobody ever asked this before."""


@dataclass(slots=True)
class Outside:
    """Recorded answers of tools, by whose question it was."""

    tape: Tape
    replies: dict[str, ModelCalled] = field(default_factory=dict)
    """By attempt of a model step, what its model wrote."""

    _heard: dict[tuple[str, str], deque[Item]] = field(default_factory=lambda: defaultdict(deque))
    _info: dict[str, deque[Item]] = field(default_factory=lambda: defaultdict(deque))
    _ends: dict[str, Item] = field(default_factory=dict)
    _rights: Item | None = None
    _lost: set[asyncio.Task[Any]] = field(default_factory=set)
    """Steps whose recorded owner was gone before it could even begin the effect."""

    def __post_init__(self) -> None:
        for item in self.tape.record.items:
            event = item.entry.event
            if event.type == "outside_asked":
                self._heard[event.by, event.how].append(item)
            elif event.type == "attempt_ended":
                self._ends[event.attempt_id] = item
            elif event.type == "model_called" and event.attempt_id is not None:
                self.replies[event.attempt_id] = event
            elif event.type == "info_read":
                self._info[f"{event.question_id}-{event.tool}"].append(item)

    def tools(self, tools: tuple[Tool, ...]) -> tuple[Tool, ...]:
        """Return today's contracts with recorded answers in the place of their bodies."""
        return tuple(RecordedTool.of(each, self) for each in tools)

    async def rights(self, principal: str, run: Run) -> Rights:
        """Return what the principal could do at this place of the record.

        Raises:
            Exception: The authorizer did not know.
        """
        del principal
        changes = self._heard[AUTHORIZER, "rights"]
        while changes and self.tape.has_come_to(changes[0]):
            self._rights = changes.popleft()
        if self._rights is None:
            return run.principal
        said: Any = self._rights.entry.event
        if said.output is None:
            raise Unrecorded(said.error)
        return parse(Rights, self._value(said.output))

    def told(self, message: Mapping[str, Any]) -> None:
        """Hear that an attempt starts; some recorded owners never came further than that."""
        attempt = self.tape.record.attempts.get(str(message.get("attempt", "")))
        task = asyncio.current_task()
        cut = attempt is not None and attempt.ended is None and not attempt.begun_outside
        if message.get("type") == "attempt_started" and cut and task is not None:
            self._lost.add(task)

    async def opened(self) -> None:
        """Stand for the world, which a call asks for first."""
        if asyncio.current_task() in self._lost:
            await self.tape.end()

    async def call(self, tool: Tool, args: Mapping[str, Any], context: ToolContext) -> object:
        """Answer as the body of a tool did.

        Raises:
            Unrecorded: It was never called so.
            Exception: As the body did.
        """
        by, sha256 = context.attempt_id, digest(args)
        if self._info[by]:
            said: Any = self._info[by].popleft().entry.event
            return self._value(said.output)
        if self._heard[by, "call"]:
            await self._unless_lost(by, "call")
            await self.tape.turn(self._heard[by, "call"][0])
            said = self._heard[by, "call"].popleft().entry.event
            if said.args_sha256 == sha256:
                return self._replied(said, tool.spec)
            return await self._missing(f"{by} would call {tool.spec.name} with other arguments")
        attempt = await self._same(by, sha256, f"call {tool.spec.name}")
        if attempt.ended is None:
            return await self._cut(attempt)
        await self.tape.turn(self._ends[by])
        return self._replied(attempt.ended, tool.spec)

    async def asked(self, by: str, sha256: str) -> AttemptEnded:
        """Return how a try of a model step ended, when it is its turn.

        Raises:
            Unrecorded: Its model was never asked this.
        """
        attempt = await self._same(by, sha256, "ask a model")
        if attempt.ended is None:
            await self.tape.end()
        await self.tape.turn(self._ends[by])
        return attempt.ended

    async def _same(self, by: str, sha256: str, what: str) -> Attempt:
        """Return the recorded attempt, if it made the same call."""
        attempt = self.tape.record.attempts.get(by)
        if attempt is None:
            return await self._missing(f"{by} would {what}")
        if attempt.started.args_sha256 != sha256:
            return await self._missing(f"{by} would {what} with other arguments")
        return attempt

    async def found(self, context: ToolContext, tool: Tool) -> Found:
        """Answer as `reconcile` did; the last answer stands where it is asked once more."""
        said = await self._said(context.attempt_id, "reconcile", f"ask {tool.spec.name}")
        return Found(**said)

    async def operation(self, context: ToolContext, tool: Tool) -> Operation:
        """Answer as `status` did in the end; an operation without an end goes on for too long."""
        attempt = self.tape.record.attempts.get(context.attempt_id)
        if attempt is not None and attempt.ended and attempt.ended.error_code == "still_pending":
            self.tape.skip(context.deadline_s)
            return Operation("pending")
        try:
            said = await self._said(context.attempt_id, "status", f"poll {tool.spec.name}")
        except Unrecorded:
            self.tape.skip(context.deadline_s)  # else it would be asked for ever
            raise
        return Operation(**said)

    async def _said(self, by: str, how: str, what: str) -> dict[str, Any]:
        waiting = self._heard[by, how]
        if waiting:
            await self._unless_lost(by, how)
            await self.tape.turn(waiting[0])
            item = waiting.popleft() if len(waiting) > 1 else waiting[0]
            said = self._value(item.entry.event.output)  # type: ignore[union-attr]
            return said if isinstance(said, dict) else {}
        attempt = self.tape.record.attempts.get(by)
        if attempt is not None and attempt.ended is None:
            return await self.tape.end()
        return await self._missing(f"{by} would {what}")

    async def _unless_lost(self, by: str, how: str) -> None:
        """End with an owner that had an answer and could not act on it: the next one asked again.

        Raises:
            Cut: So it was.
        """
        attempt = self.tape.record.attempts.get(by)
        while attempt is not None and attempt.ended is None and attempt.after is not None:
            attempt = attempt.after
            named = attempt.started.attempt_id
            if any(self._heard.get((named, each)) for each in _ASKED_AGAIN[how]):
                await self.tape.end()

    def _replied(self, said: OutsideAsked | AttemptEnded, spec: ToolSpec) -> object:
        if said.output is not None:
            return self._value(said.output)
        return _failing(spec, said)

    async def _cut(self, attempt: Attempt) -> object:
        """Answer a try whose end was lost: what came of it, the next try may have found."""
        follows = attempt.after.ended if attempt.after is not None else None
        if follows is None or follows.reused not in ("ledger", "poll") or follows.output is None:
            await self.tape.end()
        return self._value(follows.output)

    async def _missing(self, what: str) -> NoReturn:
        if await self.tape.ends():
            await self.tape.end()
        self.tape.unrecorded.append(what)
        raise Unrecorded(what)

    def _value(self, ref: str | None) -> Any:
        return None if ref is None else self.tape.record.values[ref]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedTool(Tool):
    """A contract of today that answers from the record."""

    outside: Outside

    @classmethod
    def of(cls, tool: Tool, outside: Outside) -> RecordedTool:
        """Put the record in the place of a tool's functions."""

        async def found(_key: str, _args: Mapping[str, Any], context: ToolContext) -> Found:
            return await outside.found(context, tool)

        async def operation(_id: str, context: ToolContext) -> Operation:
            return await outside.operation(context, tool)

        return cls(
            spec=tool.spec,
            body=_never,
            signature=tool.signature,
            reconcile=None if tool.reconcile is None else found,
            status=None if tool.status is None else operation,
            outside=outside,
        )

    async def call(self, args: Mapping[str, Any], context: ToolContext) -> object:
        """Answer from the record."""
        return await self.outside.call(self, args, context)


@dataclass(slots=True)
class NoWorld(LazyWorld):
    """There is no outside."""

    opened: Callable[[], Any] = lambda: None

    async def get(self) -> Any:
        """Open nothing."""
        await self.opened()


def _never(**_: Any) -> NoReturn:
    raise AssertionError("a replay calls no body of a tool")


def _failing(spec: ToolSpec, said: OutsideAsked | AttemptEnded) -> object:
    """Fail as the body did: by the tool's own word, by an exception, or with a useless result."""
    code, says = said.error_code, said.error
    useless: Mapping[str, object] = {
        "output_schema": None,
        "output_not_json": {"value": object()},
        "output_too_large": {"value": "x" * _TOO_LARGE},
    }
    if code in useless:
        return useless[code]
    text = says.partition(": ")[2]
    if code == "timeout" and code not in spec.errors:
        raise TimeoutError(text)
    if said.outcome in _NOT_REACHED and code not in spec.errors:
        raise _NOT_REACHED[said.outcome](code, says)
    if said.outcome == "unknown" and says.startswith(f"{code}:") and code not in spec.errors:
        raise type(code, (Exception,), {})(text)
    raise ToolFailed(code, says)
