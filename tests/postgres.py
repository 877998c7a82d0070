"""A Postgres server for tests, by `scripts/postgres`, and databases on it."""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "scripts" / "postgres"
REQUIRED = os.environ.get("PLANGATE_TEST_POSTGRES") == "required"


def script(*words: str, **environment: str) -> str:
    said = subprocess.run(
        [SCRIPT, *words],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, **environment},
    )
    return said.stdout.strip()


def need_server() -> None:
    """Skip, loudly, where there is no Postgres; where it is required, its absence is a failure."""
    installed = any(Path("/usr/lib/postgresql").glob("*/bin/initdb")) or shutil.which("pg_config")
    if not installed and not REQUIRED:
        pytest.skip("NO POSTGRES HERE: half of the journal is untested (apt install postgresql)")


@contextmanager
def fresh_database(server_url: str) -> Iterator[str]:
    """Make an empty database and drop it afterwards, whoever is still connected."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    with admin(server_url) as tx:
        tx.execute(f"CREATE DATABASE {name}")
    yield server_url.rpartition("/")[0] + f"/{name}"
    with admin(server_url) as tx:
        tx.execute(f"DROP DATABASE {name} WITH (FORCE)")


class Emptied:
    """One database of a test session; `url` gives it without rows."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection = psycopg.connect(url, autocommit=True)

    def url(self) -> str:
        """Delete all rows but those that hold a schema's version."""
        found = self._connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
            " AND tablename NOT IN ('meta', 'checkpoint_migrations') ORDER BY 1"
        )
        for (table,) in found.fetchall():
            self._connection.execute(f"DELETE FROM {table}")  # noqa: S608 (ours)
        return self._url

    def close(self) -> None:
        self._connection.close()


@contextmanager
def admin(url: str) -> Iterator[psycopg.Connection[Any]]:
    """Give a connection outside of all transactions."""
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection
