from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest

PAGE = Path(__file__).parent.parent.parent / "docs" / "howto" / "run-on-postgres.md"
EXAMPLE = "postgresql://plangate@db.example/plangate"


def with_password(url: str) -> str:
    return url.replace("plangate@", "plangate:s3cret@")


def test_the_commands_of_the_page_work(call, postgres):
    commands = re.findall(r"^plangate (.*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)

    said = [call(*shlex.split(line.replace(EXAMPLE, postgres))).stdout for line in commands]

    assert len(commands) == 4
    assert "verdict pass" in said[0]
    assert "completed pass" in said[1]
    assert "create_refund" in said[2]
    assert "schema version" in said[3]


def test_a_password_is_in_nothing_that_is_printed(call, postgres, monkeypatch):
    url = with_password(postgres)
    waits = call("demo", "refund", "--json", "--journal", url, code=11)
    report = json.loads(waits.stdout)
    shown = call("demo", "refund", "--journal", url, code=11)
    doctor = call("doctor", "--journal", url)
    monkeypatch.setenv("PGPASSWORD", "s3cret")

    again = call("run", "show", report["run_id"], "--json", "--journal", report["journal"])

    said = "".join(each.stdout + each.stderr for each in (waits, shown, doctor, again))
    assert "s3cret" not in said
    assert f"--journal {postgres}" in shown.stderr
    assert json.loads(again.stdout)["run_id"] == report["run_id"]


@pytest.mark.slow
def test_two_processes_resume_one_run_and_it_is_paid_once(start, call, postgres):
    run_id = json.loads(call("demo", "refund", "--json", "--journal", postgres, code=11).stdout)[
        "run_id"
    ]
    both: list[subprocess.Popen[str]] = [
        start("approve", run_id, "--yes", "--json", "--journal", postgres) for _ in range(2)
    ]

    codes = sorted(each.wait(60) for each in both)
    if 0 not in codes:  # the slower one came too late to be asked the second question
        call("approve", run_id, "--yes", "--journal", postgres)

    effects = json.loads(call("effects", "list", "--json", "--journal", postgres).stdout)
    assert 11 in codes, [each.communicate() for each in both]
    assert [each["state"] for each in effects] == ["done"]
