from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from plangate.journal.events import TriggerFired
from plangate.journal.journal import Journal
from plangate.journal.owner import owner_name
from plangate.journal.session import Session
from plangate.journal.view import fold

pytestmark = [pytest.mark.crash, pytest.mark.slow]

CHILD = """
import sys
from plangate.journal.events import TriggerFired
from plangate.journal.journal import Journal
from plangate.journal.ledger import Intent
from plangate.journal.owner import owner_name
from plangate.journal.session import Session

journal = Journal.open(sys.argv[1])
session = Session.open(journal, "r", owner_name(), 3600)
plain = dict.fromkeys(
    ("business_key", "goal_id", "step", "attempt_id", "tool", "tool_version", "args_sha256"), "x"
)
for number in range(10**9):
    ref = session.put({"number": number})
    session.emit(TriggerFired(kind="n", code=ref, says=str(number)))
    if number % 50 == 49:
        session.flush()
        key = f"{session.lease.epoch}-{number}"
        intent = Intent(effect_key=key, run_id="r", plan_version=1, **plain)
        journal.ledger.intend(session.lease, intent)
        print(session.view.seq, key, flush=True)
"""


def killed_after(url: str, lines: int) -> tuple[int, str]:
    """Let a child write until it has said so much, kill it, and return the last thing it said."""
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, url], stdout=subprocess.PIPE, text=True
    ) as child:
        said = [child.stdout.readline() for _ in range(lines)]
        time.sleep(0.003)
        child.send_signal(signal.SIGKILL)
        said += child.stdout.read().splitlines(keepends=True)
    seq, key = [line for line in said if line.endswith("\n")][-1].split()
    return int(seq), key


@pytest.mark.slow
def test_a_killed_writer_leaves_a_whole_log_that_another_goes_on_with(journal, new_run):
    new_run()
    for epoch, lines in enumerate((1, 4, 9), 1):
        acknowledged, key = killed_after(journal.url, lines)

        entries = journal.log.read("r")
        view = fold(entries)
        fired = [entry.event for entry in entries if isinstance(entry.event, TriggerFired)]
        assert view.seq == journal.runs.get("r").last_seq >= acknowledged
        assert entries[-1].epoch == epoch
        assert all(
            journal.artifacts.get(event.code) == {"number": int(event.says)} for event in fired
        )
        assert journal.ledger.get(key).state == "intended"

    with Session.open(journal, "r", owner_name(), 30) as session:  # no wait: the owner is dead
        session.emit(TriggerFired(kind="last"))

    with Journal.open(journal.url) as other:
        assert fold(other.log.read("r")) == session.view
    assert session.lease.epoch == 4
