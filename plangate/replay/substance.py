"""What of an event is behaviour: the key by which two logs are laid side by side, and what counts.

Left out is what no two runs have in common and nobody decided: times, prices, owners, texts of
errors, and how often somebody looked. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from plangate.journal.cut import OWNER_GONE

if TYPE_CHECKING:
    from plangate.journal.events import Event

Key: TypeAlias = tuple[str, ...]
Facts: TypeAlias = dict[str, Any]

SILENT: Final = frozenset(
    {
        "run_resumed",
        "fingerprinted",
        "answer_refused",
        "answer_counted",
        "outside_asked",
        "call_overran",
        "run_followed",
        "goal_revised",
        "partly_reported",
        "limit_raised",
        "spending_lost",
        "reestimated",
    }
)
"""Events that say who worked, what was asked in passing and what others did about the run; what
came of it is in the others."""


def key_of(event: Event) -> Key:
    """Return the type of an event and what tells it from others of its type."""
    names = _KEYS.get(event.type, ())
    found = [str(_of(event, name)) for name in names]
    return (event.type, *found)


def facts_of(event: Event) -> Facts | None:
    """Return what an event decided; None for one that decides nothing, or was cut short."""
    if event.type in SILENT or _was_cut(event):
        return None
    shown = _FACTS.get(event.type)
    return {} if shown is None else shown(event)


def _of(event: Event, name: str) -> Any:
    found: Any = event
    for part in name.split("."):
        found = getattr(found, part)
    return "" if found is None else found


def _was_cut(event: Event) -> bool:
    """A try that was cancelled or left, a lost call and a drain are no behaviour of the run.

    Nor is a stop at the limit of a day, which other runs have used up as well.
    """
    if event.type == "budget_stopped":
        return event.limit.startswith("day.")
    if event.type == "attempt_ended":
        return event.outcome == "cancelled" or event.error_code == OWNER_GONE
    if event.type == "stop_asked":
        return event.kind == "drain"
    return event.type == "model_called" and not event.ok and event.reply is None


def _fields(*names: str) -> Callable[[Any], Facts]:
    def shown(event: Any) -> Facts:
        return {name.rpartition(".")[2]: _plain(_of(event, name)) for name in names}

    return shown


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(each) for each in value]
    dump = getattr(value, "model_dump", None)
    return value if dump is None else dump(mode="json")


def _issues(event: Any) -> list[str]:
    return sorted(f"{each.code}@{each.step or 'plan'}" for each in event.issues)


def _validated(event: Any) -> Facts:
    shown = _fields("valid", "tier", "confirm")(event)
    return {**shown, "issues": _issues(event)}


def _criticized(event: Any) -> Facts:
    return {"read": not event.skipped, "issues": _issues(event)}


def _attempt_ended(event: Any) -> Facts:
    shown = _fields("outcome", "error_code", "output", "effect_key")(event)
    return {**shown, "a new call": not event.reused}


def _verdict(event: Any) -> Facts:
    shown = _fields("verdict.says", "verdict.level")(event)
    return {**shown, "evidence": [each.ref for each in event.verdict.evidence]}


def _goal(event: Any) -> Facts:
    return {"says": event.says, **{each.check_id: each.says for each in event.verdicts}}


_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "model_called": ("role", "attempt_id", "by"),
    "plan_proposed": ("version",),
    "plan_validated": ("version",),
    "plan_criticized": ("version",),
    "question_asked": ("question_id",),
    "info_read": ("question_id", "tool"),
    "world_moved": ("step",),
    "decision_taken": ("question_id", "decision"),
    "step_released": ("plan_version", "step"),
    "attempt_started": ("attempt_id",),
    "attempt_ended": ("attempt_id",),
    "agent_refused": ("attempt_id",),
    "outside_asked": ("by", "how"),
    "effect_moved": ("step", "effect_key", "state"),
    "verdict_reached": ("step", "attempt_id", "verdict.check_id"),
    "step_ended": ("plan_version", "step"),
    "budget_stopped": ("limit",),
    "criterion_judged": ("verdict.check_id",),
    "assumption_settled": ("plan_version", "assumption"),
}

_FACTS: Final[Mapping[str, Callable[[Any], Facts]]] = {
    "run_started": _fields("goal", "goal_id", "inputs", "principal", "task"),
    "model_called": _fields("prompt_sha256", "ok", "error_code"),
    "plan_proposed": _fields("content_hash", "author.kind", "carried", "trigger"),
    "draft_refused": lambda event: {"issues": _issues(event)},
    "plan_validated": _validated,
    "plan_criticized": _criticized,
    "question_asked": _fields(
        "kind", "step", "content_hash", "allowed", "confirm", "roles", "quorum", "args"
    ),
    "info_read": _fields("args", "output"),
    "world_moved": _fields("content_hash", "objects"),
    "decision_taken": _fields("by", "content_hash", "steps", "denied", "args"),
    "attempt_started": _fields("capability", "args_sha256", "inputs"),
    "attempt_ended": _attempt_ended,
    "agent_refused": _fields("tool", "code"),
    "verdict_reached": _verdict,
    "step_ended": _fields("status", "outcome", "error_code", "output"),
    "trigger_fired": _fields("kind", "step", "code"),
    "reflected": _fields(
        "failure_category", "failed_steps", "repairs", "needs_person", "scope", "by"
    ),
    "stop_asked": _fields("kind", "by"),
    "goal_verified": _goal,
    "assumption_settled": _fields("status", "stops"),
    "criterion_judged": _fields("content_hash", "verdict.says", "verdict.verifier"),
    "run_ended": _fields("ending", "verdict"),
}
