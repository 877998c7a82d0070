from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from plangate.journal.journal import Journal
from plangate.journal.lease import Lease
from plangate.journal.owner import owner_name
from plangate.journal.runs import Run
from plangate.plan.facts import Rights


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/journal.db"


@pytest.fixture
def journal(url: str) -> Iterator[Journal]:
    with Journal.open(url) as made:
        yield made


@pytest.fixture
def new_run(journal: Journal) -> Callable[..., Run]:
    def make(run_id: str = "r") -> Run:
        rights = Rights(principal="ann")
        plain = {"goal_id": "g", "goal": "Refund order 1", "thread_id": "t", "agent": "refund"}
        return journal.runs.create(Run(run_id=run_id, principal=rights, **plain))

    return make


@pytest.fixture
def lease(journal: Journal, new_run: Callable[..., Run]) -> Lease:
    new_run()
    return journal.runs.acquire("r", owner_name(), 30)
