"""Findings about an effect that is to be taken back, before there is a plan that does it.

Their layer is 5, permissions and effects: an undo is an effect of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plangate.plan.code import Code

if TYPE_CHECKING:
    from collections.abc import Mapping

UNDO: Mapping[str, Code] = {
    "no_undo": Code(
        5,
        "No tool is declared that takes this effect back, or this principal may not use it.",
        "An invented way back would be one more effect that nobody approved.",
        "Declare undo= on the tool, or see to it by hand.",
        "'send_mail' declares no undo",
    ),
    "undo_is_the_effect": Code(
        5,
        "The undo has the business identity of the effect itself.",
        "The ledger would take it for the call that was made, and nothing would be undone.",
        "Map other arguments in undo=, or give the undo a key template of its own.",
        "undoing move:T1 by 'move' would be that very effect",
    ),
    "undo_unfit": Code(
        5,
        "The call that was recorded does not hold what its undo needs.",
        "A guessed argument could undo something else.",
        "Map the parameter in undo=, or return the value from the tool.",
        "'release' needs hold_id, which 'hold' neither took nor returned",
    ),
    "undo_unproved": Code(
        5,
        "Nothing says how one sees that the effect is gone.",
        "An undo that only claims to have worked is no proof.",
        "Name look= and gone= in undo=, or see to it by hand.",
        "undo by 'release' names no look",
    ),
    "undo_unsettled": Code(
        5,
        "It is not known whether the effect happened.",
        "Undoing what never happened is an effect too.",
        "Settle it first: plangate effects reconcile KEY, or effects settle KEY.",
        "refund:ORD-1 is unknown",
    ),
    "undo_used": Code(
        5,
        "The identity of this undo was used before the effect happened.",
        "The ledger would reuse the earlier result, and this effect would stay.",
        "Give the undo a key that names the very effect, or see to it by hand.",
        "release:seat-1 was done before hold:seat-1",
    ),
}
