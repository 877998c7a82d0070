"""Findings about what a plan would do: layers 4 to 7, in words for a newcomer.

Each row: what is wrong, why it matters, what to do, and the severity where it is not an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

BUSINESS: Mapping[str, tuple[str, ...]] = {
    "policy_denied": (
        "Policy does not let this principal use the tool.",
        "What no rule allows is denied.",
        "Do without it; the policy's owner can add a rule.",
    ),
    "missing_ancestor": (
        "Policy demands a step before this one, and the plan has none.",
        "The protected act would happen without it.",
        "Add the step and let this one wait for it.",
    ),
    "wrong_order": (
        "Policy demands a step before this one; it is there, but need not settle first.",
        "The protected act could happen before it.",
        "Add it to `after`.",
    ),
    "skippable_guard": (
        "A step that policy demands can be skipped.",
        "Then the protected act would happen without it.",
        "Remove its `when` and its skip routes.",
    ),
    "missing_follow_up": (
        "Policy demands a step after this one, and there is none.",
        "Nobody would look at the result.",
        "Add the step after this one.",
    ),
}
EFFECTS: Mapping[str, tuple[str, ...]] = {
    "effect_understated": (
        "The planner claims a milder effect than the contract's.",
        "It plans with a wrong picture of what the call does.",
        "Leave `declared` out or correct it.",
    ),
    "missing_scope": (
        "The principal lacks a right that the tool needs.",
        "The call would be refused.",
        "Do without it, or ask for the right.",
    ),
    "unproved_effect": (
        "An irreversible or external act without a check that looks at the world again.",
        "The tool's own word is no evidence that it happened.",
        "Add a check of level L2 with a read-only tool.",
    ),
    "acting_check": (
        "A check uses a tool that acts.",
        "Looking must not change anything.",
        "Use a read-only tool.",
    ),
    "parallel_claim": (
        "Two steps that may run at the same time write one thing.",
        "The last one wins, and nobody knows which that is.",
        "Let one wait for the other with `after`.",
    ),
    "untrusted_flow": (
        "Untrusted data reaches an argument that must be trusted.",
        "Whoever wrote that data would choose whom we pay or write to.",
        "Take the value from an input, a trusted tool or a person.",
    ),
    "confidential_flow": (
        "Confidential data reaches an argument that is not cleared for it.",
        "It would leave the circle that may see it.",
        "Leave the value out or use a cleared tool.",
    ),
}
BUDGET: Mapping[str, tuple[str, ...]] = {
    "over_usd": (
        "The plan will probably cost more than allowed.",
        "The run would stop half-way.",
        "Cut, split, or raise the budget.",
    ),
    "unknown_price": (
        "A cost limit is set and a price is not known.",
        "An unknown price is never zero.",
        "Add the price to the price overrides, or use another tool or model.",
    ),
    "over_seconds": (
        "The plan will probably take longer than allowed.",
        "The run would stop half-way.",
        "Cut, split, or run it in the background with a higher limit.",
    ),
    "over_deadline": (
        "The plan will probably not be done by its deadline.",
        "The run would stop half-way.",
        "Move the deadline or cut the plan.",
    ),
    "over_calls": (
        "The plan makes more calls than allowed.",
        "The run would stop half-way.",
        "Cut steps or raise the limit.",
    ),
    "over_tokens": (
        "The plan will probably use more tokens than allowed.",
        "The run would stop half-way.",
        "Cut, split, or raise the budget.",
    ),
}
COMPLETION: Mapping[str, tuple[str, ...]] = {
    "no_check": (
        "Nothing says when the step has succeeded, beyond the shape of its result.",
        "For an act, a result of the right shape proves nothing.",
        "Add a check to `success`.",
        "warning",
    ),
    "uncheckable": (
        "A check lacks what its level needs: L1 a rule, L2 a tool and a rule.",
        "It could never be decided.",
        "Add it, or change the level.",
    ),
    "vague_check": (
        "A check in words that nobody can measure, without a rule.",
        "It would pass or fail by mood.",
        "Write a rule with a number or a value.",
    ),
    "no_criteria": (
        "Nothing says when the goal is reached.",
        "The run could never be verified.",
        "Add a check to `success_criteria`.",
    ),
    "weak_criterion": (
        "A success criterion is weaker than the budget's `min_level`.",
        "The plan asks for more proof than it brings.",
        "Raise its level.",
    ),
    "no_evidence": (
        "A success criterion looks at no step and at no tool.",
        "It would hold whatever happened.",
        "Let its rule read `steps.<id>.output`, or give it a tool.",
    ),
    "no_abort": (
        "Nothing says when to give up.",
        "Only the budget would stop a run that goes wrong.",
        "Add an abort condition, as `run.failures > 3`.",
        "warning",
    ),
    "unrouted_failure": (
        "If this act's outcome is unknown, nobody but a person can tell, and no route says so.",
        "The run would stop at a question that the plan did not show.",
        'Add a route {"on": "unknown", "action": "ask"}, or a reconcile function to the tool.',
    ),
    "dead_step": (
        "The step changes nothing and nobody uses its result.",
        "It costs time and money for nothing.",
        "Remove it or use its output.",
        "warning",
    ),
}
