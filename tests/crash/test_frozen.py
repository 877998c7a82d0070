from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.crash.choice import ROOT

pytestmark = pytest.mark.crash


@pytest.mark.parametrize(
    ("point", "asked", "then"),
    [
        ("effect.held", [], "leave"),
        ("effect.dispatching", ["S2"], "leave"),
        ("effect.dispatching", ["S2"], "insist"),
        ("effect.returned", [], "leave"),
    ],
    ids=["before its intent", "before its call", "and others insist", "after its call"],
)
def test_a_process_frozen_past_its_lease_and_woken_adds_nothing(tmp_path, point, asked, then):
    said = [tmp_path, point, "reconciled", then]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.crash.frozen", *said],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["frozen"] == "LeaseLost"
    assert (found["effects"], found["ledger"]) == (1, ["done"])
    assert (found["verdict"], found["asked"]) == ("pass", asked)
    assert found["seqs"] == list(range(1, len(found["seqs"]) + 1))
    assert found["epochs"] == sorted(found["epochs"]), "one owner a number, never back"
