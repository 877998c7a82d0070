"""How often a planner may answer the issues of its own draft. Pure, over the journal."""

from __future__ import annotations

from plangate.engine.triggers import tokens_rising
from plangate.journal.view import RunView
from plangate.plan.issue import Issue

MOST_REPAIRS = 2
"""Drafts after the first one, counted anew when a person asks for changes."""


def may_draft(view: RunView) -> bool:
    """True while a model's next draft could be better than its last.

    Not after `MOST_REPAIRS` repairs, not if the last two drafts had the same issues, and not if
    the last calls of models took more and more tokens.
    """
    return view.drafts <= MOST_REPAIRS and not _stuck(view) and not tokens_rising(view)


def _stuck(view: RunView) -> bool:
    refused = [_found(each.issues) for each in view.refused[-2:]]
    if view.drafts > 1 and len(refused) > 1 and refused[0] == refused[1]:
        return True
    versions = [n for n, each in view.plans.items() if each.author.kind == "planner"]
    checked = [view.validated[n] for n in versions[-2:] if n in view.validated]
    found = [_found(each.issues) for each in checked]
    return (
        view.drafts > 1
        and len(found) > 1
        and found[0] == found[1]
        and not any(each.valid for each in checked)
    )


def _found(issues: tuple[Issue, ...]) -> set[tuple[str, str | None, str]]:
    return {(issue.code, issue.step, issue.field) for issue in issues}
