"""What a run looks like now: a fold over its events, and nothing else.

Applying one event is cheap and never fails, in whatever order events come: the log is the truth,
and a view that crashed on it could not show what went wrong. `plangate.journal.changes` holds what
each event changes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING

from plangate.journal.changes import change
from plangate.journal.progress import AttemptView, StepView, newest
from plangate.plan.errors import JournalError
from plangate.plan.spent import Spent

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic import JsonValue

    from plangate.journal.assumed import AssumptionSettled
    from plangate.journal.causes import Cause, GoalRevised, RunFollowed
    from plangate.journal.events import (
        DraftRefused,
        Entry,
        Event,
        GoalVerified,
        ModelCalled,
        PlanCriticized,
        PlanProposed,
        PlanValidated,
        Reflected,
        RunEnded,
        StepEnded,
        TriggerFired,
    )
    from plangate.journal.grounds import Fingerprinted
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
    from plangate.journal.spending import BudgetStopped, LimitRaised, Reestimated
    from plangate.plan.verdict import Verdict

__all__ = ["AttemptView", "RunView", "StepView", "fold"]


@dataclass(slots=True, kw_only=True)
class RunView:
    """A run, folded. Read it; only `apply` may change it."""

    run_id: str = ""
    goal_id: str = ""
    goal: str = ""
    principal: str = ""
    inputs: Ref = ""
    task: str = ""
    cause: Cause | None = None
    followed: list[RunFollowed] = field(default_factory=list)
    """Runs that were made because of this one, oldest first."""

    revised: GoalRevised | None = None
    """The change of goal that ends this run."""
    fingerprint: Ref = ""
    """What the run was last seen to be made of; empty in a log that does not say."""

    rights: Ref = ""
    """What the principal could do when that was last seen to be another: a reference, or
    `rights_unknown`; empty while it is what the run was started with."""

    redo: Fingerprinted | None = None
    """The change after which the current version has to be checked again, or made anew; None once
    that was done."""

    seq: int = 0
    """Events applied so far, which is the number of the newest one."""

    version: int = 0
    """The current plan version; 0 before the first."""

    plans: dict[int, PlanProposed] = field(default_factory=dict)
    validated: dict[int, PlanValidated] = field(default_factory=dict)
    criticized: dict[int, PlanCriticized] = field(default_factory=dict)
    questions: dict[str, QuestionAsked] = field(default_factory=dict)
    """All that were asked, by id."""

    decisions: dict[str, DecisionTaken] = field(default_factory=dict)
    """By question; the first one counts."""

    decided: dict[str, int] = field(default_factory=dict)
    """By question, the number of the event in which its decision was taken in."""

    answered: dict[str, AnswerRefused | AnswerCounted] = field(default_factory=dict)
    """By question, the newest answer that did not decide it."""

    pending: dict[tuple[str, str | None], QuestionAsked] = field(default_factory=dict)
    """Questions that wait, by kind and step: asked again, a question takes the place of the old."""

    approved: dict[str, DecisionTaken] = field(default_factory=dict)
    """By content hash of the plan; expiry is for the reader to judge."""

    rejected: set[str] = field(default_factory=set)
    """Content hashes that a person rejected: final for that content."""

    turned_down: str = ""
    """Who asked for another plan than the one they saw; empty again once a plan was approved."""

    inputs_changed: dict[str, JsonValue] = field(default_factory=dict)
    """Inputs that a person changed at the gate, over those the run started with."""

    info: list[InfoRead] = field(default_factory=list)
    """What was read for people who asked for more."""

    moved: list[WorldMoved] = field(default_factory=list)
    """Changes of the outside that took an approval away."""

    steps: dict[str, StepView] = field(default_factory=dict)
    """Of the current plan version; a step that was never released is not in it."""

    failed: set[str] = field(default_factory=set)
    """Steps of the current version whose status is `failed`."""

    attempts: dict[str, AttemptView] = field(default_factory=dict)
    """By attempt id, of all plan versions."""

    verdicts: dict[str, list[Verdict]] = field(default_factory=dict)
    """By step of the current version, or element of one (`S3.2`): of its newest judged attempt, the
    newest of each check."""

    judged: dict[str, str] = field(default_factory=dict)
    """By step or element, the attempt that `verdicts` is about."""

    tries: Counter[str] = field(default_factory=Counter)
    """By step or element, attempts of all plan versions: the number of the newest."""

    refused: list[DraftRefused] = field(default_factory=list)
    drafts: int = 0
    """Drafts of a model, usable or not, since a person last asked for changes."""

    not_called: set[str] = field(default_factory=set)
    """Turns of agents, by attempt, whose wish was not granted."""

    denied: list[StepEnded] = field(default_factory=list)
    """Steps of all plan versions that were denied, by policy, rights, a tool or a person."""

    triggers: list[TriggerFired] = field(default_factory=list)
    open_trigger: TriggerFired | None = None
    """The newest trigger that no decision and no new plan version has answered."""

    reflections: list[Reflected] = field(default_factory=list)
    by_step: dict[str, Spent] = field(default_factory=dict)
    """By step, over all plan versions: calls of its attempts and checks, and what they took."""

    raised: list[LimitRaised] = field(default_factory=list)
    """Limits that people raised, oldest first."""

    reestimated: list[Reestimated] = field(default_factory=list)
    repaired: list[str] = field(default_factory=list)
    """Failure categories that were answered by a repaired plan, oldest first."""

    idle_tokens: list[int] = field(default_factory=list)
    """Tokens of each model call since the run last got further."""

    planning_usd: list[Decimal | None] = field(default_factory=list)
    """What each call of a planner or replanner cost."""

    partial: Ref = ""
    """The report of the newest stop at a limit."""

    spent_usd: Decimal | None = Decimal(0)
    """None from the first unknown price on: an unknown part makes an unknown sum."""

    tokens: int = 0
    """Input and output tokens of all model calls (providers count cached and reasoning tokens
    inside these)."""

    model_calls: int = 0
    """Calls that were made, usable or not."""

    tool_calls: int = 0
    """Calls of tools: each attempt that made one, each look at the world beside the steps."""

    asked: list[ModelCalled] = field(default_factory=list)
    """Each call of a model, usable or not."""

    looks: Counter[str] = field(default_factory=Counter)
    """By step, or `goal`: calls that checks made to look at the world; `reread`: reads that were
    made again before an act."""

    replans: int = 0
    """Plan versions written by the replanner."""

    stopped: BudgetStopped | None = None
    """The limit that stopped the run; None again once it was resumed."""

    drained: StopAsked | None = None
    """Its process was told to stop; None again once it was resumed."""

    cancelled: StopAsked | None = None
    """A person ended the run; it only has to be closed."""

    goal_verified: GoalVerified | None = None
    """The newest, of the current plan version."""

    results: dict[str, Ref] = field(default_factory=dict)
    """By step the newest result that no attempt gave, as it was held against its checks."""

    assumed: dict[str, AssumptionSettled] = field(default_factory=dict)
    """Assumptions of the current plan version that results have verified, or proved false."""

    criteria: dict[tuple[str, str], CriterionJudged] = field(default_factory=dict)
    """What people decided of criteria, by content hash of the plan and check."""

    ended: RunEnded | None = None

    def apply(self, event: Event) -> None:
        """Take the next event in."""
        self.seq += 1
        change(event, self)

    def checks(self, step: str) -> list[Verdict]:
        """Return what is known of a step's checks; over a list, those of each element in turn."""
        seen = self.steps.get(step)
        tried = newest(self.attempts, seen.attempts if seen is not None else ())
        units = dict.fromkeys((step, *(each.unit for each in tried)))
        return [verdict for unit in units for verdict in self.verdicts.get(unit, ())]

    @property
    def spent(self) -> Spent:
        """What the run has taken so far."""
        return Spent(
            usd=self.spent_usd,
            tokens=self.tokens,
            tool_calls=self.tool_calls,
            model_calls=self.model_calls,
        )

    @property
    def promised(self) -> PlanValidated | None:
        """The version that the first attempt was made of, with its estimate; else the current."""
        for seen in self.attempts.values():
            return self.validated.get(seen.started.plan_version)
        return self.validated.get(self.version)

    @property
    def pending_questions(self) -> tuple[QuestionAsked, ...]:
        """Questions that wait for an answer, oldest first.

        Not in it: a question that was asked again under a new id, and one about a plan version that
        is not current any more.
        """
        return tuple(self.pending.values())


def fold(entries: Iterable[Entry]) -> RunView:
    """Return the view after all events of one run, from the first on.

    Raises:
        JournalError: The entries have a gap, or are of more than one run.
    """
    view = RunView()
    for entry in entries:
        view.run_id = view.run_id or entry.run_id
        if (entry.run_id, entry.seq) != (view.run_id, view.seq + 1):
            what = f"event {entry.seq} of run {entry.run_id!r} follows event {view.seq}"
            hint = "a log has no gaps; the file was changed from outside"
            raise JournalError(f"{what} of run {view.run_id!r}", hint=hint)
        view.apply(entry.event)
    return view
