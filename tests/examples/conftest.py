from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from plangate.examples.refund.world import RefundWorld, connect


@pytest.fixture(scope="session")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("seeded") / "world.db"
    connect(f"sqlite:///{path}").close()
    return path


@pytest.fixture
def world_url(tmp_path: Path, seeded: Path) -> str:
    shutil.copy(seeded, tmp_path / "world.db")
    return f"sqlite:///{tmp_path}/world.db"


@pytest.fixture
def world(world_url: str) -> Iterator[RefundWorld]:
    opened = connect(world_url)
    yield opened
    opened.close()
