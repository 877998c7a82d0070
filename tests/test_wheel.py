"""What is shipped: a wheel built from the sdist holds every room and works from an empty folder."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return next(out.glob("*.whl"))


@pytest.mark.slow
def test_the_wheel_from_the_sdist_holds_every_source_and_data_file(wheel: Path):
    rooms = [path.parent.relative_to(ROOT).parts[0] for path in ROOT.glob("*/__init__.py")]
    wanted = {
        "/".join((("plangate",) if room != "plangate" else ()) + path.relative_to(ROOT).parts)
        for room in rooms
        if room != "tests"
        for path in (ROOT / room).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }

    held = set(zipfile.ZipFile(wheel).namelist())

    assert wanted - held == set()


def test_the_installed_wheel_checks_a_plan_from_an_empty_folder(wheel: Path, tmp_path: Path):
    site, empty = tmp_path / "site", tmp_path / "empty"
    zipfile.ZipFile(wheel).extractall(site)
    empty.mkdir()
    (empty / "plan.json").write_text('{"goal": "g"}', encoding="utf-8")
    code = (
        f"import sys; sys.path.insert(0, {str(site)!r}); sys.meta_path = [m for m in sys.meta_path"
        " if 'ditable' not in repr(m)]; import plangate; assert 'site' in plangate.__file__;"
        " from plangate.cli.main import cli; cli(['plan', 'check', 'plan.json', '--agent',"
        " 'refund', '--json'])"
    )

    out = subprocess.run(
        [sys.executable, "-c", code], cwd=empty, capture_output=True, text=True, check=False
    )

    assert '"valid": false' in out.stdout, out.stderr
