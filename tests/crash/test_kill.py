from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from plangate.agent import load_agent, open_world
from plangate.runtime import Options, Runtime
from tests.crash.child import SAYS

pytestmark = pytest.mark.crash
ROOT = Path(__file__).parent.parent.parent
RUN = "run_crash"


def kill_at(folder: Path, tool: str, moment: str, scenario: str = "straightforward") -> None:
    child = subprocess.run(
        [sys.executable, "-m", "tests.crash.child", folder, RUN, scenario, tool, moment],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    assert child.returncode == -signal.SIGKILL, child.stderr


def resume(folder: Path) -> tuple[Runtime, list[object]]:
    """Finish the run in this process, answering whatever is still asked."""
    agent, world_url = load_agent("refund"), f"sqlite:///{folder}/world.db"
    runtime = Runtime(agent, f"sqlite:///{folder}/journal.db", Options(world_url=world_url))
    for _ in range(6):
        if runtime.journal.runs.get(RUN).status == "ended":
            break
        for _ in runtime.advance(RUN):
            pass
        for question in runtime.view(RUN).pending_questions:
            runtime.answer(question.question_id, SAYS[question.kind])
    world = open_world(agent.connect, world_url)
    payments = list(world.payments())
    world.close()
    return runtime, payments


def test_a_kill_between_acceptance_and_our_record_is_reconciled_and_not_paid_again(tmp_path):
    kill_at(tmp_path, "create_refund", "after")

    runtime, payments = resume(tmp_path)

    events = [each.event for each in runtime.journal.log.read(RUN)]
    asked = [each.kind for each in runtime.view(RUN).questions.values()]
    runtime.close()
    ended = [e for e in events if e.type == "attempt_ended" and e.step == "S6"]
    assert [(e.outcome, e.reused) for e in ended] == [("unknown", ""), ("success", "reconcile")]
    assert asked == ["approval", "step"], "what was begun needs no second yes"
    assert len(payments) == 1


def test_a_run_killed_after_its_repair_goes_on_with_the_repaired_version(tmp_path):
    kill_at(tmp_path, "classify_no_logistics_record", "before", "no-logistics-record")

    runtime, payments = resume(tmp_path)

    view = runtime.view(RUN)
    runtime.close()
    assert (list(view.plans), view.ended.verdict, len(payments)) == ([1, 2], "pass", 1)
    assert [each for each in view.attempts if each.startswith("S1")] == ["S1-A1"]
