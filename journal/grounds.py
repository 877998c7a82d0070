"""Events about what a run rests on: what it is made of, and what the outside said in passing."""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

from plangate.journal.reference import Ref
from plangate.plan.outcome import Outcome
from plangate.plan.value.frozen import Frozen


class Fingerprinted(Frozen):
    """What the run is made of was looked at: when it began, and at a resume that found a change."""

    type: Literal["fingerprinted"] = "fingerprinted"
    fingerprint: Ref
    """A `plangate.plan.fingerprint.Fingerprint`."""

    word: Literal["first", "same", "compatible", "revalidate", "replan"]
    """`first`: there was nothing to compare with."""

    reasons: tuple[str, ...] = ()
    """Each part that changed, the gravest first."""


class OutsideAsked(Frozen):
    """The outside answered a question that is no attempt of a step, or not the end of one.

    A check that looked at the world, a read made again before an effect, an acceptance, a
    reconciliation, the final state of an operation, rights that are not as they were. A replay
    answers from it.
    """

    type: Literal["outside_asked"] = "outside_asked"
    by: str
    """Whose question it was: an attempt, as `S6-A1`, or a check, as `S6-paid-1`, `goal-paid-1`."""

    how: Literal["call", "reconcile", "status", "rights"]
    tool: str
    """Empty for rights."""

    args_sha256: str = ""
    """Of a read: with which arguments."""

    output: Ref | None = None
    """What it showed; of a reconciliation, an operation or rights, all that was said."""

    outcome: Outcome = "success"
    error_code: str = ""
    error: str = ""
    step: str | None = None
    """Of a counted call: the step that it was made for; None: for the goal."""

    counted: bool = False
    """True for a tool call of its own: it counts against limits, beside the attempts."""

    usd: Decimal | None = Decimal(0)
    latency_s: float = 0.0
