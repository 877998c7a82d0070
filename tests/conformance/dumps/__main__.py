"""Writes what a journal of today's schema looks like, once, when the schema is released.

python -m tests.conformance.dumps

Never written again for a version that is out: an older plangate made it, and this one must read it.
"""

from __future__ import annotations

import re
import sqlite3
import subprocess
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

from plangate.journal.decisions import Decision
from plangate.journal.events import RunEnded, StepReleased, VerifiedAs
from plangate.journal.journal import Journal
from plangate.journal.ledger import Intent
from plangate.journal.migrations import MIGRATIONS
from plangate.journal.purse import Purse
from plangate.journal.questions import QuestionAsked
from plangate.journal.reservations import account_of
from plangate.journal.runs import Run
from plangate.journal.samples import Sample, Used
from plangate.plan.facts import Rights
from plangate.plan.spent import Spent
from tests.postgres import fresh_database, script

HERE = Path(__file__).parent
AT = datetime(2026, 1, 31, 8, 15, 0, 7, tzinfo=UTC)
_SESSION = re.compile(r"^(--.*|\\.*|SET .*|SELECT pg_catalog.*|)\n", re.MULTILINE)


def fill(journal: Journal) -> None:
    """Add a row of each kind: two runs, one of which ended."""
    rights = Rights(principal="ann", roles=("clerk",), scopes=("pay",), tenant="acme")
    for run_id in ("done", "open"):
        plain = {"goal_id": "g", "goal": "Refund order 1, “ünïcode”", "agent": "refund"}
        journal.runs.create(Run(run_id=run_id, thread_id=run_id, principal=rights, **plain))
        lease = journal.runs.acquire(run_id, "elsewhere.0:1:1:abc", 30)
        asked = QuestionAsked(
            question_id=f"{run_id}-q1",
            kind="approval",
            audience="operator",
            payload=journal.artifacts.put({"steps": [run_id]}),
            payload_sha256="0",
            plan_version=1,
            content_hash="h",
        )
        journal.log.append(lease, 0, [asked, StepReleased(step="S1", plan_version=1)])
        said = Decision(
            question_id=asked.question_id,
            run_id=run_id,
            decision="approve",
            by="ann",
            at=AT,
            answer={"limit": 10},
            steps=("S1",),
        )
        journal.decisions.vote(said, needs=2)
        journal.decisions.record(said)
        plain = dict.fromkeys(("goal_id", "attempt_id", "tool", "tool_version"), "x")
        key = {"effect_key": run_id, "business_key": f"refund:{run_id}", "args_sha256": "0"}
        intent = Intent(run_id=run_id, step="S1", plan_version=1, approval="q", **key, **plain)
        journal.ledger.intend(lease, intent)
        row = Purse(journal.reservations, lease, account_of(rights))
        row.hold(Spent(usd=Decimal("0.25"), tool_calls=1), None, act="S1-A1")
        if run_id == "done":
            journal.ledger.settle(lease, run_id, "done", business_state="PAID", output="sha256:0")
            speaks = VerifiedAs(task_type="refund", catalog_hash="c", policy_hash="p")
            used = Used(subject="tool:refund@1", calls=1, samples=(Sample(seconds=0.5),))
            ended = RunEnded(
                ending="completed",
                verdict="pass",
                report="sha256:0",
                verified=speaks,
                used=(used,),
            )
            journal.log.append(lease, 2, [ended])
            journal.runs.release(lease)


def main() -> None:
    version = max(MIGRATIONS)
    with TemporaryDirectory() as folder:
        with Journal.open(f"sqlite:///{folder}/j.db", clock=lambda: AT) as journal:
            fill(journal)
        lines = sqlite3.connect(f"{folder}/j.db").iterdump()
        (HERE / f"sqlite-{version}.sql").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with fresh_database(script("start", "--quick")) as url:
        with Journal.open(url, clock=lambda: AT) as journal:
            fill(journal)
        dump = next(Path("/usr/lib/postgresql").glob("*/bin/pg_dump"))
        said = subprocess.run(
            [dump, "--inserts", "-Ox", url], check=True, capture_output=True, text=True
        )
        text = _SESSION.sub("", said.stdout)
        (HERE / f"postgres-{version}.sql").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
