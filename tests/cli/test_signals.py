from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from plangate.cli.main import cli
from plangate.journal.journal import Journal

ROOT = Path(__file__).parent.parent.parent
AGENT = '''
import time
from pathlib import Path
from typing_extensions import TypedDict
from plangate import Agent, tool

class Count(TypedDict):
    n: int

@tool(effect="write", key="act", scope="goal")
def act() -> Count:
    """Act, and take a while."""
    Path("acting").touch()
    while not Path("let_go").exists():
        time.sleep(0.01)
    with Path("done").open("a") as out:
        out.write("x")
    return {"n": 1}

@tool(effect="read")
def count() -> Count:
    """Count what happened."""
    return {"n": len(Path("done").read_text())}

agent = Agent(name="slow", tools=(act, count), policy="""
schema = 1
[[allow]]
tool = "*"
""", templates=("""
template: slow
goal: Do it
steps:
  - {id: E1, objective: Act, tool: act, success: [
      {id: once, level: L2, claim: It happened once, tool: count, rule: observed.n == 1}]}
  - {id: R1, objective: Look, tool: count, after: [E1]}
success_criteria: [{id: all, level: L2, claim: Once, tool: count, rule: observed.n == 1}]
budget: {min_level: L0}
""",))
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "slow.py").write_text(AGENT)
    yield tmp_path
    sys.modules.pop("slow", None)


@pytest.fixture
def child(folder):
    """The run in a process of its own, its effect under way."""
    command = ["run", "start", "--agent", "slow:agent", "--goal", "Do it", "--yes", "--json"]
    with subprocess.Popen(
        [sys.executable, "-m", "plangate.cli", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as started:
        while not (folder / "acting").exists():
            assert started.poll() is None, started.communicate()
            time.sleep(0.01)
        yield started
        started.kill()


@pytest.mark.slow
def test_sigterm_waits_for_the_effect_however_often_it_comes(folder, child):
    child.send_signal(signal.SIGTERM)
    assert "draining: nothing new" in child.stderr.readline()
    child.send_signal(signal.SIGTERM)
    assert "still draining" in child.stderr.readline()
    (folder / "let_go").touch()
    _, said = child.communicate(timeout=30)

    with Journal.open("sqlite:///.plangate/journal.db") as journal:
        (run,) = journal.runs.list()
    assert (child.returncode, run.status) == (143, "stopped")
    assert f"drained; go on with: plangate run resume {run.run_id}" in said
    assert (folder / "done").read_text() == "x"

    again = CliRunner().invoke(cli, ["run", "resume", run.run_id, "--agent", "slow:agent"])

    assert (again.exit_code, (folder / "done").read_text()) == (0, "x")
