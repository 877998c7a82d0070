"""Findings about a patch, which come before the layers see the plan that it would make.

Rows as in `plangate.plan.codes_of_form`: what is wrong, why it matters, what to do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plangate.plan.issue import Issue

if TYPE_CHECKING:
    from collections.abc import Mapping

PATCH: Mapping[str, tuple[str, str, str]] = {
    "patch_changes_nothing": (
        "The patched plan says what the old one said.",
        "Running the same plan again would fail the same way.",
        "Change something, or stop.",
    ),
    "patch_conflict": (
        "Two operations say different things of one step.",
        "Which one is meant would be a guess.",
        "Say one thing of a step.",
    ),
    "patch_drops_done": (
        "A done step is replaced, and nothing says that its result no longer counts.",
        "Finished work, perhaps an effect, would vanish in silence.",
        "Invalidate the step in the same patch, or keep it.",
    ),
    "patch_duplicate_id": (
        "A new step has an id that is taken.",
        "References could mean either.",
        "Give the new step an id of its own.",
    ),
    "patch_malformed": (
        "The patch sets values that no plan can hold.",
        "The result could not be read.",
        "Correct the values that the patch sets.",
    ),
    "patch_stops": (
        "The patch asks to stop.",
        "There is no next version to run.",
        "Ask a person, or end the run.",
    ),
    "patch_uncovered_reference": (
        "Something reads a step that leaves the plan, and the patch does not say what instead.",
        "The nearest value would be a guess, and a wrong value is worse than none.",
        "Map the reference in the replacement.",
    ),
    "patch_unknown_step": (
        "The patch names a step that is not there.",
        "It was made for another version.",
        "Name a step of this version.",
    ),
    "repair_does_not_fit": (
        "A known repair cannot be applied to this step.",
        "It was written for another kind of plan.",
        "Write a repair for this kind of plan, or ask a person.",
    ),
}


def patch_issue(
    code: str, says: str, *, step: str | None = None, field: str = "", hint: str = ""
) -> Issue:
    """Return a finding about a patch; its layer is that of the graph of steps."""
    return Issue(layer=2, code=code, step=step, field=field, says=says, hint=hint or PATCH[code][2])
