"""Changes the goal of a run that has not ended: what was done stays, the rest is another run's.

Nothing is released from the moment the change is recorded; the old run then ends, and a new one
takes the new goal on, linked both ways. Said twice it is one change, and one that a crash cut off
is finished by saying it again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from plangate.compensate import follow, last_link, standing
from plangate.graph.bridge import run_blocking
from plangate.graph.state import State
from plangate.journal.causes import GoalRevised, RunFollowed
from plangate.journal.ledger import UNSETTLED
from plangate.journal.plans import read_plan
from plangate.nodes.settle import settle
from plangate.nodes.undo import is_compensation
from plangate.plan.compensation import Undoing
from plangate.plan.errors import ConfigError, Conflict
from plangate.plan.outcome import OVER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plangate.journal.session import Session
    from plangate.journal.view import RunView
    from plangate.nodes.undo import Candidate
    from plangate.runtime import Runtime

_OVER = OVER | {"failed", "unknown"}


class Proposal(NamedTuple):
    """What a change of goal would mean; what a person confirms."""

    goal: str
    inputs: Mapping[str, Any]
    """Of the new goal, those of the old one included."""

    cancelled: tuple[str, ...]
    """Steps that will not run."""

    stands: tuple[Candidate, ...]
    """What the run did or may have done outside, the newest first, and the way back of each."""


class Revised(NamedTuple):
    """A change of goal that is recorded."""

    run_id: str
    """The run that takes the new goal on; it goes on like any run."""

    goal_id: str
    record: GoalRevised


def proposed(
    runtime: Runtime, run_id: str, goal: str, inputs: Mapping[str, Any] | None = None
) -> Proposal:
    """Return what a change of goal would mean, without changing anything.

    Args:
        runtime: The agent of the run.
        run_id: A run that has not ended.
        goal: The new goal, in words.
        inputs: Over those of the old goal.

    Raises:
        ConfigError: No such run, it has ended or is a compensation, or nothing could plan the goal.
        Unreadable, Damaged: Its plan cannot be read, so it is not known what will not run.
    """
    run, view = runtime.journal.runs.get(run_id), runtime.view(run_id)
    if view.ended is not None and view.revised is None:
        raise ConfigError(
            f"run {run_id} has ended ({run.ending}), so its goal cannot change",
            hint="Start a new run; plangate effects compensate takes back what this one did.",
        )
    if is_compensation(view):
        raise ConfigError(
            f"run {run_id} takes back what another did; it has no goal of its own to change",
            hint="Reject its plan, or stop it at its question.",
        )
    given = {**_inputs(runtime, view), **(inputs or {})}
    runtime.check(State(goal=goal, inputs=given, task=view.task))
    return Proposal(goal.strip(), given, _unstarted(runtime, view), standing(runtime, run_id))


def revise_goal(
    runtime: Runtime,
    run_id: str,
    seen: Proposal,
    *,
    by: str,
    goal_id: str = "",
    message_ref: str = "",
) -> Revised:
    """Record a change of goal that a person confirmed, end the old run and make the new one.

    Args:
        runtime: The agent of the run.
        run_id: The run whose goal changes.
        seen: What the person confirmed, from `proposed`.
        by: Who confirmed it.
        goal_id: The caller's own key for the new goal; empty: new.
        message_ref: Where the person's words are kept; empty: they are put into the journal.

    Raises:
        ConfigError: As `proposed`, nobody confirmed it, or the goal id is too long.
        Conflict: What was done has changed since it was looked at, or the goal was changed already.
        RunBusy: The run's owner is at work on it.
    """
    if not by.strip():
        raise ConfigError("nobody is named who confirmed the goal", hint="Say who, with by=.")
    with runtime.hold(run_id) as session:
        revised = session.view.revised
        if revised is None:
            now = proposed(runtime, run_id, seen.goal, seen.inputs)
            if _facts(now) != _facts(seen):
                hint = "Look at what it has done by now, and confirm that."
                raise Conflict(f"run {run_id} has gone on since it was looked at", hint=hint)
            revised = _record(runtime, session, seen, by, goal_id, message_ref)
        elif (revised.goal, session.load(revised.inputs)) != (seen.goal, seen.inputs):
            raise Conflict(
                f"the goal of run {run_id} was changed already by {revised.confirmed_by}",
                hint=f"Go on with {revised.run_id}, or change the goal of that one.",
            )
        _finish(runtime, session, revised)
    return Revised(revised.run_id, revised.goal_id, revised)


def _record(
    runtime: Runtime, session: Session, seen: Proposal, by: str, goal_id: str, message_ref: str
) -> GoalRevised:
    number = len(session.view.followed) + 1
    new_run = f"{session.run.run_id}-goal{number}"
    given = State(goal=seen.goal, inputs=dict(seen.inputs), goal_id=goal_id or new_run)
    runtime.check(State(**given, task=session.view.task))  # a fault now would cost the old run
    said = {"goal": seen.goal, "inputs": dict(seen.inputs), "by": by}
    stands = [each for each in seen.stands if each.row.state not in UNSETTLED]
    revised = GoalRevised(
        previous_goal_id=session.run.goal_id,
        goal_id=goal_id or new_run,
        goal=seen.goal,
        inputs=session.put(dict(seen.inputs)),
        run_id=new_run,
        user_message_ref=message_ref or f"artifact://{session.put(said)}",
        confirmed_at=runtime.kit.now(),
        confirmed_by=by,
        cancelled_step_ids=seen.cancelled,
        kept_effects=tuple(each.row.effect_key for each in stands),
        compensation_candidates=tuple(
            each.row.effect_key for each in stands if isinstance(each.undoing, Undoing)
        ),
        unsettled_effects=tuple(
            each.row.effect_key for each in seen.stands if each.row.state in UNSETTLED
        ),
    )
    session.emit(revised)
    session.flush()
    return revised


def _finish(runtime: Runtime, session: Session, revised: GoalRevised) -> None:
    """Do what is still missing of a recorded change: the end of the old run, and the new one."""
    if session.view.ended is None:
        run_blocking(settle(State(), session, runtime.kit))
    link = last_link(session, "goal_revision")
    if link is None:
        link = RunFollowed(kind="goal_revision", run_id=revised.run_id, by=revised.confirmed_by)
        session.emit(link)
        session.flush()
    follow(
        runtime,
        session,
        link,
        goal=revised.goal,
        goal_id=revised.goal_id,
        inputs=revised.inputs,
    )


def _inputs(runtime: Runtime, view: RunView) -> dict[str, Any]:
    given = runtime.journal.artifacts.get(view.inputs) if view.inputs else {}
    return {**(given if isinstance(given, dict) else {}), **view.inputs_changed}


def _unstarted(runtime: Runtime, view: RunView) -> tuple[str, ...]:
    if view.version == 0:
        return ()
    plan = read_plan(view, runtime.journal.artifacts.get)
    return tuple(
        step.id
        for step in plan.steps
        if step.id not in view.steps or view.steps[step.id].status not in _OVER
    )


def _facts(seen: Proposal) -> tuple[object, ...]:
    rows = tuple((each.row.effect_key, each.row.state) for each in seen.stands)
    return (seen.goal, dict(seen.inputs), seen.cancelled, rows)
