"""Findings about the form of a plan: layers 1 to 3, in words for a newcomer.

Each row: what is wrong, why it matters, what to do, and the severity where it is not an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMA: Mapping[str, tuple[str, ...]] = {
    "unparsable": (
        "The text is not JSON, or not a JSON object.",
        "Nothing else can be checked.",
        "Give one JSON object; see `plangate plan make --json` for a whole example.",
    ),
    "missing_field": (
        "A field that every plan or step has is not there.",
        "A default would be a guess.",
        "Add the field.",
    ),
    "unknown_field": (
        "A field that plans do not have.",
        "A misspelt field would otherwise be ignored, and with it what it was meant to limit.",
        "Correct its name or remove it.",
    ),
    "bad_value": (
        "A value of the wrong type, or outside the allowed ones.",
        "It cannot be read as anything definite.",
        "Correct the value.",
    ),
    "too_many_steps": (
        "More steps than one plan may have.",
        "Nobody can review it, and it may be a runaway planner.",
        "Split the goal.",
    ),
    "no_steps": ("The plan has no steps.", "It can reach nothing.", "Add a step."),
    "duplicate_id": (
        "Two things have one id.",
        "References and approvals would be ambiguous.",
        "Give each its own id.",
    ),
    "reserved_id": (
        "A step id that has a meaning of its own in references or conditions.",
        "`${inputs.x}` could mean two things.",
        "Choose another id, as S1.",
    ),
    "empty_objective": (
        "A step does not say what it is for.",
        "A person approves it by that line.",
        "Write the objective in one line.",
    ),
    "incomplete_step": (
        "A step lacks what its kind needs: a tool step a tool, a human step a question.",
        "It cannot run.",
        "Add it, or change the kind.",
    ),
}
GRAPH: Mapping[str, tuple[str, ...]] = {
    "unknown_step": (
        "`after`, a route or a compensation names a step that is not in the plan.",
        "The step would wait forever, or a failure would lead nowhere.",
        "Correct the id or add the step.",
    ),
    "cycle": (
        "Steps wait for each other in a circle.",
        "None of them could ever start.",
        "Remove one of the dependencies.",
    ),
    "unreachable_step": (
        "A step can never start, because something it needs never can.",
        "It will never run.",
        "Repair what it waits for.",
    ),
    "impossible_join": (
        "A join asks for more predecessors than the step has.",
        "It can never be met.",
        "Lower n or add predecessors.",
    ),
    "fallback_to_itself": (
        "A failure leads back to the step that failed, or to one that waits for it.",
        "It would go round for ever, or never start.",
        "Name another step.",
    ),
    "route_without_step": (
        "A fallback or compensation names no step.",
        "The failure would lead nowhere.",
        "Name the step that takes over.",
    ),
    "not_ancestor": (
        "Something is read from a step that need not have settled by then.",
        "Its value may not exist yet.",
        "Add the step to `after`.",
    ),
}
TOOLS: Mapping[str, tuple[str, ...]] = {
    "unknown_tool": (
        "No tool has this name.",
        "It cannot be called, and is never replaced by a similar one.",
        "Use a tool of the catalog.",
    ),
    "forbidden_tool": (
        "The tool exists, but not for this principal.",
        "The run acts with the principal's rights.",
        "Do without it, or ask for the right.",
    ),
    "version_drift": (
        "The step was planned against another version of the tool's contract.",
        "Arguments and effect may mean something else now.",
        "Plan the step again against today's version.",
    ),
    "missing_argument": (
        "A required argument is not given.",
        "The call would fail.",
        "Add the argument.",
    ),
    "surplus_argument": (
        "An argument that the tool does not have.",
        "It would be dropped or refused.",
        "Remove it or correct its name.",
    ),
    "wrong_type": (
        "A literal of the wrong type.",
        "The call would fail.",
        "Give a value of the right type.",
    ),
    "out_of_range": (
        "A literal outside the allowed values.",
        "The call would fail.",
        "Give a value in range.",
    ),
    "unknown_reference": (
        "A reference to something that does not exist.",
        "There would be no value.",
        "Refer to a step of the plan or to an input.",
    ),
    "bad_reference_path": (
        "A reference names a field that the output does not have.",
        "There would be no value.",
        "Correct the path.",
    ),
    "reference_type": (
        "What a reference gives is of another type than what the argument takes.",
        "The call would fail.",
        "Refer to a value of the right type.",
    ),
    "reference_gap": (
        "What a reference gives may be absent, null or out of range.",
        "The step fails if it is; real values are checked again before the call.",
        "Make sure by a condition, or refer to something that is always there.",
        "warning",
    ),
    "embedded_reference": (
        "A reference inside a longer string.",
        "References fill a whole value; text is never built from what a tool returned.",
        'Write the reference alone: "${S1.id}".',
    ),
    "unsourced_argument": (
        "A literal that comes from nowhere: not from inputs, policy, schema or a step.",
        "A planner may have invented it.",
        "Refer to an input or an output, or add it to the policy's constants.",
        "warning",
    ),
    "unchecked_shape": (
        "A schema says less than can be checked.",
        "A wrong value may pass.",
        "Use object, array, scalars, enum and nullable in the tool's schema.",
        "warning",
    ),
    "bad_input": (
        "The inputs do not fit their schema.",
        "Every reference to them is typed by it.",
        "Correct the input or the schema.",
    ),
    "bad_rule": (
        "A condition does not compile against the values that it names.",
        "It could never be judged.",
        "Correct the rule.",
    ),
    "unchecked_rule": (
        "A condition uses a value of unknown type.",
        "A comparison with the wrong type is silently false.",
        "Give the tool's output a type.",
        "warning",
    ),
    "not_supported": (
        "Something that this version does not run.",
        "It is refused, not ignored.",
        "Write the plan without it.",
    ),
    "bad_attempts": (
        "A claimed number of attempts outside 1 to 3.",
        "More than three tries of one call help nobody.",
        "Say 1, 2 or 3, or leave it out: the contract decides.",
    ),
    "bad_timeout": (
        "A claimed time-out that is not above 0 and at most a day.",
        "The step would never or always time out.",
        "Correct it, or leave it out: the contract decides.",
    ),
    "claim_differs": (
        "What the planner claims about the tool is not what its contract says.",
        "The contract holds; the claim shows a misunderstanding.",
        "Leave `declared` out or correct it.",
        "warning",
    ),
    "unknown_error_code": (
        "A route for an error code that the tool does not declare.",
        "It may never be taken.",
        "Use an outcome class or a code of the tool's contract.",
        "warning",
    ),
}
