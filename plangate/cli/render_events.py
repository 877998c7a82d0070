"""What a watcher of a run sees: one line for each event that matters to a person."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from plangate.cli.terminal import count, line
from plangate.journal.agents import AgentRefused
from plangate.journal.assumed import AssumptionSettled
from plangate.journal.attempts import AttemptEnded, AttemptStarted, CallOverran
from plangate.journal.causes import GoalRevised, RunFollowed
from plangate.journal.events import (
    EffectMoved,
    GoalVerified,
    ModelCalled,
    PlanCriticized,
    PlanProposed,
    PlanValidated,
    Reflected,
    RunEnded,
    StepEnded,
    TriggerFired,
    VerdictReached,
)
from plangate.journal.grounds import Fingerprinted
from plangate.journal.judged import CriterionJudged
from plangate.journal.questions import (
    AnswerRefused,
    DecisionTaken,
    QuestionAsked,
    StopAsked,
)
from plangate.journal.spending import BudgetStopped, LimitRaised, Reestimated, SpendingLost

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rich.text import Text

    from plangate.journal.events import Entry

SAYS_STYLE = {"pass": "green", "fail": "bold red", "unknown": "yellow"}
STATUS_STYLE = {
    "done": "green",
    "failed": "bold red",
    "unknown": "yellow",
    "skipped": "dim",
    "handed_over": "yellow",
}
Part: TypeAlias = str | tuple[str, str]


def event_line(entry: Entry) -> Text | None:
    """Return the line for an event; None for one that only a program needs."""
    event = entry.event
    shown = _SHOWN.get(type(event))
    if shown is None:
        return None
    parts = shown(event)
    return line((f"{entry.at:%H:%M:%S}", "dim"), *parts) if parts else None


def _fingerprinted(event: Fingerprinted) -> list[Part]:
    if event.word == "first":
        return []
    follows = _FOLLOWS[event.word]
    return [("changed", "bold yellow"), f"{'; '.join(event.reasons)}:", follows]


def _proposed(event: PlanProposed) -> list[Part]:
    return [("plan", "bold"), f"v{event.version} by {event.author.kind} {event.author.name}"]


def _validated(event: PlanValidated) -> list[Part]:
    errors = [each for each in event.issues if each.severity == "error"]
    if event.valid:
        return [("check", "bold"), f"v{event.version} valid, tier {event.tier}"]
    return [("check", "bold"), f"v{event.version}", (count(len(errors), "error"), "bold red")]


def _criticized(event: PlanCriticized) -> list[Part]:
    says = f"left out: {event.skipped}" if event.skipped else count(len(event.issues), "remark")
    return [("critic", "bold"), says]


def _asked(event: QuestionAsked) -> list[Part]:
    about = f"about {event.step}" if event.step else f"about plan v{event.plan_version}"
    return [("asks", "bold yellow"), f"{event.audience}: {event.kind} {about}"]


def _decided(event: DecisionTaken) -> list[Part]:
    return [("decision", "bold"), event.decision, f"by {event.by}", event.comment]


def _refused(event: AnswerRefused) -> list[Part]:
    return [("answer", "bold"), ("refused", "yellow"), event.why]


def _started(event: AttemptStarted) -> list[Part]:
    return [(event.step, "bold"), (event.capability, "cyan"), ("started", "dim")]


def _ended(event: AttemptEnded) -> list[Part]:
    if event.outcome == "success":
        return []  # the verdicts and the step's end say more
    return [
        (event.step, "bold"),
        (event.outcome, "yellow"),
        event.error_code,
        event.error,
    ]


def _not_called(event: AgentRefused) -> list[Part]:
    says = f"{event.code}: {event.why}"
    return [(event.step, "bold"), "its model wished for", event.tool, ("refused", "yellow"), says]


def _overran(event: CallOverran) -> list[Part]:
    how = "goes on unattended" if event.how == "going_on" else f"{event.how} late"
    return [
        ("overrun", "bold"),
        event.step,
        event.tool,
        (f"{how} ({event.after_s:.1f} s)", "yellow"),
    ]


def _moved(event: EffectMoved) -> list[Part]:
    return [
        (event.step, "bold"),
        ("effect", "magenta"),
        event.tool,
        event.state,
        event.operation_id or "",
        f"by {event.by}" if event.by else "",
        event.evidence,
    ]


def _followed(event: RunFollowed) -> list[Part]:
    return [("followed", "bold"), f"by run {event.run_id}: {event.kind}"]


def _revised(event: GoalRevised) -> list[Part]:
    return [("goal", "bold"), f"changed by {event.confirmed_by}; see run {event.run_id}"]


def _judged(event: VerdictReached) -> list[Part]:
    verdict = event.verdict
    says = (verdict.says, SAYS_STYLE[verdict.says])
    why = "" if verdict.says == "pass" else verdict.why
    return [(event.step, "bold"), says, verdict.level, verdict.claim, why]


def _step(event: StepEnded) -> list[Part]:
    status = (event.status, STATUS_STYLE.get(event.status, ""))
    return [(event.step, "bold"), status, event.error_code, event.why]


def _fired(event: TriggerFired) -> list[Part]:
    return [("trigger", "bold yellow"), event.kind, event.step or "", event.code]


def _reflected(event: Reflected) -> list[Part]:
    repairs = f"repair {', '.join(event.repairs)}" if event.repairs else "no known repair"
    return [("reflects", "bold"), event.failure_category, repairs, f"(by {event.by})"]


def _called(event: ModelCalled) -> list[Part]:
    tokens = f"{event.input_tokens} + {event.output_tokens} tokens"
    return [("model", "bold"), event.step or event.role, event.model, tokens, event.error_code]


def _stopped(event: BudgetStopped) -> list[Part]:
    spent = f"{event.spent} of {event.allowed}"
    needs = f"{event.needs} more needed" if event.needs else ""
    return [("budget", "bold red"), event.step or "", event.limit, spent, needs]


def _raised(event: LimitRaised) -> list[Part]:
    said = ", ".join(f"{name} {was} to {event.limits[name]}" for name, was in event.was.items())
    return [("limit", "bold"), f"raised by {event.by}:", said, event.reason]


def _weighed(event: Reestimated) -> list[Part]:
    took = f"{event.step} is {event.trigger} ({event.time_ratio:g} x the estimate)"
    return [("weighed", "bold"), took, (event.decision, "yellow"), event.says]


def _lost(event: SpendingLost) -> list[Part]:
    return [("counted", "bold"), f"as spent: {', '.join(event.acts)}, cut short"]


def _told(event: StopAsked) -> list[Part]:
    word = "cancelled" if event.kind == "cancel" else "drains"
    return [(word, "bold red"), f"by {event.by}", event.reason]


def _goal(event: GoalVerified) -> list[Part]:
    return [("goal", "bold"), (event.says, SAYS_STYLE[event.says])]


def _assumption(event: AssumptionSettled) -> list[Part]:
    style = "green" if event.status == "verified" else "bold red"
    return [("assumed", "bold"), event.says, (event.status, style)]


def _criterion(event: CriterionJudged) -> list[Part]:
    said = event.verdict
    return [("goal", "bold"), (said.says, SAYS_STYLE[said.says]), said.level, said.claim, said.why]


def _over(event: RunEnded) -> list[Part]:
    return [("ended", "bold"), event.ending, (event.verdict, SAYS_STYLE[event.verdict]), event.why]


_FOLLOWS = {
    "same": "goes on",
    "compatible": "goes on as approved",
    "revalidate": "the plan is checked again, and approved again",
    "replan": "a new plan is made; what was done stays on the record",
}

_SHOWN: Mapping[type, Callable[..., list[Part]]] = {
    Fingerprinted: _fingerprinted,
    PlanProposed: _proposed,
    PlanValidated: _validated,
    PlanCriticized: _criticized,
    QuestionAsked: _asked,
    AnswerRefused: _refused,
    DecisionTaken: _decided,
    AttemptStarted: _started,
    AttemptEnded: _ended,
    AgentRefused: _not_called,
    CallOverran: _overran,
    EffectMoved: _moved,
    RunFollowed: _followed,
    GoalRevised: _revised,
    VerdictReached: _judged,
    StepEnded: _step,
    TriggerFired: _fired,
    Reflected: _reflected,
    ModelCalled: _called,
    BudgetStopped: _stopped,
    LimitRaised: _raised,
    Reestimated: _weighed,
    SpendingLost: _lost,
    StopAsked: _told,
    GoalVerified: _goal,
    CriterionJudged: _criterion,
    AssumptionSettled: _assumption,
    RunEnded: _over,
}
