"""A process that is killed in the middle of an agent's loop: nothing is done twice, all counts."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from plangate.journal.journal import Journal
from plangate.journal.view import fold
from tests.crash.outside import Outside

ROOT = Path(__file__).parent.parent.parent


def child(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.crash.agent", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dies_in", "reads"), [("read_load", {"read_log": 1, "read_load": 2}), ("model", None)]
)
def test_a_kill_in_the_loop_repeats_no_finished_call_and_no_effect(tmp_path, dies_in, reads):
    url, file = f"sqlite:///{tmp_path}/journal.db", tmp_path / "called"

    killed = child(url, str(file), dies_in)
    done = child(url, str(file), "live")

    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert (done.returncode, done.stdout) == (0, "pass"), done.stderr
    wanted = {**(reads or {"read_log": 1, "read_load": 1}), "note": 1}
    assert dict(Outside(file).count()) == wanted
    with Journal.open(url) as journal:
        [run] = journal.runs.list()
        view = fold(journal.log.read(run.run_id))
    # Four turns; the one that was lost with its owner is counted beside them.
    assert view.model_calls == 4 + (dies_in == "model")
    assert view.not_called == {"S1.3-A1" if dies_in == "read_load" else "S1.3-A2"}
