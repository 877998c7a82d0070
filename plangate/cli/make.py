"""A plan without a run: filled from a template, or drafted by a model and checked in rounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plangate.budget.prices import PriceBook
from plangate.cli.terminal import say
from plangate.plan.errors import ConfigError, PlanRejected
from plangate.plan.templates import Template
from plangate.plan.value.plan import Author, Plan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plangate.cli.contracts import Contracts
    from plangate.journal.events import ModelCalled
    from plangate.plan.issue import Issue
    from plangate.plan.value.frozen import Json
    from plangate.prompts.loader import Prompt

_GOAL_ID = "unset"
"""Of a plan that no run has taken up; not part of its content hash."""

_ROUNDS = 3


def filled(contracts: Contracts, goal: str, inputs: Mapping[str, Any], *, task: str) -> Plan:
    """Fill the template that is meant.

    Raises:
        ConfigError: No template, no such template, several, or wrong inputs.
    """
    templates = [Template.from_yaml(text) for text in contracts.agent.templates]
    meant = [each for each in templates if task in ("", each.template)]
    if len(meant) != 1:
        names = ", ".join(each.template for each in templates) or "none"
        what = f"no template named {task!r}" if task else f"{len(meant)} templates could be meant"
        raise ConfigError(what, hint=f"Name one with --task; there are: {names}.")
    return meant[0].fill(
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
    from plangate.models.chat import model_name
    from plangate.models.draft import compile_draft
    from plangate.models.open import open_model
    from plangate.prompts.loader import load

    chat, prompt = open_model(model, base_url=base_url), load("planner")
    made: Plan | None = None
    issues: tuple[Issue, ...] = ()
    for _ in range(_ROUNDS):
        got = compile_draft(
            _asked(chat, prompt, contracts, {"goal": goal, "inputs": inputs}, issues),
            contracts.catalog,
            goal=goal,
            goal_id=_GOAL_ID,
            inputs=inputs,
            budget=contracts.agent.budget,
            policy_hash=contracts.facts.policy.content_hash,
            author=Author(kind="planner", name=model_name(chat), prompt_sha256=prompt.sha256),
        )
        if not isinstance(got, Plan):
            issues = got
            continue
        made, report = got, contracts.check(got)
        if report.valid:
            return made
        issues = report.issues
    if made is None:
        raise PlanRejected(issues, hint="Try another model, or a template.")
    return made


def _asked(
    chat: Any,
    prompt: Prompt,
    contracts: Contracts,
    given: Mapping[str, Json],
    issues: tuple[Issue, ...],
) -> str:
    from plangate.graph.bridge import run_blocking
    from plangate.models.call import ask_model
    from plangate.models.draft import PlanDraft
    from plangate.models.render import render_catalog, render_issues, render_policy

    values: dict[str, Json] = {
        **given,
        "catalog": render_catalog(contracts.catalog),
        "policy": render_policy(contracts.facts.policy),
        "issues": render_issues(issues),
        "feedback": "",
    }
    asking = ask_model(
        chat, prompt, values, role="planner", schema=PlanDraft, book=PriceBook({}), on_call=_tell
    )
    return run_blocking(asking).text


def _tell(called: ModelCalled) -> None:
    cost = "unknown" if called.usd is None else f"{called.usd:f}"
    say(
        f"{called.model}: {called.input_tokens} tokens in, {called.output_tokens} out, "
        f"{cost} USD, {called.latency_s:.1f} s {called.error_code}".rstrip()
    )
