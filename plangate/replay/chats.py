"""Models of a replay: what was written is written again, for the same role or the same try."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from plangate.engine.judging import Judge
from plangate.engine.working import StepModel
from plangate.journal.events import ModelCalled
from plangate.models.judging import ROLE as JUDGE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plangate.engine.capability import Trial
    from plangate.journal.attempts import AttemptEnded
    from plangate.replay.outside import Outside
    from plangate.replay.record import Item
    from plangate.replay.tape import Tape

_ENDS = ("plan_proposed", "draft_refused", "plan_criticized", "run_ended")
"""Events after which a call of a model is another call, and no retry of the one before."""


class NoReply(Exception):
    """The provider failed then, or was never asked."""

    status_code = 400


@dataclass(slots=True)
class RecordedChat:
    """A chat model that gives the recorded replies of one role."""

    model_name: str
    tape: Tape
    replies: deque[ModelCalled] = field(default_factory=deque)

    async def ainvoke(self, _messages: object) -> Any:
        """Return the next reply.

        Raises:
            NoReply: There is none: the call failed, or today's code asks once more.
        """
        if not self.replies:
            self.tape.unrecorded.append(f"model {self.model_name} would be asked once more")
            raise NoReply
        said = self.replies.popleft()
        if said.reply is None:
            raise NoReply
        return message_of(said, str(self.tape.record.values[said.reply]))


@dataclass(frozen=True, slots=True)
class RecordedStepModel(StepModel):
    """The model of model steps, which answers each try as it was answered."""

    outside: Outside

    def for_try(self, trial: Trial) -> RecordedTry:
        """Return what answers one try."""
        return RecordedTry(self.name, self.outside, trial)


@dataclass(frozen=True, slots=True)
class RecordedTry:
    """A chat model that can be asked once, for one try of one step."""

    model_name: str
    outside: Outside
    trial: Trial

    async def ainvoke(self, _messages: object) -> Any:
        """Answer as it was answered.

        Raises:
            Exception: The provider failed then, or was never asked.
        """
        ended = await self.outside.asked(self.trial.attempt_id, self.trial.ready.args_sha256)
        said = self.outside.replies.get(self.trial.attempt_id)
        if said is None or said.reply is None:
            raise _failing(ended)
        return message_of(said, str(self.outside.tape.record.values[said.reply]))


@dataclass(frozen=True, slots=True)
class RecordedJudge(Judge):
    """The judge, which answers each question of each check as it was answered."""

    tape: Tape

    def for_look(self, by: str) -> RecordedChat:
        """Return what answers one question."""
        events = (item.entry.event for item in self.tape.record.items)
        said = (
            each
            for each in events
            if isinstance(each, ModelCalled) and (each.role, each.by) == (JUDGE, by)
        )
        return RecordedChat(self.name, self.tape, deque(said))


def message_of(said: ModelCalled, text: str) -> Any:
    """Return a recorded reply as a chat model gives it."""
    return SimpleNamespace(
        content=text,
        response_metadata={"finish_reason": said.error_code},
        additional_kwargs={"refusal": "refused"} if said.error_code == "refusal" else {},
        usage_metadata=_usage(said),
    )


def _failing(ended: AttemptEnded) -> Exception:
    """Return an error that is sorted as the recorded one was."""
    code = ended.error_code
    if code in ("timeout", "connection"):
        return TimeoutError() if code == "timeout" else ConnectionError()
    error: Any = NoReply()
    kind, _, number = code.partition("_")
    if kind == "http" and number.isdecimal():
        error.status_code = int(number)
    elif code == "error":
        return Exception()
    error.code = code
    if ended.outcome == "permanent":  # it asked for more patience than there is
        error.response = SimpleNamespace(headers={"retry-after": "1000000"})
    return error  # type: ignore[no-any-return]


def recorded_chat(tape: Tape, role: str) -> RecordedChat | None:
    """Return the recorded model of a role; None if none was asked."""
    calls = _calls(tape.record.items, role)
    return RecordedChat(calls[0].model, tape, deque(calls)) if calls else None


def _calls(items: Sequence[Item], role: str) -> list[ModelCalled]:
    """Return the calls without those attempts that were tried again."""
    calls: list[ModelCalled] = []
    is_retry = False
    for item in items:
        event = item.entry.event
        if isinstance(event, ModelCalled) and event.role == role:
            if is_retry and calls[-1].reply is None:
                calls.pop()
            calls.append(event)
            is_retry = True
        elif event.type in _ENDS:
            is_retry = False
    return calls


def _usage(said: ModelCalled) -> dict[str, Any] | None:
    if said.estimated:
        return None
    return {
        "input_tokens": said.input_tokens,
        "output_tokens": said.output_tokens,
        "input_token_details": {
            "cache_read": said.cached_tokens,
            "cache_creation": said.cache_write_tokens,
        },
        "output_token_details": {"reasoning": said.reasoning_tokens},
    }
