"""Begins the run that takes back what another run did. What it may do is decided as for any run.

A run that has ended is compensated by a run of its own, linked both ways: its plan is checked, a
person confirms it, its effects stand in the ledger under their own keys. Begun twice, it is one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from plangate.given import LONGEST
from plangate.journal.causes import Cause, RunFollowed
from plangate.journal.events import RunStarted
from plangate.journal.runs import Run
from plangate.nodes.undo import Candidate, candidates_of
from plangate.plan.codes import issue
from plangate.plan.compensation import Undoing
from plangate.plan.effects import effect_key
from plangate.plan.errors import ConfigError, Conflict, PlanRejected
from plangate.plan.issue import Issue
from plangate.plan.value.frozen import digest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plangate.journal.causes import Why
    from plangate.journal.reference import Ref
    from plangate.journal.session import Session
    from plangate.runtime import Runtime


class Begun(NamedTuple):
    """A compensation that can be advanced like any run."""

    run_id: str
    effects: tuple[str, ...]
    """Keys that it undoes, in the order of its steps."""

    left: tuple[Candidate, ...]
    """What stands and is not undone, with why."""


def standing(runtime: Runtime, run_id: str) -> tuple[Candidate, ...]:
    """Return what a run did that stands or may stand, the newest first, and the way back of each.

    Raises:
        ConfigError: No such run.
    """
    run = runtime.journal.runs.get(run_id)
    return candidates_of(
        runtime.journal, run_id, runtime.kit.registry.catalog(run.principal.scopes)
    )


def compensate(runtime: Runtime, run_id: str, only: Sequence[str] = (), *, by: str) -> Begun:
    """Make the run that takes back what another one did, or find the one that does so already.

    Nothing happens outside yet: advance the new run, and answer its questions.

    Args:
        runtime: The agent of the run.
        run_id: A run that has ended.
        only: Effect keys; empty: all that can be undone.
        by: Who begins it.

    Raises:
        ConfigError: No such run, it has not ended, or nothing of it stands.
        PlanRejected: A named effect, or every effect, cannot be undone; it says why.
        Conflict: A compensation of the run is under way for other effects.
        RunBusy: Somebody is at work on the run.
    """
    run = runtime.journal.runs.get(run_id)
    if run.status != "ended":
        raise ConfigError(
            f"run {run_id} has not ended ({run.status}), so what it did is still its own",
            hint="End it first: stop or reject at its question, or plangate run revise.",
        )
    with runtime.hold(run_id) as session:
        if (open_one := _under_way(runtime, session, only)) is not None:
            return open_one
        wanted, left = _chosen(run_id, standing(runtime, run_id), only)
        goal_id = _goal_id(run.goal_id)
        _check_identities(runtime, wanted, goal_id)
        number = sum(each.kind == "compensation" for each in session.view.followed) + 1
        effects = tuple(each.row.effect_key for each in wanted)
        link = RunFollowed(
            kind="compensation", run_id=f"{run_id}-undo{number}", effects=effects, by=by
        )
        session.emit(link)
        session.flush()
        follow(runtime, session, link, goal=_goal(run_id, len(effects)), goal_id=goal_id)
    return Begun(link.run_id, effects, left)


def follow(
    runtime: Runtime,
    session: Session,
    link: RunFollowed,
    *,
    goal: str,
    goal_id: str,
    inputs: Ref | None = None,
) -> None:
    """Make the run that a link names, as far as it is not there yet.

    Args:
        runtime: The agent of both runs.
        session: The run that it follows from, held; the link is on the disk.
        link: Why, and under which id.
        goal: Of the new run.
        goal_id: Of the new run.
        inputs: Artifact of its inputs; None: it has none.
    """
    cause, runs = session.run, runtime.journal.runs
    try:
        made = runs.get(link.run_id)
    except ConfigError:
        made = runs.create(
            Run(
                run_id=link.run_id,
                goal_id=goal_id,
                goal=goal,
                thread_id=link.run_id,
                agent=cause.agent,
                principal=cause.principal,
            )
        )
    if made.last_seq:
        return
    with runtime.hold(link.run_id) as new:
        new.emit(
            RunStarted(
                goal_id=goal_id,
                goal=goal,
                inputs=inputs or new.put({}),
                principal=cause.principal.principal,
                agent=cause.agent,
                task=session.view.task,
                cause=Cause(kind=link.kind, run_id=cause.run_id, effects=link.effects),
            )
        )


def last_link(session: Session, kind: Why) -> RunFollowed | None:
    """Return the newest link of a kind, or None."""
    return next((each for each in reversed(session.view.followed) if each.kind == kind), None)


def _under_way(runtime: Runtime, session: Session, only: Sequence[str]) -> Begun | None:
    """Return the compensation that is begun and not over; one that a crash cut off is made now.

    One that did its work and was deleted is not: its effects do not stand any more.
    """
    link = last_link(session, "compensation")
    if link is None:
        return None
    rows = [runtime.journal.ledger.get(key) for key in link.effects]
    if runtime.journal.runs.find(link.run_id) is None and not all(
        row is not None and row.state == "done" for row in rows
    ):
        return None
    goal_id = _goal_id(session.run.goal_id)
    goal = _goal(session.run.run_id, len(link.effects))
    follow(runtime, session, link, goal=goal, goal_id=goal_id)
    if runtime.journal.runs.get(link.run_id).status == "ended":
        return None
    if not set(only) <= set(link.effects):
        raise Conflict(
            f"run {link.run_id} undoes other effects of run {session.run.run_id} now",
            hint=f"Finish it first: plangate run resume {link.run_id}.",
        )
    return Begun(link.run_id, link.effects, ())


def _chosen(
    run_id: str, stands: Sequence[Candidate], only: Sequence[str]
) -> tuple[list[Candidate], tuple[Candidate, ...]]:
    known = {each.row.effect_key for each in stands}
    if strays := [key for key in only if key not in known]:
        raise ConfigError(
            f"run {run_id} has no effect {strays[0]} that stands",
            hint=f"See plangate effects list --run {run_id}.",
        )
    if not stands:
        hint = f"See plangate effects list --run {run_id}."
        raise ConfigError(f"nothing that run {run_id} did stands", hint=hint)
    meant = [each for each in stands if not only or each.row.effect_key in only]
    faults = [each.undoing for each in meant if isinstance(each.undoing, Issue)]
    wanted = [each for each in meant if isinstance(each.undoing, Undoing)]
    if faults and (only or not wanted):
        raise PlanRejected(faults, hint="Nothing was begun; what cannot be undone is a person's.")
    return wanted, tuple(each for each in stands if each not in wanted)


def _check_identities(runtime: Runtime, wanted: Sequence[Candidate], goal_id: str) -> None:
    """An undo that is done already, from before the effect, would be reused and undo nothing."""
    for each in wanted:
        assert isinstance(each.undoing, Undoing), "only those are wanted"  # noqa: S101 (ours)
        spec = runtime.kit.registry[each.undoing.undo.tool].spec
        named = effect_key(spec, each.undoing.args, goal_id)
        row = runtime.journal.ledger.get(named.key)
        if row is not None and row.state == "done" and row.created_at < each.row.created_at:
            says = f"{named.business} was done before {each.row.business_key}"
            raise PlanRejected([issue("undo_used", says, step=each.row.step)])


def _goal(run_id: str, count: int) -> str:
    return f"Take back {count} effect{'s' if count != 1 else ''} of run {run_id}"


def _goal_id(goal_id: str) -> str:
    """The same for all attempts: an undo whose key is unique in a goal then meets its own row."""
    named = f"undo:{goal_id}"
    return named if len(named) <= LONGEST["goal_id"] else f"undo:{digest(goal_id)}"
