from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.postgres import Emptied, fresh_database, need_server, script

settings.register_profile("plangate", deadline=None)  # no test depends on the wall clock
settings.load_profile("plangate")


@pytest.fixture(scope="session")
def postgres_server() -> str:
    """URL of a running server; it goes on running, `scripts/postgres stop` ends it."""
    need_server()
    return script("start", "--quick")


@pytest.fixture(scope="session")
def postgres_database(postgres_server: str) -> Iterator[Emptied]:
    with fresh_database(postgres_server) as url:
        database = Emptied(url)
        yield database
        database.close()


@pytest.fixture
def postgres(postgres_database: Emptied) -> str:
    """URL of an empty journal on Postgres: the tables may be there already."""
    return postgres_database.url()


@pytest.fixture
def bare_postgres(postgres_server: str) -> Iterator[str]:
    """URL of a database without any table."""
    with fresh_database(postgres_server) as url:
        yield url
