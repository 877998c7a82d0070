"""Events between a run and people: what is asked, what came back, and what was made of it."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Literal

from pydantic import Field

from plangate.journal.reference import Ref
from plangate.plan.value.frozen import Args, Frozen, FrozenMap


class QuestionAsked(Frozen):
    """A person is asked. The run cannot pass the question without an answer."""

    type: Literal["question_asked"] = "question_asked"
    question_id: str
    kind: Literal["approval", "step", "effect", "escalation", "verdict"]
    audience: str
    payload: Ref
    payload_sha256: str
    plan_version: int
    content_hash: str
    step: str | None = None
    expires_at: datetime | None = None
    allowed: tuple[str, ...] = ()
    """Decisions that count; empty: all that its kind knows."""

    confirm: tuple[str, ...] = ()
    """For an approval: steps that a review of single steps must answer, each of them."""

    args: FrozenMap[str] = Field(default_factory=dict, validate_default=True)
    """For an approval: digest of the arguments of each acting step whose values were all known, and
    shown, when it was asked."""

    check: str = ""
    """For a verdict: the check that is to be decided."""

    roles: tuple[str, ...] = ()
    """Consent counts only from one of these; empty: from anyone."""

    quorum: int = 1
    """Different people whose approval it takes."""


class AnswerRefused(Frozen):
    """An answer came that changes nothing: late, doubled, mistargeted or malformed."""

    type: Literal["answer_refused"] = "answer_refused"
    question_id: str
    why: str


class AnswerCounted(Frozen):
    """An approval came that is not enough by itself: the question goes on waiting."""

    type: Literal["answer_counted"] = "answer_counted"
    question_id: str
    by: str
    have: int
    needs: int


class InfoRead(Frozen):
    """A person asked for more before deciding, and the world was read for them."""

    type: Literal["info_read"] = "info_read"
    question_id: str
    tool: str
    args: Ref
    output: Ref | None = None
    says: str = ""
    """Why there is no output."""

    observed: tuple[str, ...] = ()
    called: bool = False
    """True if a tool was called for it: then it counts against limits."""

    usd: Decimal | None = Decimal(0)


class Moved(Frozen):
    """An outside object that is not as it was."""

    object: str
    """Its evidence reference without the version."""

    was: str
    now: str | None = None
    """None: it could not be read, or shows no version any more."""


class WorldMoved(Frozen):
    """What an approval rested on changed before the effect; the approval is void."""

    type: Literal["world_moved"] = "world_moved"
    step: str
    """The effect that was held back."""

    content_hash: str
    objects: tuple[Moved, ...]


class StopAsked(Frozen):
    """Somebody told the run to stop while it was at work; nothing new is begun from here on."""

    type: Literal["stop_asked"] = "stop_asked"
    kind: Literal["drain", "cancel"]
    """`drain`: this process stops, and the run can be resumed. `cancel`: the run ends."""

    by: str
    reason: str = ""


class DecisionTaken(Frozen):
    """The owner of the run took a recorded decision in."""

    type: Literal["decision_taken"] = "decision_taken"
    question_id: str
    decision: str
    by: str
    answer: Args = Field(default_factory=dict, validate_default=True)
    comment: str = ""
    content_hash: str = ""
    steps: tuple[str, ...] = ()
    """Approved steps; empty for an approval of all."""

    expires_at: datetime | None = None
    denied: FrozenMap[str] = Field(default_factory=dict, validate_default=True)
    """By step that will not run because of this decision, why."""

    args: FrozenMap[str] = Field(default_factory=dict, validate_default=True)
    """As `QuestionAsked.args`: what the approval is bound to beside the plan."""
