"""Effects of unknown outcome that a step has to do with: its own, and those of others that it met.

With a key of global scope, the row of the ledger can be another run's; the question about it is
asked by whoever needs it now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plangate.engine.underway import may_still_act
from plangate.journal.ledger import UNSETTLED

if TYPE_CHECKING:
    from plangate.journal.journal import Journal
    from plangate.journal.ledger import EffectRow
    from plangate.journal.view import RunView


def unsettled(
    journal: Journal, view: RunView, step: str | None, only: object = None
) -> tuple[EffectRow, ...]:
    """Return the effects of unknown outcome that a step began or met.

    Args:
        journal: Where they stand.
        view: The step's run.
        step: Its id.
        only: Key of the one that is meant; None: all.
    """
    own = journal.ledger.list(run_id=view.run_id)
    keys = {row.effect_key for row in own if row.step == step}
    for tried in view.attempts.values():
        if tried.started.step == step and tried.ended is not None and tried.ended.effect_key:
            keys.add(tried.ended.effect_key)
    meant = keys if only is None else keys & {only}
    rows = [row for row in map(journal.ledger.get, sorted(meant)) if row is not None]
    return tuple(row for row in rows if row.state in UNSETTLED)


def may_yet_happen(journal: Journal, view: RunView, step: str | None, only: object = None) -> str:
    """Say who may still carry out such an effect, so that nobody can know that it failed."""
    rows = unsettled(journal, view, step, only)
    said = ((row, may_still_act(journal.url, row)) for row in rows)
    return next((f"{row.business_key}: {why}; stop it first" for row, why in said if why), "")
