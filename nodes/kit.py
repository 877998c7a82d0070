"""What every node of one agent shares; built once by the door, passed in, never global."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from random import random
from typing import Any

from langgraph.config import get_stream_writer

from plangate.budget.estimate import estimate
from plangate.budget.meter import Meter
from plangate.budget.prices import PriceBook
from plangate.engine.bench import Bench
from plangate.journal.session import Session
from plangate.plan.catalog import Catalog
from plangate.plan.facts import Facts, History, PlanEstimate, Rights
from plangate.plan.policy import Policy
from plangate.plan.repair import RepairRule
from plangate.plan.templates import Template
from plangate.plan.value.frozen import parse
from plangate.plan.value.plan import Budget, Plan
from plangate.tools.registry import Registry


@dataclass(slots=True)
class LazyWorld:
    """The world of an agent, opened at the first tool call, once, off the event loop."""

    connect: Callable[[], Any]
    _opened: list[Any] = field(default_factory=list)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def get(self) -> Any:
        """Return what `connect` gave."""
        if not self._opened:
            async with self._lock:
                if not self._opened:
                    self._opened.append(await asyncio.to_thread(self.connect))
        return self._opened[0]

    def close(self) -> None:
        """Close the world if it was opened and can be closed."""
        for world in self._opened:
            if hasattr(world, "close"):
                world.close()
        self._opened.clear()


@dataclass(frozen=True, slots=True, kw_only=True)
class Kit:
    """The agent's contracts, rules and services.

    Args:
        model: A LangChain chat model for the planner, or None: templates only.
        critic: Another chat model for the critic, or None: the critic is left out, and says so.
        history: Past verified runs; see `plangate.plan.tier`.
    """

    registry: Registry
    policy: Policy
    templates: tuple[Template, ...]
    repairs: tuple[RepairRule, ...]
    world: LazyWorld
    book: PriceBook
    budget: Budget
    now: Callable[[], datetime]
    model: Any = None
    critic: Any = None
    history: Callable[[], History] = History
    jitter: Callable[[], float] = random
    parallel: int = 64

    def rights(self, session: Session) -> Rights:
        """Return the principal of the run, as recorded when it started."""
        return session.run.principal

    def catalog(self, session: Session) -> Catalog:
        """Return the contracts that the run's principal sees now."""
        return self.registry.catalog(self.rights(session).scopes)

    def plan(self, session: Session, version: int | None = None) -> Plan:
        """Load a plan version; None: the current one."""
        proposed = session.view.plans[version or session.view.version]
        return parse(Plan, session.load(proposed.plan))

    def estimate(self, session: Session, plan: Plan) -> PlanEstimate:
        """Price a plan, with what planning has cost so far."""
        view = session.view
        return estimate(
            plan,
            self.catalog(session),
            book=self.book,
            spent_usd=view.spent_usd,
            spent_tokens=view.tokens,
        )

    def facts(self, session: Session, priced: PlanEstimate | None = None) -> Facts:
        """Gather what validation may know."""
        return Facts(
            catalog=self.catalog(session),
            rights=self.rights(session),
            policy=self.policy,
            estimate=priced,
            history=self.history(),
            now=self.now(),
        )

    def meter(self, session: Session, limits: Budget) -> Meter:
        """Return the limits of a run, with what its journal says is spent."""
        view = session.view
        return Meter(
            self.policy.capped(limits),
            clock=self.now,
            spent_usd=view.spent_usd,
            spent_tokens=view.tokens,
            tool_calls=view.tool_calls,
            model_calls=view.model_calls,
        )

    def bench(self, session: Session, plan: Plan) -> Bench:
        """Put a plan version on the bench; progress goes to LangGraph's `custom` stream."""
        view = session.view
        return Bench(
            plan=plan,
            catalog=self.catalog(session),
            tools=self.registry,
            policy=self.policy,
            rights=self.rights(session),
            estimate=view.validated[plan.version].estimate
            if plan.version in view.validated
            else self.estimate(session, plan),
            session=session,
            world=self.world,
            meter=self.meter(session, plan.budget),
            now=self.now,
            jitter=self.jitter,
            report=get_stream_writer(),
        )
