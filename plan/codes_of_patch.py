"""Findings about a patch, which come before the layers see the plan that it would make.

Their layer is 2, the graph of steps: a patch changes that graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plangate.plan.code import Code

if TYPE_CHECKING:
    from collections.abc import Mapping

PATCH: Mapping[str, Code] = {
    "patch_changes_nothing": Code(
        2,
        "The patched plan says what the old one said.",
        "Running the same plan again would fail the same way.",
        "Change something, or stop.",
        "the patched plan says what the old said",
    ),
    "patch_conflict": Code(
        2,
        "Two operations say different things of one step.",
        "Which one is meant would be a guess.",
        "Say one thing of a step.",
        "both keep and replace of 'S2'",
    ),
    "patch_drops_done": Code(
        2,
        "A done step is replaced, and nothing says that its result no longer counts.",
        "Finished work, perhaps an effect, would vanish in silence.",
        "Invalidate the step in the same patch, or keep it.",
        "S2 is done, and nothing says that its result no longer counts",
    ),
    "patch_duplicate_id": Code(
        2,
        "A new step has an id that is taken.",
        "References could mean either.",
        "Give the new step an id of its own.",
        "id 'S3' is taken",
    ),
    "patch_malformed": Code(
        2,
        "The patch sets values that no plan can hold.",
        "The result could not be read.",
        "Correct the values that the patch sets.",
        "the patched plan is malformed at steps.0.id",
    ),
    "patch_stops": Code(
        2,
        "The patch asks to stop.",
        "There is no next version to run.",
        "Ask a person, or end the run.",
        "the patch stops the run: a person must look",
    ),
    "patch_too_late": Code(
        2,
        "Something is put before a step that is done.",
        "What ran before it is history; a plan that says otherwise would pass checks that it"
        " failed.",
        "Invalidate the step in the same patch, or leave its order alone.",
        "S3 is done; what stood before it is history",
    ),
    "patch_uncovered_reference": Code(
        2,
        "Something reads a step that leaves the plan, and the patch does not say what instead.",
        "The nearest value would be a guess, and a wrong value is worse than none.",
        "Map the reference in the replacement.",
        "args reads 'S2.colour', which leaves the plan and has no successor",
    ),
    "patch_unknown_step": Code(
        2,
        "The patch names a step that is not there.",
        "It was made for another version.",
        "Name a step of this version.",
        "no step 'S7' in the plan",
    ),
    "repair_does_not_fit": Code(
        2,
        "A known repair cannot be applied to this step.",
        "It was written for another kind of plan.",
        "Write a repair for this kind of plan, or ask a person.",
        "S3 has no argument 'order_id'",
    ),
}
