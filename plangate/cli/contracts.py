"""An agent's contracts without its world: what checking, pricing and showing a plan needs.

Neither LangGraph nor a database driver is loaded here (a test holds that).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from plangate.agent import Agent, load_agent
from plangate.budget.estimate import estimate
from plangate.budget.prices import PriceBook
from plangate.cli.options import chosen_prices
from plangate.models.chat import model_name
from plangate.models.open import named_model
from plangate.plan.facts import Facts
from plangate.plan.layers.run import validate
from plangate.plan.policy import Policy
from plangate.plan.policy_names import need_known
from plangate.plan.tier import tier_of
from plangate.tools.registry import Registry

if TYPE_CHECKING:
    from datetime import datetime

    from plangate.cli.render_plan import Sheet
    from plangate.plan.catalog import Catalog
    from plangate.plan.issue import Report
    from plangate.plan.value.plan import Plan


@dataclass(frozen=True)
class Contracts:
    """Tools, policy and rights of one agent, at one moment."""

    agent: Agent
    now: datetime
    step_model: str | None = None
    """Name of the model of model steps; None: there is none."""

    @classmethod
    def of(cls, name: str, now: datetime, model: str | None = None) -> Contracts:
        """Load an agent by name.

        Args:
            name: As for `load_agent`.
            now: The current time.
            model: `openai:<model>`, which carries model steps out if the agent names no other.

        Raises:
            ConfigError: No such agent, or a model is named in another way.
        """
        agent = load_agent(name)
        named = named_model(model) if model else None
        own = agent.step_model
        return cls(agent, now, named if own is None else model_name(own))

    @cached_property
    def catalog(self) -> Catalog:
        """What the agent's own principal sees."""
        return Registry(self.agent.tools).catalog(self.agent.rights.scopes)

    @cached_property
    def facts(self) -> Facts:
        """What validation may know, but for the estimate."""
        policy = Policy.from_toml(self.agent.policy)
        need_known(policy, Registry(self.agent.tools).catalog().tools)
        return Facts(
            catalog=self.catalog,
            rights=self.agent.rights,
            policy=policy,
            step_model=self.step_model,
            now=self.now,
        )

    @cached_property
    def book(self) -> PriceBook:
        """What models cost: as the command line says, or the agent, or the packaged table."""
        return chosen_prices() or self.agent.prices or PriceBook()

    def priced(self, plan: Plan) -> Facts:
        """Return the facts with the plan's estimate."""
        return replace(self.facts, estimate=estimate(plan, self.catalog, book=self.book))

    def check(self, plan: Plan) -> Report:
        """Run all layers."""
        return validate(plan, self.priced(plan))

    def sheet(self, plan: Plan) -> Sheet:
        """Gather what is shown of a plan."""
        from plangate.cli.render_plan import Sheet

        facts = self.priced(plan)
        tiering = tier_of(plan, facts)
        return Sheet(
            plan=plan,
            catalog=self.catalog,
            tier=tiering.tier,
            reasons=tiering.reasons,
            confirm=tiering.confirm,
            estimate=facts.estimate,
        )
