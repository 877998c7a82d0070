"""What a checkpoint holds: plain JSON, ids and hashes. It is a program counter and nothing else.

Plans, outputs and events lie in the journal; each node folds the journal first and believes this
state only where the journal is silent. So a lost, stale or forked checkpoint changes no outcome,
and the size of a checkpoint depends neither on the number of steps nor on their output.

`goal`, `inputs`, `goal_id` and `task` are seen by the first node of an invocation and by no later
one (LangGraph's `EphemeralValue`). If they stayed, the second goal of a thread would inherit the
first one's `goal_id`, and with it its effect keys: a new refund would pass for one already paid.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, Final, TypeAlias

from langchain_core.runnables import RunnableConfig
from langgraph.channels import EphemeralValue
from typing_extensions import TypedDict  # pydantic cannot make a JSON Schema of typing's in 3.11

STATE_VERSION: Final = 1


class Named(TypedDict, total=False):
    """What both sides of the graph share."""

    run_id: str
    """Going in: the id that a new run shall have, or, without a goal, the run to go on with."""


class Input(Named, total=False):
    """What `invoke` takes: a goal and what is known about it."""

    goal: Annotated[str, EphemeralValue]
    """What to reach, in the user's words."""

    inputs: Annotated[dict[str, Any], EphemeralValue]
    """Named values that came with the goal."""

    goal_id: Annotated[str, EphemeralValue]
    """The caller's own key for the goal; the same key never pays twice. Left out: new per run."""

    task: Annotated[str, EphemeralValue]
    """Name of the template to plan with, where several could be meant."""


class Output(Named, total=False):
    """What `invoke` gives back. More than this is in the journal, under `run_id`."""

    phase: str
    """The node that ran last."""

    plan_version: int
    plan_hash: str
    waiting: list[str]
    """Ids of the questions that nobody has answered yet."""

    verdict: str
    """pass, fail or unknown; empty until the run has ended."""

    ending: str
    """How the run ended, as in `RunEnded.ending`; empty until then."""

    report: dict[str, Any]
    """A few lines of what was done; the whole report is an artifact of the run."""


class State(Input, Output, total=False):
    """All that a node sees and may write."""

    schema_version: int
    """Version of this layout (`STATE_VERSION`)."""

    go: str
    """Where the last node wants to go next; the only key that edges read."""


Node: TypeAlias = Callable[[State, RunnableConfig], Awaitable[Mapping[str, Any]]]
"""The body of a node as LangGraph calls it; gives the keys to change."""


def blank() -> State:
    """Return the keys of an earlier run of the same thread, emptied for the next one."""
    return State(
        schema_version=STATE_VERSION,
        phase="",
        plan_version=0,
        plan_hash="",
        waiting=[],
        verdict="",
        ending="",
        report={},
    )
