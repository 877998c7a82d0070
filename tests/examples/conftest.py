from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from plangate.examples.aml.world import AmlWorld
from plangate.examples.aml.world import connect as connect_aml
from plangate.examples.refund.world import RefundWorld, connect
from tests.examples.aml import ROWS, Desk


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


@pytest.fixture(scope="session")
def aml_made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small AML world, made once."""
    path = tmp_path_factory.mktemp("aml") / "world.db"
    world = connect_aml(f"sqlite:///{path}")
    world.prepare({"rows": ROWS})
    world.close()
    return path


@pytest.fixture
def aml_url(tmp_path: Path, aml_made: Path) -> str:
    shutil.copy(aml_made, tmp_path / "aml.db")
    return f"sqlite:///{tmp_path}/aml.db"


@pytest.fixture
def bank_world(aml_url: str) -> Iterator[AmlWorld]:
    opened = connect_aml(aml_url)
    yield opened
    opened.close()


@pytest.fixture
def desk(tmp_path: Path, aml_url: str) -> Iterator[Desk]:
    made = Desk(tmp_path, aml_url)
    yield made
    made.close()
