"""An agent's contracts without its world: what checking, pricing and showing a plan needs.

Neither LangGraph nor a database driver is loaded here (a test holds that).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from plangate.agent import Agent, load_agent, open_world
from plangate.budget.estimate import Known, estimate
from plangate.budget.history import subjects_of
from plangate.budget.prices import PriceBook
from plangate.cli.options import chosen_prices
from plangate.models.chat import model_name
from plangate.models.open import named_model
from plangate.models.roles import Chats, Named, roles_of
from plangate.plan.facts import Facts
from plangate.plan.layers.run import validate
from plangate.plan.policy import Policy
from plangate.plan.policy_names import need_known
from plangate.plan.tier import tier_of
from plangate.tools.registry import Registry

if TYPE_CHECKING:
    from datetime import datetime

    from plangate.budget.roles import Roles
    from plangate.cli.render_plan import Sheet
    from plangate.journal.samples import Recall
    from plangate.plan.catalog import Catalog
    from plangate.plan.issue import Report
    from plangate.plan.preview import Preview
    from plangate.plan.value.plan import Plan


@dataclass(frozen=True, kw_only=True)
class Set:
    """What is set up beside the agent itself.

    Args:
        model: The chat model of planner and model steps, or anything with its `model_name`.
        critic: That of the critic.
        judge: That of L3 checks.
        prices: What models cost; None: what the command line or the agent says.
        recall: Looks up what earlier calls took; None: nobody remembers any.
    """

    model: Any = None
    critic: Any = None
    judge: Any = None
    prices: PriceBook | None = None
    recall: Recall | None = None


@dataclass(frozen=True)
class Contracts:
    """Tools, policy and rights of one agent, at one moment."""

    agent: Agent
    now: datetime
    set: Set = Set()

    @classmethod
    def of(
        cls, name: str, now: datetime, model: str | None = None, set_up: Set | None = None
    ) -> Contracts:
        """Load an agent by name.

        Args:
            name: As for `load_agent`.
            now: The current time.
            model: `openai:<model>`, which carries model steps out if the agent names no other.
            set_up: What else there is.

        Raises:
            ConfigError: No such agent, or a model is named in another way.
        """
        chosen = set_up or Set()
        if model is not None:
            chosen = replace(chosen, model=Named(named_model(model)))
        return cls(load_agent(name), now, chosen)

    @cached_property
    def registry(self) -> Registry:
        """All its tools."""
        return Registry(self.agent.tools)

    @property
    def step_model(self) -> Any:
        """The chat model of model steps: the agent's own, else the one that plans."""
        return self.agent.step_model if self.agent.step_model is not None else self.set.model

    @cached_property
    def catalog(self) -> Catalog:
        """What the agent's own principal sees."""
        return self.registry.catalog(self.agent.rights.scopes)

    @cached_property
    def facts(self) -> Facts:
        """What validation may know, but for the estimate."""
        policy = Policy.from_toml(self.agent.policy)
        need_known(policy, self.registry.catalog().tools)
        return Facts(
            catalog=self.catalog,
            rights=self.agent.rights,
            policy=policy,
            budget=self.agent.budget,
            step_model=None if self.step_model is None else model_name(self.step_model),
            now=self.now,
        )

    @cached_property
    def book(self) -> PriceBook:
        """What models cost: as the caller or the command line says, or the agent, or the table."""
        return self.set.prices or chosen_prices() or self.agent.prices or PriceBook()

    def known(self, plan: Plan) -> Known:
        """Gather what an estimate is made from."""
        past, roles = {}, self._roles
        if self.set.recall is not None:
            since = self.now - timedelta(days=self.facts.policy.tiers.history_days)
            past = dict(self.set.recall(subjects_of(plan, self.catalog, roles), since, self.now))
        return Known(
            catalog=self.catalog,
            book=self.book,
            roles=roles,
            past=past,
            now=self.now,
            rereads=self.facts.policy.reread,
        )

    def priced(self, plan: Plan) -> Facts:
        """Return the facts with the plan's estimate."""
        return replace(self.facts, estimate=estimate(plan, self.known(plan)))

    def check(self, plan: Plan) -> Report:
        """Run all layers."""
        return validate(plan, self.priced(plan))

    def preview(self, plan: Plan, world_url: str | None = None) -> Preview:
        """Work out what a plan would do and take; nothing is called or written.

        Args:
            plan: The plan.
            world_url: The world that previews of tools may read; None: none is looked at.
        """
        from plangate.nodes.kit import LazyWorld
        from plangate.nodes.preview import previewed

        known = self.known(plan)
        facts = replace(self.facts, estimate=estimate(plan, known))
        if world_url is None:
            return previewed(plan, facts, known, self.registry)
        world = LazyWorld(lambda: open_world(self.agent.connect, world_url))
        try:
            return previewed(plan, facts, known, self.registry, look=world.open)
        finally:
            world.close()

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

    @cached_property
    def _roles(self) -> Roles:
        chats = Chats(
            planner=self.set.model,
            critic=self._named("critic"),
            judge=self._named("judge"),
            step=self.step_model,
        )
        return roles_of(chats, self.catalog, self.facts.policy)

    def _named(self, role: str) -> Any:
        """Return the chat model of a role: the agent's own, else the one that is set up."""
        own = getattr(self.agent, role)
        return own if own is not None else getattr(self.set, role)
