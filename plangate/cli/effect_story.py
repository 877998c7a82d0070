"""One effect from its intent to today: who allowed it, what became of it, what can be done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plangate.cli.render_run import effect_line
from plangate.cli.snapshot import effect_json
from plangate.cli.terminal import line
from plangate.journal.ledger import UNSETTLED
from plangate.journal.runs import is_at_work
from plangate.journal.view import fold
from plangate.nodes.undo import candidates
from plangate.plan.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.text import Text

    from plangate.journal.events import Entry
    from plangate.journal.journal import Journal
    from plangate.journal.ledger import EffectRow
    from plangate.journal.runs import Run
    from plangate.journal.view import RunView


def story(journal: Journal, row: EffectRow, agent: str | None, again: str) -> dict[str, Any]:
    """Return all that is known of an effect.

    Args:
        journal: Where it stands.
        row: Its row.
        agent: Name of the agent, for whether it can be undone; None: the run's, if it is an
            example.
        again: Options that the next command needs to find the same things.
    """
    view = fold(journal.log.read(row.run_id))
    run = None if row.is_buried else journal.runs.get(row.run_id)
    undo = _undo(journal, run, row, view, agent)
    return {
        **effect_json(row),
        "goal_id": row.goal_id,
        "plan_version": row.plan_version,
        "attempt": row.attempt_id,
        "args_sha256": row.args_sha256,
        "output": journal.artifacts.get(row.output) if row.output else None,
        "allowed_by": _allowed(view, row),
        "history": list(_history(journal, row, view)),
        "compensability": undo,
        "next": [] if run is None else list(_next(journal, run, row, undo, again)),
    }


def story_lines(told: Mapping[str, Any]) -> Iterator[Text]:
    """Yield the same for people."""
    yield effect_line(told)
    about = f"key {told['effect_key']}"
    if told["run_id"]:
        about += f", run {told['run_id']}, plan v{told['plan_version']}"
    yield line("  ", (about, "dim"))
    if allowed := told["allowed_by"]:
        yield line("  ", ("allowed by", "dim"), f"{allowed['by']} ({allowed['question']})")
    if told["note"]:
        who = f"{told['by']}: " if told["by"] else ""
        yield line("  ", ("evidence", "dim"), f"{who}{told['note']}")
    for each in told["history"]:
        yield line("  ", (each["at"][11:19], "dim"), each["says"])
    undo = told["compensability"]
    can = f"by {undo['undo']}" if undo["undo"] else undo["why_not"]
    yield line("  ", ("undo", "dim"), can)
    for each in told["next"]:
        yield line("  ", ("next", "bold"), each)


def _allowed(view: RunView, row: EffectRow) -> dict[str, Any] | None:
    decision = view.decisions.get(row.approval or "")
    if decision is None:
        return None
    asked = view.questions.get(decision.question_id)
    return {
        "question": decision.question_id,
        "decision": decision.decision,
        "by": decision.by,
        "content_hash": decision.content_hash,
        "plan_version": asked.plan_version if asked else None,
    }


def _history(journal: Journal, row: EffectRow, view: RunView) -> Iterator[dict[str, Any]]:
    """Yield what the logs say of the effect: of its run, then of the runs that undo it."""
    undone_by = [each.run_id for each in view.followed if row.effect_key in each.effects]
    attempts = {
        key
        for key, each in view.attempts.items()
        if key == row.attempt_id or (each.ended and each.ended.effect_key == row.effect_key)
    }
    for run_id in (row.run_id, *undone_by):
        for entry in journal.log.read(run_id):
            says = _says(entry, row, attempts if run_id == row.run_id else set())
            if says:
                yield {
                    "run_id": run_id,
                    "seq": entry.seq,
                    "at": entry.at.isoformat(),
                    "type": entry.event.type,
                    "says": says,
                }


def _says(entry: Entry, row: EffectRow, attempts: set[str]) -> str:
    event = entry.event
    if event.type == "attempt_started" and event.attempt_id in attempts:
        return f"attempt {event.attempt_id} of {event.capability}"
    if event.type == "attempt_ended" and event.attempt_id in attempts:
        reused = f", result from the {event.reused}" if event.reused else ""
        return f"attempt {event.attempt_id} ended: {event.outcome} {event.error_code}{reused}"
    if event.type == "effect_moved" and event.effect_key == row.effect_key:
        who = f" by {event.by}" if event.by else ""
        return f"{event.state}{who}{f' ({event.evidence})' if event.evidence else ''}"
    if event.type == "run_followed" and row.effect_key in event.effects:
        return f"run {event.run_id} was begun to undo it"
    return ""


def _undo(
    journal: Journal, run: Run | None, row: EffectRow, view: RunView, agent: str | None
) -> dict[str, Any]:
    """Say whether a declared tool can take the effect back; that is the agent's to know."""
    from plangate.agent import load_agent
    from plangate.cli.opened import agent_of
    from plangate.tools.registry import Registry

    if row.state in ("failed", "compensated"):
        return {"undo": None, "code": "", "why_not": "there is nothing to undo"}
    if run is None:
        return {"undo": None, "code": "deleted", "why_not": "nothing is left to undo it by"}
    try:
        tools = Registry(load_agent(agent_of(run, agent)).tools)
    except ConfigError:
        why = "unknown; name the agent with --agent"
        return {"undo": None, "code": "unknown", "why_not": why}
    catalog = tools.catalog(run.principal.scopes)
    [found] = candidates([row], view, journal.artifacts.get, catalog)
    shown = found.shown()
    return {name: shown[name] for name in ("undo", "args", "code", "why_not")}


def _next(
    journal: Journal, run: Run, row: EffectRow, undo: Mapping[str, Any], again: str
) -> Iterator[str]:
    key = row.effect_key[:12]
    if row.state in UNSETTLED:
        if is_at_work(run, journal.clock()):
            yield f"wait: {run.owner} is at work on run {run.run_id}"
            return
        if row.silent_caller:
            yield f"stop {row.silent_caller}: it has this in hand, and may still make the call"
        yield f"plangate effects reconcile {key}{again}"
        yield f"plangate effects settle {key} --as done|failed --evidence TEXT{again}"
    elif row.state == "done" and undo["undo"] and run.status == "ended":
        yield f"plangate effects compensate {run.run_id} --only {key}{again}"
    elif row.state == "done" and undo["undo"]:
        yield f"end run {run.run_id} first, then plangate effects compensate it"
