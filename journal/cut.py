"""Attempts that an owner left without an end, closed by the next one with what the ledger knows.

An owner that died, or lost the run, can end nothing any more. So that each attempt has exactly one
end, whoever takes the run over writes it: from the ledger's row where the attempt acted, as unknown
where it may have, and as cancelled where it cannot have. A model that was asked may have answered,
and is paid for either way: the call is recorded at the most that was held back for it.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from plangate.journal.attempts import AttemptEnded
from plangate.journal.events import ModelCalled
from plangate.journal.ledger import UNSETTLED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from plangate.journal.asked import ModelAsked
    from plangate.journal.attempts import AttemptStarted
    from plangate.journal.ledger import EffectRow
    from plangate.journal.view import RunView

OWNER_GONE = "owner_gone"
"""Code of an attempt that the next owner ended."""


def has_cut(view: RunView) -> bool:
    """Return True if some attempt has no end."""
    return any(each.ended is None for each in view.attempts.values())


def ends_of_cut(
    view: RunView, effects: Sequence[EffectRow]
) -> Iterator[ModelCalled | AttemptEnded]:
    """Yield the end of each attempt that has none, and the call of a model that went with it.

    Args:
        view: The run, as its former owner left it.
        effects: Its rows of the ledger.
    """
    for each in list(view.attempts.values()):
        if each.ended is not None:
            continue
        if each.started.asks is not None and not each.answered:
            yield _lost(each.started, each.started.asks)
        yield _end(each.started, effects)


def _lost(started: AttemptStarted, asked: ModelAsked) -> ModelCalled:
    return ModelCalled(
        **dict(asked),
        step=started.step,
        attempt_id=started.attempt_id,
        ok=False,
        error_code=OWNER_GONE,
        estimated=True,
        latency_s=0.0,
    )


def _end(started: AttemptStarted, effects: Sequence[EffectRow]) -> AttemptEnded:
    own = next((row for row in effects if row.attempt_id == started.attempt_id), None)
    open_one = next(
        (row for row in effects if row.step == started.step and row.state in UNSETTLED), None
    )
    row = own or open_one
    made = row is not None or not started.ledgered  # of a read nobody knows: it may have cost
    plain = AttemptEnded(
        attempt_id=started.attempt_id,
        step=started.step,
        status="cancelled",
        outcome="cancelled",
        error_code=OWNER_GONE,
        error="its owner was gone before it ended",
        effect_key=row.effect_key if row is not None else None,
        called=made,
        usd=started.usd if made else Decimal(0),
    )
    if row is None or row.state == "compensated":
        return plain
    if row.state == "done":
        return plain.model_copy(
            update={"status": "succeeded", "outcome": "success", "output": row.output}
        )
    if row.state == "failed":
        return plain.model_copy(update={"status": "failed_terminal", "outcome": "permanent"})
    return plain.model_copy(update={"status": "outcome_unknown", "outcome": "unknown"})


def was_not_made(view: RunView, act: str) -> bool:
    """True if an attempt that the ledger watches over certainly made no call; see `ends_of_cut`."""
    tried = view.attempts.get(act)
    if tried is None:  # its beginning is on the disk before the ledger hears of it
        return True
    return tried.ended is not None and not tried.ended.called
