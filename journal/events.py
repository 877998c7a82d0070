"""The events of a run: one frozen class each, in past tense, in one discriminated union.

An event says what happened and never what to do. Values that can be large, private or both
(arguments, outputs, plans, prompts) are artifacts; an event holds their reference. Every state that
is shown anywhere is a fold over these (`plangate.journal.view`).
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, TypeAdapter

from plangate.journal.agents import AgentRefused
from plangate.journal.assumed import AssumptionSettled
from plangate.journal.attempts import AttemptEnded, AttemptStarted, CallOverran
from plangate.journal.causes import Cause, GoalRevised, RunFollowed
from plangate.journal.grounds import Fingerprinted, OutsideAsked
from plangate.journal.judged import CriterionJudged
from plangate.journal.questions import (
    AnswerCounted,
    AnswerRefused,
    DecisionTaken,
    InfoRead,
    QuestionAsked,
    StopAsked,
    WorldMoved,
)
from plangate.journal.reference import Ref
from plangate.journal.samples import Used
from plangate.journal.spending import (
    BudgetStopped,
    LimitRaised,
    PartlyReported,
    Reestimated,
    SpendingLost,
)
from plangate.plan.facts import PlanEstimate
from plangate.plan.issue import Issue
from plangate.plan.outcome import EffectState, Outcome, Says
from plangate.plan.value.frozen import Frozen
from plangate.plan.value.plan import Author
from plangate.plan.verdict import Verdict


class RunStarted(Frozen):
    """A goal was taken on."""

    type: Literal["run_started"] = "run_started"
    goal_id: str
    goal: str
    inputs: Ref
    principal: str
    agent: str = ""
    task: str = ""
    """Name of the template that the caller asked for."""

    cause: Cause | None = None
    """The run that this one follows from; None: it stands for itself."""


class RunResumed(Frozen):
    """Another owner went on with the run."""

    type: Literal["run_resumed"] = "run_resumed"
    owner: str


class ModelCalled(Frozen):
    """A model was asked; written for each attempt, usable or not."""

    type: Literal["model_called"] = "model_called"
    role: str
    """planner, critic, reflector, replanner, judge, step."""

    model: str
    prompt: str
    prompt_sha256: str
    step: str | None = None
    """The step that asked; None: it was asked for the run as a whole."""

    attempt_id: str | None = None
    by: str = ""
    """The check that asked, as `S3-cited-1`, where the role is judge."""

    ok: bool
    error_code: str = ""
    input_tokens: int
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int
    reasoning_tokens: int = 0
    estimated: bool = False
    """True if the provider gave no usage, or one that cannot be, and it was worked out here."""

    usd: Decimal | None
    price_table: str = ""
    latency_s: float
    reply: Ref | None = None


class PlanProposed(Frozen):
    """A version of the plan exists. The plan itself is an artifact and never changes."""

    type: Literal["plan_proposed"] = "plan_proposed"
    version: int
    plan: Ref
    content_hash: str
    parent_hash: str | None = None
    author: Author
    draft: Ref | None = None
    """What the model wrote, before it was compiled."""

    diff: Ref | None = None
    carried: tuple[str, ...] = ()
    """Steps that keep their status and result from the version before; all others start anew."""

    trigger: str = ""
    """For a later version: what made it necessary."""


class DraftRefused(Frozen):
    """A model's draft could not be compiled to a plan at all."""

    type: Literal["draft_refused"] = "draft_refused"
    draft: Ref
    issues: tuple[Issue, ...]


class PlanValidated(Frozen):
    """A version was checked layer by layer."""

    type: Literal["plan_validated"] = "plan_validated"
    version: int
    content_hash: str
    valid: bool
    issues: tuple[Issue, ...]
    not_evaluated: tuple[int, ...] = ()
    catalog_hash: str
    policy_hash: str
    fingerprint: Ref = ""
    """What it was checked with; empty where that was not recorded."""

    tier: Literal["auto", "selective", "full"]
    reasons: tuple[str, ...]
    confirm: tuple[str, ...] = ()
    """Steps that a person must confirm."""

    estimate: PlanEstimate


class PlanCriticized(Frozen):
    """The critic read a version, or was left out and why."""

    type: Literal["plan_criticized"] = "plan_criticized"
    version: int
    issues: tuple[Issue, ...] = ()
    skipped: str = ""


class StepReleased(Frozen):
    """A step may start: its predecessors are verified."""

    type: Literal["step_released"] = "step_released"
    step: str
    plan_version: int
    gaps: tuple[str, ...] = ()
    """What it starts without: predecessors that are not done, where its join allows that."""


class EffectMoved(Frozen):
    """The ledger's row of an effect changed state; the row itself is the truth."""

    type: Literal["effect_moved"] = "effect_moved"
    effect_key: str
    step: str
    attempt_id: str = ""
    """Empty: no attempt moved it, or the log does not say which."""

    tool: str
    state: EffectState
    operation_id: str | None = None
    by: str = ""
    """The person who said so; empty: the run itself."""

    evidence: str = ""
    """What that person or the outside rests it on, in words or as a reference."""


class VerdictReached(Frozen):
    """A check of a step was decided."""

    type: Literal["verdict_reached"] = "verdict_reached"
    step: str
    attempt_id: str
    verdict: Verdict
    result: Ref | None = None
    """What was held against the check, where no attempt gave it: a person's or an agent's."""


class StepEnded(Frozen):
    """A step reached a terminal status in this plan version."""

    type: Literal["step_ended"] = "step_ended"
    step: str
    plan_version: int
    status: Literal["done", "failed", "skipped", "cancelled", "unknown", "handed_over"]
    stand_in: str = ""
    """For `handed_over`: the step that takes over."""

    output: Ref | None = None
    outcome: Outcome = "success"
    error_code: str = ""
    why: str = ""


class TriggerFired(Frozen):
    """Something happened that is worth stopping and thinking about."""

    type: Literal["trigger_fired"] = "trigger_fired"
    kind: str
    step: str | None = None
    code: str = ""
    says: str = ""


class Reflected(Frozen):
    """The reflector judged a failure."""

    type: Literal["reflected"] = "reflected"
    failure_category: str
    failed_steps: tuple[str, ...]
    evidence: tuple[str, ...] = ()
    hypotheses: tuple[str, ...] = ()
    confidence: float
    repairs: tuple[str, ...] = ()
    """Names of proposed repairs, best first."""

    lesson: str = ""
    people: tuple[str, ...] = ()
    """What people had changed in the plan, from what to what."""

    needs_person: bool = False
    scope: Literal["local", "full", "terminate"] = "local"
    by: str = "rules"


class GoalVerified(Frozen):
    """The success criteria were checked against evidence."""

    type: Literal["goal_verified"] = "goal_verified"
    says: Says
    verdicts: tuple[Verdict, ...]


class VerifiedAs(Frozen):
    """What a success speaks for: plans of one type, under the same contracts and rules."""

    task_type: str
    catalog_hash: str
    policy_hash: str


class RunEnded(Frozen):
    """The run is over; a resumable stop is not an end."""

    type: Literal["run_ended"] = "run_ended"
    ending: Literal["completed", "declined", "rejected", "aborted", "failed", "cancelled"]
    verdict: Says
    why: str = ""
    report: Ref
    verified: VerifiedAs | None = None
    """Where the goal was verified, what that speaks for; it is the history that tiers look at."""

    used: tuple[Used, ...] = ()
    """What its calls took, by subject: the history that estimates look at."""


Event: TypeAlias = Annotated[
    RunStarted
    | RunResumed
    | RunFollowed
    | GoalRevised
    | Fingerprinted
    | ModelCalled
    | PlanProposed
    | DraftRefused
    | PlanValidated
    | PlanCriticized
    | QuestionAsked
    | AnswerRefused
    | AnswerCounted
    | InfoRead
    | WorldMoved
    | DecisionTaken
    | StepReleased
    | AttemptStarted
    | AttemptEnded
    | AgentRefused
    | CallOverran
    | OutsideAsked
    | EffectMoved
    | VerdictReached
    | StepEnded
    | TriggerFired
    | Reflected
    | BudgetStopped
    | PartlyReported
    | LimitRaised
    | SpendingLost
    | Reestimated
    | StopAsked
    | GoalVerified
    | CriterionJudged
    | AssumptionSettled
    | RunEnded,
    Field(discriminator="type"),
]

EVENT: TypeAdapter[Event] = TypeAdapter(Event)
"""Reads any event from JSON text: `EVENT.validate_json(text, strict=True)`."""


class Entry(Frozen):
    """An event as it stands in the log."""

    run_id: str
    seq: int
    """1, 2, 3, ... without gaps, per run."""

    at: datetime
    epoch: int
    """Fencing token of the owner that wrote it."""

    event: Event
