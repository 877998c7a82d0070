"""Events that tie runs to each other: what a run follows from, and what follows from it.

Each link is written on both sides. The side that exists already is written first, so that a crash
in between leaves a name that can be made good, and never a run that nobody knows of.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal, TypeAlias

from plangate.journal.reference import Ref
from plangate.plan.value.frozen import Frozen

Why: TypeAlias = Literal["compensation", "goal_revision"]


class Cause(Frozen):
    """The run that this one follows from."""

    kind: Why
    run_id: str
    effects: tuple[str, ...] = ()
    """For a compensation: keys of the effects to undo, in the order of its steps."""


class RunFollowed(Frozen):
    """Another run was made because of this one."""

    type: Literal["run_followed"] = "run_followed"
    kind: Why
    run_id: str
    effects: tuple[str, ...] = ()
    by: str = ""


class GoalRevised(Frozen):
    """A person confirmed another goal; from here on this run releases nothing more and ends."""

    type: Literal["goal_revised"] = "goal_revised"
    previous_goal_id: str
    goal_id: str
    goal: str
    inputs: Ref
    run_id: str
    """The run that takes the new goal on."""

    user_message_ref: str
    """What the person said: an artifact, or the caller's own reference."""

    confirmed_at: datetime
    confirmed_by: str
    cancelled_step_ids: tuple[str, ...] = ()
    kept_effects: tuple[str, ...] = ()
    """Keys of what was done and stays done."""

    compensation_candidates: tuple[str, ...] = ()
    """Keys among them that a declared tool can undo, newest first."""

    unsettled_effects: tuple[str, ...] = ()
    """Keys of effects of which nobody knows yet whether they happened."""
