"""`build_preview`: what a plan would do and take, before anything runs, as often as one likes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from plangate.budget.prices import PriceBook
from plangate.cli.contracts import Contracts, Set
from plangate.plan.preview import Preview

if TYPE_CHECKING:
    from plangate.agent import Agent
    from plangate.journal.samples import Recall
    from plangate.plan.value.plan import Plan

__all__ = ["Preview", "build_preview"]


def build_preview(  # noqa: PLR0913 - the public vocabulary, keyword-only
    plan: Plan,
    agent: Agent,
    *,
    model: Any = None,
    critic: Any = None,
    judge: Any = None,
    prices: PriceBook | None = None,
    recall: Recall | None = None,
    world_url: str | None = None,
    now: datetime | None = None,
) -> Preview:
    """Work out what a plan would do: tools, arguments, cost, evidence; whether it may be approved.

    No model is called, nothing is written, and the agent's world is at most read. The same plan
    gives the same preview.

    Args:
        plan: The plan, whoever wrote it.
        agent: Its contracts and rules; it is shown as for the agent's own rights.
        model: The chat model that plans and does the model steps; it is only asked for its name.
        critic: The chat model of the critic; the same.
        judge: That of L3 checks; the same.
        prices: What models cost; None: what the agent says, else the packaged table.
        recall: What earlier calls took, as `journal.usage.of`; None: contracts and schemas alone.
        world_url: A world in which tools may look up what they will cite; None: none is opened.
        now: The time that deadlines and the age of prices are held against; None: the clock's.

    Raises:
        ConfigError: The agent's policy or the prices cannot be read.
    """
    book = prices or agent.prices or PriceBook()
    set_up = Set(model=model, critic=critic, judge=judge, prices=book, recall=recall)
    return Contracts(agent, now or datetime.now(UTC), set_up).preview(plan, world_url)
