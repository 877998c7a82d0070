"""`plangate policy`: check a policy file, and ask what a policy says about a plan."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from plangate.cli.options import agent_option, json_option
from plangate.cli.terminal import data_console, echo_json, line, put, say
from plangate.cli.textfile import read_text
from plangate.plan.errors import Denied

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plangate.cli.contracts import Contracts
    from plangate.plan.explain import PolicySaid


@click.group()
def policy() -> None:
    """Check policies, and see what they say about a plan."""


@policy.command()
@click.argument("file", type=click.Path(path_type=Path))
@agent_option(required=False)
def check(file: Path, agent_name: str | None) -> None:
    """Read a policy file; with --agent, also hold its names against the agent's tools."""
    from plangate.agent import load_agent
    from plangate.plan.policy import Policy
    from plangate.plan.policy_names import need_known
    from plangate.tools.registry import Registry

    rules = Policy.from_toml(read_text(file, "policy file", hint="Check the path."))
    if agent_name:
        need_known(rules, Registry(load_agent(agent_name).tools).catalog().tools)
    counts = {
        "allow": rules.allows,
        "deny": rules.denies,
        "require": rules.requires,
        "threshold": rules.thresholds,
        "quorum": rules.quorums,
        "label": rules.labels,
    }
    said = (
        ", ".join(f"{len(found)} {name}" for name, found in counts.items() if found) or "no rules"
    )
    say(f"{file}: good ({said})")
    click.echo(rules.content_hash)


@policy.command()
@click.argument("plan_file", metavar="PLAN")
@agent_option(required=True)
@click.option("--policy", "policy_file", type=click.Path(path_type=Path), help="Another policy.")
@json_option
def explain(plan_file: str, agent_name: str, policy_file: Path | None, as_json: bool) -> None:
    """Say which rule decides on each step of a plan, and who must agree. Exit 9 if one denies."""
    from plangate.cli.planfile import need_plan
    from plangate.plan.explain import explain as said_about

    contracts = _contracts(agent_name, policy_file)
    plan = need_plan(plan_file)
    said = said_about(plan, contracts.priced(plan))
    if as_json:
        echo_json(said.model_dump(mode="json"))
    else:
        put(data_console(), map(line, _lines(said)))
    if not all(each.allowed for each in said.steps):
        click.get_current_context().exit(Denied.exit_code)


def _contracts(agent: str, file: Path | None) -> Contracts:
    from dataclasses import replace

    from plangate.cli.contracts import Contracts

    found = Contracts.of(agent, datetime.now(UTC))
    if file is None:
        return found
    text = read_text(file, "policy file", hint="Check the path.")
    return replace(found, agent=replace(found.agent, policy=text))


def _lines(said: PolicySaid) -> Iterator[str]:
    for each in said.steps:
        yield f"{each.step}  {each.capability}: {'allowed' if each.allowed else 'DENIED'}"
        yield f"    by {each.by}" if each.allowed else f"    {each.by}"
        yield from (f"    requires {what}" for what in each.requires)
        yield from (f"    limit {what}" for what in each.limits)
    yield f"tier: {said.tier}"
    yield from (f"    {reason}" for reason in said.reasons)
    if said.confirm:
        yield f"    to confirm: {', '.join(said.confirm)}"
    roles = f" ({', '.join(said.quorum_roles)})" if said.quorum_roles else ""
    yield f"approvals: {said.quorum}{roles}"
    yield f"ceiling: {said.ceiling}"
