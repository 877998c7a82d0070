"""Events of attempts: how each began, and the one way in which it ended."""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

from pydantic import Field

from plangate.journal.asked import ModelAsked
from plangate.journal.reference import Ref
from plangate.plan.outcome import AttemptStatus, Outcome
from plangate.plan.value.frozen import Args, Frozen


class AttemptStarted(Frozen):
    """One try of a step."""

    type: Literal["attempt_started"] = "attempt_started"
    attempt_id: str
    """`<step>-A<n>`, counted over all plan versions of the run; of an element of a list
    `<step>.<element>-A<n>`."""

    step: str
    element: int | None = None
    """Which one of the list that the step runs over, from 1; None: it runs over no list."""

    plan_version: int
    capability: str
    """`tool@version`, or `model:<name>@<first digits of the prompt's hash>`."""

    asks: ModelAsked | None = None
    """Of a try that asks a model."""

    args: Ref
    args_sha256: str
    inputs: tuple[str, ...] = ()
    """References that were read, as `obs://S1-A1`."""

    input_versions: Args = Field(default_factory=dict, validate_default=True)
    """Versions of outside objects that the inputs showed, as `{"order://ORD-1": 8}`."""

    usd: Decimal | None = Decimal(0)
    """What is held back for it: charged in full if its owner dies before it can say more."""

    ledgered: bool = False
    """True if the ledger tells whether its body was called."""


class AttemptEnded(Frozen):
    """A try ended, in exactly one way."""

    type: Literal["attempt_ended"] = "attempt_ended"
    attempt_id: str
    step: str
    status: AttemptStatus
    outcome: Outcome
    error_code: str = ""
    error: str = ""
    """Redacted, one line."""

    output: Ref | None = None
    observed: tuple[str, ...] = ()
    """Evidence references that the output holds, as `order://ORD-1?version=8`."""

    progress: tuple[str, ...] = ()
    usd: Decimal | None = Decimal(0)
    latency_s: float = 0.0
    effect_key: str | None = None
    reused: str = ""
    """Where the result came from instead of a call: `ledger`, `reconcile`, `poll`."""

    called: bool = True
    """False: the body was certainly not called, so it is no tool call and cost nothing."""


class CallOverran(Frozen):
    """A call went on although nobody waited for it any more, or ended then after all.

    A tool that acts may have acted in between; its effect stays unknown until it is settled.
    """

    type: Literal["call_overran"] = "call_overran"
    step: str
    attempt_id: str
    tool: str
    effect_key: str | None = None
    how: Literal["going_on", "returned", "raised"]
    after_s: float
    """Seconds from the start of the call."""
