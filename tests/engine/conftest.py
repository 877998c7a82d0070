from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from plangate.budget.estimate import Known, estimate
from plangate.budget.meter import Meter, Steps
from plangate.budget.prices import PriceBook
from plangate.engine.bench import Bench
from plangate.engine.dataflow import run_plan
from plangate.engine.triggers import Halt
from plangate.journal.events import PlanProposed, PlanValidated
from plangate.journal.journal import Journal
from plangate.journal.owner import owner_name
from plangate.journal.runs import Run
from plangate.journal.session import Session
from plangate.plan.errors import PlangateError
from plangate.plan.facts import Rights
from plangate.plan.policy import Policy
from plangate.plan.value.plan import Author, Plan
from plangate.tools.registry import Registry
from plangate.tools.tool import Tool

POLICY = Policy.from_toml('schema = 1\n[[allow]]\ntool = "*"\n')
ME = Rights(principal="ann")


class NoWorld:
    async def get(self) -> Any:
        return None


@dataclass
class Lab:
    """A journal and what is needed to run plans on it without the graph."""

    journal: Journal
    runs: int = 0
    policy: Policy = POLICY
    now: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))

    def session(self, run_id: str = "") -> Session:
        if not run_id:
            self.runs += 1
            run_id = f"r{self.runs}"
            self.journal.runs.create(
                Run(
                    run_id=run_id,
                    goal_id=run_id,
                    goal="goal",
                    thread_id=run_id,
                    agent="lab",
                    principal=ME,
                )
            )
        return Session.open(self.journal, run_id, owner_name(), 15.0)

    def bench(self, session: Session, plan: Plan, tools: list[Tool]) -> Bench:
        registry = Registry(tools)
        catalog = registry.catalog(ME.scopes)
        priced = estimate(plan, Known(catalog=catalog, book=PriceBook({})))
        if not session.view.version:
            content = plan.content_hash
            session.emit(
                PlanProposed(
                    version=1,
                    plan=session.put(plan.model_dump(mode="json")),
                    content_hash=content,
                    author=plan.author,
                )
            )
            session.emit(
                PlanValidated(
                    version=1,
                    content_hash=content,
                    valid=True,
                    issues=(),
                    catalog_hash="",
                    policy_hash="",
                    tier="auto",
                    reasons=(),
                    estimate=priced,
                )
            )
        return Bench(
            plan=plan,
            catalog=catalog,
            tools=registry,
            policy=self.policy,
            rights=ME,
            estimate=priced,
            session=session,
            world=NoWorld(),
            meter=Meter(plan.budget, steps=Steps(self.policy.limits.step)),
            now=self.now,
            jitter=lambda: 0.0,
        )

    async def run(self, plan: Plan, tools: list[Tool], run_id: str = "") -> tuple[Halt, Session]:
        session = await asyncio.to_thread(self.session, run_id)
        halt = await run_plan(self.bench(session, plan, tools))
        await session.aflush()
        return halt, session


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    journal = Journal.open(f"sqlite:///{tmp_path}/journal.db")
    yield Lab(journal)
    with suppress(PlangateError):
        journal.close()


def plan_of(*steps: Any, **more: Any) -> Plan:
    return Plan(
        goal_id="g", goal="goal", task_type="t", steps=steps, author=Author(kind="template"), **more
    )
