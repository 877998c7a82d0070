"""How an attempt can end, and how strong a proof can be. Pure vocabulary."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

Level: TypeAlias = Literal["L0", "L1", "L2", "L3", "L4"]
"""Strength of a check, weakest first; the names compare in that order.

L0 the shape is right · L1 a rule over the result holds · L2 a read-only tool looked at the world
again and a rule over both holds · L3 a model judged · L4 a person judged.
"""

Outcome: TypeAlias = Literal[
    "success",
    "business_rejection",
    "transient",
    "permanent",
    "unexpected_state",
    "unknown",
    "denied",
    "cancelled",
]
"""How one attempt ended.

`business_rejection` is an expected "no". `unknown` is a call that may have acted: a timeout, a lost
connection or a crash after dispatch of an effect; it is never the same as failed.
"""

StepStatus: TypeAlias = Literal[
    "pending",
    "running",
    "waiting",
    "done",
    "failed",
    "skipped",
    "cancelled",
    "unknown",
    "handed_over",
]
"""Where a step is: a fold over events. All but the first three are terminal for a plan version.

`handed_over` is a failure for which the plan names a stand-in: what becomes of the stand-in counts.
"""

PASSED: Final = frozenset({"done", "skipped", "handed_over"})
"""Statuses of steps that let what follows them go on."""

OVER: Final = PASSED | {"cancelled"}
"""Statuses of steps that nothing more will happen to, and that ask for no thought."""

AttemptStatus: TypeAlias = Literal[
    "running",
    "succeeded",
    "failed_retryable",
    "failed_terminal",
    "outcome_unknown",
    "cancelled",
]

EffectState: TypeAlias = Literal["intended", "accepted", "done", "failed", "unknown", "compensated"]
"""States of an effect in the ledger.

`intended` (written before the call) → `accepted` (the outside has an operation id and is working)
→ `done` | `failed`; `unknown` until reconciled or settled by a person; `compensated` after an undo.
"""

Says: TypeAlias = Literal["pass", "fail", "unknown"]
