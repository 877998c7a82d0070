from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from shutil import copy

import pytest

from plangate.journal.journal import Journal
from plangate.journal.lease import Lease
from plangate.journal.owner import owner_name
from plangate.journal.runs import Run
from plangate.plan.facts import Rights


@dataclass
class FakeClock:
    now: datetime = datetime(2026, 1, 31, 8, 15, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def jump(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(scope="session")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("empty") / "journal.db"
    Journal.open(f"sqlite:///{path}").close()
    return path


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, empty: Path, tmp_path: Path) -> str:
    """An empty journal on each database that we support."""
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres"))
    copy(empty, tmp_path)  # a tenth of the time of making one
    return f"sqlite:///{tmp_path}/journal.db"


@pytest.fixture
def journal(url: str, clock: FakeClock) -> Iterator[Journal]:
    with Journal.open(url, clock=clock) as made:
        yield made


@pytest.fixture(params=["sqlite", "postgres"])
def fresh_url(request: pytest.FixtureRequest, empty: Path, tmp_path: Path) -> Callable[[], str]:
    """An empty journal at each call, which on Postgres ends the one before."""
    if request.param == "postgres":
        made: Callable[[], str] = request.getfixturevalue("postgres_database").url
        return made
    numbers = count()

    def make() -> str:
        path = tmp_path / f"journal-{next(numbers)}.db"
        copy(empty, path)
        return f"sqlite:///{path}"

    return make


@pytest.fixture
def new_run(journal: Journal) -> Callable[..., Run]:
    def make(run_id: str = "r", **said: str) -> Run:
        plain = {"goal_id": "g", "goal": "Refund order 1", "thread_id": run_id, "agent": "refund"}
        rights = Rights(principal="ann", roles=("clerk",), scopes=("pay",), tenant="acme")
        return journal.runs.create(Run(run_id=run_id, principal=rights, **{**plain, **said}))

    return make


@pytest.fixture
def lease(journal: Journal, new_run: Callable[..., Run]) -> Lease:
    """The hold of a first owner on run `r`, for 30 seconds."""
    new_run()
    return journal.runs.acquire("r", owner_name(), 30)
