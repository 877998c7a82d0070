"""What every node of one agent shares; built once by the door, passed in, never global."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from random import random
from typing import Any, NamedTuple

from langgraph.config import get_stream_writer

from plangate.budget.estimate import Known, Spent, estimate
from plangate.budget.history import subjects_of
from plangate.budget.meter import Day, Meter, Steps
from plangate.budget.prices import PriceBook
from plangate.engine.authorizer import Authorizer, RecordedRights, rights_now
from plangate.engine.bench import Bench
from plangate.engine.classify import redact
from plangate.engine.denials import Denials
from plangate.engine.judging import Judge
from plangate.engine.working import StepModel
from plangate.journal.clock import not_before
from plangate.journal.plans import plan_of
from plangate.journal.recorded import Recorded
from plangate.journal.samples import Past, Recall
from plangate.journal.session import Session
from plangate.journal.view import RunView
from plangate.models.chat import model_name
from plangate.models.roles import Chats, roles_of
from plangate.nodes.raised import raised
from plangate.nodes.worked import worked_before_s
from plangate.plan.catalog import Catalog
from plangate.plan.errors import ConfigError, PlangateError
from plangate.plan.facts import Facts, History, PlanEstimate, Rights
from plangate.plan.limits import in_force, own_caps
from plangate.plan.outcome import OVER
from plangate.plan.policy import Policy
from plangate.plan.repair import RepairRule
from plangate.plan.templates import Template
from plangate.plan.value.plan import Budget, Plan
from plangate.tools.credentials import Credentials
from plangate.tools.registry import Registry


@dataclass(slots=True)
class LazyWorld:
    """The world of an agent, opened at the first tool call, once, off the event loop."""

    connect: Callable[[], Any]
    _opened: list[Any] = field(default_factory=list)
    # Of threads, not of asyncio: one agent serves callers on several event loops at once.
    _lock: threading.Lock = field(default_factory=threading.Lock)

    async def get(self) -> Any:
        """Return what `connect` gave.

        Raises:
            ConfigError: It could not be opened; the run can go on once it can.
        """
        return self._opened[0] if self._opened else await asyncio.to_thread(self.open)

    def open(self) -> Any:
        """Return the same; waits for it."""
        with self._lock:
            if not self._opened:
                try:
                    self._opened.append(self.connect())
                except PlangateError:
                    raise
                except Exception as exc:
                    said = redact(f"{type(exc).__name__}: {exc}")
                    raise ConfigError(
                        f"the agent's world cannot be opened: {said}",
                        hint="Check its URL and that it is there; then resume the run.",
                    ) from exc
            return self._opened[0]

    def close(self) -> None:
        """Close the world if it was opened and can be closed."""
        for world in self._opened:
            if hasattr(world, "close"):
                world.close()
        self._opened.clear()


def _no_history(**_: object) -> Mapping[str, int]:
    return {}


def spent_by(view: RunView) -> Spent:
    """Return what a run has used, and for which steps."""
    ended = (step for step, seen in view.steps.items() if seen.status in OVER)
    return Spent(view.spent_usd, view.tokens, frozenset(ended))


class Models(NamedTuple):
    """Chat models as the engine asks them; None: there is none."""

    step: StepModel | None
    judge: Judge | None


def _no_past(*_: object) -> Past:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kit:
    """The agent's contracts, rules and services.

    Args:
        model: A LangChain chat model for the planner, or None: templates only.
        step_model: A chat model that carries model steps out, or None: no plan can have any.
        critic: Another chat model for the critic, or None: the critic is left out, and says so.
        judge: Another chat model for checks of level L3, or None: a person decides them.
        verified: As `plangate.journal.verified.VerifiedRuns.counts`: past successes.
        recall: As `plangate.journal.usage.Usages.of`: what earlier calls took.
        authorizer: Knows what a principal may do now.
        credentials: Gives credentials for one call at a time.
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
    step_model: Any = None
    critic: Any = None
    judge: Any = None
    verified: Callable[..., Mapping[str, int]] = _no_history
    recall: Recall = _no_past
    monotonic: Callable[[], float] = time.monotonic
    jitter: Callable[[], float] = random
    parallel: int = 64
    authorizer: Authorizer = field(default_factory=RecordedRights)
    credentials: Credentials | None = None
    held: Rights | None = None
    """What the principal of one run may do now; see `acting_for`."""

    async def acting_for(self, session: Session) -> Kit:
        """Return the kit with the rights that the run's principal has at this moment.

        Its time is not before what the run has recorded, whatever this machine's clock says.

        Raises:
            Denied: They are not known, so there are none.
        """
        now = not_before(self.now, session.run.updated_at)
        return replace(self, now=now, held=await rights_now(self.authorizer, session))

    def rights(self, record: Recorded) -> Rights:
        """Return the rights of the run's principal: today's, else those it was started with."""
        return self.held or record.run.principal

    def catalog(self, record: Recorded) -> Catalog:
        """Return the contracts that the run's principal sees now."""
        return self.registry.catalog(self.rights(record).scopes)

    def plan(self, session: Session, version: int | None = None) -> Plan:
        """Load a plan version; None: the current one.

        Raises:
            Unreadable, Damaged: As `plangate.journal.plans.plan_of`.
        """
        return plan_of(session, version)

    def estimate(self, record: Recorded, plan: Plan) -> PlanEstimate:
        """Price what is to come of a plan, with what the run has cost so far."""
        return estimate(plan, self.known(plan, self.catalog(record)), spent_by(record.view))

    def known(self, plan: Plan, catalog: Catalog) -> Known:
        """Gather what an estimate is made from; earlier runs are asked for in one bounded query."""
        chats = Chats(
            planner=self.model, critic=self.critic, judge=self.judge, step=self.step_model
        )
        roles = roles_of(chats, catalog, self.policy)
        until = self.now()
        since = until - timedelta(days=self.policy.tiers.history_days)
        past = self.recall(subjects_of(plan, catalog, roles), since, until)
        return Known(
            catalog=catalog,
            book=self.book,
            roles=roles,
            past=past,
            now=until,
            rereads=self.policy.reread,
        )

    def facts(self, record: Recorded, priced: PlanEstimate | None = None) -> Facts:
        """Gather what validation may know."""
        catalog = self.catalog(record)
        return Facts(
            catalog=catalog,
            rights=self.rights(record),
            policy=self.policy,
            budget=self.budget,
            estimate=priced,
            history=self.history(catalog),
            denied=Denials(record, self.registry).now(),
            turned_down=record.view.turned_down,
            step_model=step_model_name(self),
            raised=raised(record.view.raised),
            now=self.now(),
        )

    def history(self, catalog: Catalog) -> History:
        """Return the past successes that count: under these very contracts and rules, not too old.

        Args:
            catalog: The contracts that the run's principal sees.
        """
        until = self.now()
        found = self.verified(
            catalog_hash=catalog.content_hash,
            policy_hash=self.policy.content_hash,
            since=until - timedelta(days=self.policy.tiers.history_days),
            until=until,
        )
        return History(verified=dict(found))

    def limits(self, session: Session, said: Budget) -> Budget:
        """Return the limits of a run, see `plangate.plan.limits.in_force`."""
        by_people = raised(session.view.raised)
        return in_force(said, agent=self.budget, raised=by_people, policy=self.policy)

    def meter(self, session: Session, limits: Budget, plan: Plan | None = None) -> Meter:
        """Return the limits of a run and of the steps of a plan, with what its journal says."""
        view, caps = session.view, self.policy.limits
        return Meter(
            self.limits(session, limits),
            clock=self.now,
            spent=view.spent,
            steps=Steps(caps.step, view.by_step, {} if plan is None else own_caps(plan)),
            day=Day(session.purse, caps.day),
        )

    def models(self) -> Models:
        """Return the models of model steps and of L3 checks as the engine asks them."""
        return Models(
            None if self.step_model is None else StepModel(self.step_model, self.book),
            None if self.judge is None else Judge(self.judge, self.book),
        )

    def bench(
        self, session: Session, plan: Plan, report: Callable[[Any], None] | None = None
    ) -> Bench:
        """Put a plan version on the bench.

        Args:
            session: The run.
            plan: The version.
            report: Told of progress; None: it goes to LangGraph's `custom` stream.
        """
        view, models = session.view, self.models()
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
            meter=self.meter(session, plan.budget, plan),
            now=self.now,
            jitter=self.jitter,
            report=report or get_stream_writer(),
            authorizer=self.authorizer,
            credentials=self.credentials,
            step_model=models.step,
            judge=models.judge,
            monotonic=self.monotonic,
            started_s=self.monotonic()
            - worked_before_s(session, plan, self.limits(session, plan.budget)),
        )


def step_model_name(kit: Kit) -> str | None:
    """Return the name of the model of model steps; None: there is none."""
    return None if kit.step_model is None else model_name(kit.step_model)
