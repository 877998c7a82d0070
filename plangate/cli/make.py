"""A plan without a run: filled from a template, or drafted by a model and checked in rounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plangate.cli.terminal import say
from plangate.plan.errors import PlanRejected
from plangate.plan.templates import Template, choose

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plangate.cli.contracts import Contracts
    from plangate.journal.events import ModelCalled
    from plangate.plan.issue import Issue
    from plangate.plan.value.plan import Plan

_GOAL_ID = "unset"
"""Of a plan that no run has taken up; not part of its content hash."""

_ROUNDS = 3


def filled(contracts: Contracts, goal: str, inputs: Mapping[str, Any], *, task: str) -> Plan:
    """Fill the template that is meant; say so on stderr where it leaves nearly all open.

    Raises:
        ConfigError: No template, no such template, several, or wrong inputs.
    """
    templates = [Template.from_yaml(text) for text in contracts.agent.templates]
    template = choose(templates, task)
    if template.fixes_little:
        say(f"warning: {template.fixes_little}")
    return template.fill(
        goal,
        inputs,
        _GOAL_ID,
        catalog_hash=contracts.catalog.content_hash,
        policy_hash=contracts.facts.policy.content_hash,
    )


def drafted(
    contracts: Contracts,
    goal: str,
    inputs: Mapping[str, Any],
    *,
    model: str,
    base_url: str | None,
) -> Plan:
    """Let a model draft, and answer the issues of its own draft a few times.

    Returns:
        The first valid plan, else the last one.

    Raises:
        ConfigError: The model cannot be opened.
        ModelFailed: It gave no usable answer.
        PlanRejected: No draft could be compiled to a plan.
    """
    from plangate.graph.bridge import run_blocking
    from plangate.models.open import open_model
    from plangate.models.planning import Brief, draft_plan

    chat = open_model(model, base_url=base_url)
    made: Plan | None = None
    issues: tuple[Issue, ...] = ()
    for _ in range(_ROUNDS):
        brief = Brief(
            goal=goal,
            goal_id=_GOAL_ID,
            inputs=inputs,
            catalog=contracts.catalog,
            policy=contracts.facts.policy,
            budget=contracts.agent.budget,
            issues=issues,
        )
        got = run_blocking(draft_plan(chat, brief, book=contracts.book, on_call=_tell))
        issues = got.issues
        if got.plan is not None:
            made, report = got.plan, contracts.check(got.plan)
            if report.valid:
                return made
            issues = report.issues
    if made is None:
        raise PlanRejected(issues, hint="Try another model, or a template.")
    return made


def _tell(called: ModelCalled) -> None:
    cost = "unknown" if called.usd is None else f"{called.usd:f}"
    say(
        f"{called.model}: {called.input_tokens} tokens in, {called.output_tokens} out, "
        f"{cost} USD, {called.latency_s:.1f} s {called.error_code}".rstrip()
    )
