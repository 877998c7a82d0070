"""One round of planning by a model: what it is told, what it wrote, and what came of that.

Without a run and without a journal, so that the planner node and `plangate plan make` ask alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

from plangate.models.call import ask_model
from plangate.models.chat import model_name
from plangate.models.draft import compile_draft
from plangate.models.form import form_of
from plangate.models.render import render_catalog, render_issues, render_policy
from plangate.models.wire import PlanDraft
from plangate.plan.secrets import masked
from plangate.plan.value.plan import Author, Budget, Plan
from plangate.prompts.loader import load

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plangate.models.asking import Metered
    from plangate.plan.catalog import Catalog
    from plangate.plan.issue import Issue
    from plangate.plan.policy import Policy
    from plangate.plan.value.frozen import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Brief:
    """What a planner is told."""

    goal: str
    goal_id: str
    inputs: Mapping[str, Json]
    catalog: Catalog
    policy: Policy
    budget: Budget
    issues: tuple[Issue, ...] = ()
    """Findings about its last draft."""

    feedback: str = ""
    """What a person asked to be changed, word for word."""


@dataclass(frozen=True, slots=True)
class Drafted:
    """One draft, as it was written and as it was understood."""

    text: str
    plan: Plan | None
    issues: tuple[Issue, ...] = ()
    """Why there is no plan."""


async def draft_plan(chat: Any, brief: Brief, **metered: Unpack[Metered]) -> Drafted:
    """Ask a model for a plan, once.

    Args:
        chat: Any LangChain chat model.
        brief: What it is told.
        **metered: How the call is recorded, priced and limited.

    Raises:
        ModelFailed: No answer, or a refusal.
        BudgetExceeded: The call would pass a limit; it was not made.
    """
    prompt = load("planner")
    values: dict[str, Json] = {
        "catalog": render_catalog(brief.catalog),
        "policy": render_policy(brief.policy),
        "goal": brief.goal,
        "inputs": brief.inputs,
        "issues": render_issues(brief.issues),
        "feedback": brief.feedback,
    }
    reply = await ask_model(
        chat, prompt, values, role="planner", schema=form_of(PlanDraft), **metered
    )
    text = masked(reply.text)
    compiled = compile_draft(
        reply.value if reply.value is not None and text == reply.text else text,
        brief.catalog,
        goal=brief.goal,
        goal_id=brief.goal_id,
        inputs=brief.inputs,
        budget=brief.budget,
        policy_hash=brief.policy.content_hash,
        author=Author(kind="planner", name=model_name(chat), prompt_sha256=prompt.sha256),
    )
    if isinstance(compiled, Plan):
        return Drafted(text, compiled)
    return Drafted(text, None, compiled)
