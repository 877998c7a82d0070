"""What each event changes in a view of its run; an event that is not here changes nothing.

Nothing here may fail: an event about something the view does not know is taken as far as it goes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import singledispatch
from typing import TYPE_CHECKING

from plangate.journal.agents import AgentRefused
from plangate.journal.assumed import AssumptionSettled
from plangate.journal.attempts import AttemptEnded, AttemptStarted
from plangate.journal.causes import GoalRevised, RunFollowed
from plangate.journal.changes_of_spending import change_spending, spend
from plangate.journal.events import (
    DraftRefused,
    GoalVerified,
    ModelCalled,
    PlanCriticized,
    PlanProposed,
    PlanValidated,
    Reflected,
    RunEnded,
    RunResumed,
    RunStarted,
    StepEnded,
    StepReleased,
    TriggerFired,
    VerdictReached,
)
from plangate.journal.grounds import Fingerprinted, OutsideAsked
from plangate.journal.judged import CriterionJudged
from plangate.journal.progress import AttemptView, StepView
from plangate.journal.questions import (
    AnswerCounted,
    AnswerRefused,
    DecisionTaken,
    InfoRead,
    QuestionAsked,
    StopAsked,
    WorldMoved,
)
from plangate.plan.spent import Spent
from plangate.plan.value.frozen import thaw

if TYPE_CHECKING:
    from plangate.journal.view import RunView


@singledispatch
def change(event: object, view: RunView) -> None:
    """Change `view` as `event` says."""
    change_spending(event, view)


@change.register(RunStarted)
def _started(event: RunStarted, view: RunView) -> None:
    view.goal_id, view.goal = event.goal_id, event.goal
    view.principal, view.inputs, view.task = event.principal, event.inputs, event.task
    view.cause = event.cause


@change.register(RunFollowed)
def _followed(event: RunFollowed, view: RunView) -> None:
    view.followed.append(event)


@change.register(GoalRevised)
def _revised(event: GoalRevised, view: RunView) -> None:
    view.revised = event
    view.pending.clear()  # what waits for an answer is not done any more


@change.register(DraftRefused)
def _draft_refused(event: DraftRefused, view: RunView) -> None:
    view.refused.append(event)
    view.drafts += 1


@change.register(RunResumed)
def _resumed(event: RunResumed, view: RunView) -> None:
    del event
    view.stopped = view.drained = None


@change.register(Fingerprinted)
def _fingerprinted(event: Fingerprinted, view: RunView) -> None:
    view.fingerprint = event.fingerprint
    if event.word in ("revalidate", "replan"):
        view.redo = event


@change.register(OutsideAsked)
def _outside_asked(event: OutsideAsked, view: RunView) -> None:
    if event.how == "rights":
        view.rights = event.output or event.error_code
    if event.counted:
        cost = Spent(usd=event.usd, tool_calls=1, seconds=event.latency_s)
        spend(view, cost, event.step)
        again = event.by.endswith("-again")
        view.looks["reread" if again else event.step or "goal"] += 1


@change.register(ModelCalled)
def _model_called(event: ModelCalled, view: RunView) -> None:
    view.asked.append(event)
    seen = view.attempts.get(event.attempt_id or "")
    if seen is not None:
        view.attempts[seen.started.attempt_id] = replace(seen, answered=True)
    tokens = event.input_tokens + event.output_tokens
    spend(view, Spent(usd=event.usd, tokens=tokens, model_calls=1), event.step)
    view.idle_tokens.append(tokens)
    if event.role in ("planner", "replanner"):
        view.planning_usd.append(event.usd)


@change.register(PlanProposed)
def _proposed(event: PlanProposed, view: RunView) -> None:
    carried = set(event.carried)
    view.version = event.version
    view.plans[event.version] = event
    view.replans += event.author.kind == "replanner"
    if event.author.kind == "replanner" and view.reflections:
        view.repaired.append(view.reflections[-1].failure_category)
    view.drafts += event.author.kind == "planner"
    view.steps = {step: seen for step, seen in view.steps.items() if step in carried}
    view.failed &= carried
    view.verdicts = {unit: each for unit, each in view.verdicts.items() if _of(unit) in carried}
    view.judged = {unit: which for unit, which in view.judged.items() if _of(unit) in carried}
    view.pending = {
        (kind, step): asked
        for (kind, step), asked in view.pending.items()
        if kind in ("effect", "escalation") or step in carried
    }
    view.assumed = {}
    view.goal_verified = None
    view.open_trigger = None
    view.redo = None


@change.register(PlanValidated)
def _validated(event: PlanValidated, view: RunView) -> None:
    view.validated[event.version] = event
    if event.valid:
        view.idle_tokens.clear()
    if event.valid and view.redo is not None and view.redo.word == "revalidate":
        view.redo = None


@change.register(PlanCriticized)
def _criticized(event: PlanCriticized, view: RunView) -> None:
    view.criticized[event.version] = event


@change.register(QuestionAsked)
def _asked(event: QuestionAsked, view: RunView) -> None:
    view.questions[event.question_id] = event
    if event.question_id in view.decisions:
        return
    view.pending.pop((event.kind, event.step), None)  # so that a question asked anew comes last
    view.pending[event.kind, event.step] = event
    step = view.steps.get(event.step or "")
    if step is not None and step.status in ("pending", "running"):
        _put(view, replace(step, status="waiting"))


@change.register(AnswerRefused)
@change.register(AnswerCounted)
def _not_decided(event: AnswerRefused | AnswerCounted, view: RunView) -> None:
    view.answered[event.question_id] = event


@change.register(DecisionTaken)
def _decided(event: DecisionTaken, view: RunView) -> None:
    if event.decision == "carried":
        view.approved[event.content_hash] = event
        return
    if event.question_id in view.decisions:
        return
    view.decisions[event.question_id] = event
    view.decided[event.question_id] = view.seq
    view.idle_tokens.clear()  # a person looked
    if event.decision not in ("escalate", "request_more_info"):  # what is asked about still stands
        view.open_trigger = None
    view.drafts = 0 if event.decision in ("changes", "edit") else view.drafts
    asked = view.questions.get(event.question_id)
    if asked is not None:
        _answered(event, asked, view)


def _answered(event: DecisionTaken, asked: QuestionAsked, view: RunView) -> None:
    if view.pending.get((asked.kind, asked.step)) == asked:
        del view.pending[asked.kind, asked.step]
    step = view.steps.get(asked.step or "")
    if step is not None and step.status == "waiting":
        _put(view, replace(step, status="running" if step.attempts else "pending"))
    if asked.kind == "approval":
        _approval(event, asked, view)
    if event.decision == "retry":
        _forget_verdicts(view, asked.step)
    if event.decision in ("retry", "settle", "judge"):
        view.steps.pop(asked.step or "", None)  # it starts anew; its attempts stay in the log
        view.failed.discard(asked.step or "")


def _forget_verdicts(view: RunView, step: str | None) -> None:
    """What did not pass is tried again, whoever said so; what passed is done."""
    for unit, verdicts in list(view.verdicts.items()):
        if _of(unit) == step and any(each.says != "pass" for each in verdicts):
            del view.verdicts[unit]
            view.judged.pop(unit, None)
    if step is None:
        view.criteria = {
            key: each for key, each in view.criteria.items() if each.verdict.says == "pass"
        }


def _approval(event: DecisionTaken, asked: QuestionAsked, view: RunView) -> None:
    content = asked.content_hash
    if event.decision == "reject":
        view.rejected.add(content)
        view.approved.pop(content, None)
        return
    # An answer that names other content than the question showed approves nothing.
    meant = event.content_hash in ("", content) and content not in view.rejected
    if event.decision == "approve" and meant:
        view.approved[content] = event
        view.turned_down = ""
    if event.decision in ("changes", "edit"):
        view.turned_down = event.by
    inputs = event.answer.get("inputs")
    if event.decision == "edit" and isinstance(inputs, Mapping):
        view.inputs_changed.update({name: thaw(value) for name, value in inputs.items()})


@change.register(InfoRead)
def _info(event: InfoRead, view: RunView) -> None:
    view.info.append(event)
    if event.called:
        spend(view, Spent(usd=event.usd, tool_calls=1), None)


@change.register(WorldMoved)
def _moved(event: WorldMoved, view: RunView) -> None:
    view.moved.append(event)
    view.approved.pop(event.content_hash, None)


@change.register(StepReleased)
def _released(event: StepReleased, view: RunView) -> None:
    if event.plan_version == view.version:
        _put(view, replace(_step(view, event.step), gaps=event.gaps))


@change.register(AttemptStarted)
def _attempt_started(event: AttemptStarted, view: RunView) -> None:
    tried = view.attempts[event.attempt_id] = AttemptView(event)
    view.tries[tried.unit] += 1
    spend(view, Spent(tool_calls=int(_calls_tool(event))), event.step)
    if event.plan_version == view.version:
        step = _step(view, event.step)
        attempts = (*step.attempts, event.attempt_id)
        _put(view, replace(step, status="running", attempts=attempts))


@change.register(AttemptEnded)
def _attempt_ended(event: AttemptEnded, view: RunView) -> None:
    seen = view.attempts.get(event.attempt_id)
    counted = seen is not None and _calls_tool(seen.started)
    unmade = int(counted and (not event.called or event.reused == "ledger"))
    cost = Spent(usd=event.usd, tool_calls=-unmade, seconds=event.latency_s)
    spend(view, cost, event.step)
    if seen is not None:
        view.attempts[event.attempt_id] = replace(seen, ended=event, ended_seq=view.seq)


@change.register(AgentRefused)
def _refused(event: AgentRefused, view: RunView) -> None:
    view.not_called.add(event.attempt_id)


@change.register(VerdictReached)
def _judged(event: VerdictReached, view: RunView) -> None:
    tried = view.attempts.get(event.attempt_id)
    unit = event.step if tried is None else tried.unit
    said = view.verdicts.get(unit, [])
    if view.judged.get(unit) != event.attempt_id:
        view.judged[unit] = event.attempt_id
        said = []
    others = [verdict for verdict in said if verdict.check_id != event.verdict.check_id]
    view.verdicts[unit] = [*others, event.verdict]
    if event.result is not None:
        view.results[unit] = event.result


@change.register(StepEnded)
def _step_ended(event: StepEnded, view: RunView) -> None:
    if event.outcome == "denied":
        view.denied.append(event)
    if event.plan_version != view.version:
        return
    ended = replace(
        _step(view, event.step),
        status=event.status,
        output=event.output,
        outcome=event.outcome,
        error_code=event.error_code,
        why=event.why,
        stand_in=event.stand_in,
        plan_version=event.plan_version,
    )
    _put(view, ended)
    if event.status == "done":
        view.idle_tokens.clear()


@change.register(TriggerFired)
def _triggered(event: TriggerFired, view: RunView) -> None:
    view.triggers.append(event)
    view.open_trigger = event


@change.register(Reflected)
def _reflected(event: Reflected, view: RunView) -> None:
    view.reflections.append(event)


@change.register(StopAsked)
def _told_to_stop(event: StopAsked, view: RunView) -> None:
    if event.kind == "cancel":
        view.cancelled = view.cancelled or event
    else:
        view.drained = event


@change.register(GoalVerified)
def _goal_verified(event: GoalVerified, view: RunView) -> None:
    view.goal_verified = event


@change.register(AssumptionSettled)
def _assumption_settled(event: AssumptionSettled, view: RunView) -> None:
    if event.plan_version == view.version:
        view.assumed[event.assumption] = event


@change.register(CriterionJudged)
def _criterion_judged(event: CriterionJudged, view: RunView) -> None:
    view.criteria[event.content_hash, event.verdict.check_id] = event


@change.register(RunEnded)
def _ended(event: RunEnded, view: RunView) -> None:
    view.ended = event
    view.pending.clear()


def _of(unit: str) -> str:
    """Return the step of a unit: ids of steps hold no dot."""
    return unit.partition(".")[0]


def _put(view: RunView, seen: StepView) -> None:
    """Set where a step is, and keep count of those that failed: rules ask for it at every step."""
    view.steps[seen.step] = seen
    if seen.status == "failed":
        view.failed.add(seen.step)
    else:
        view.failed.discard(seen.step)


def _calls_tool(started: AttemptStarted) -> bool:
    return started.asks is None and "@" in started.capability


def _step(view: RunView, step: str) -> StepView:
    return view.steps.get(step) or StepView(step=step, plan_version=view.version)
