from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.crash.choice import ROOT, Ground, Trial, few_trials, named_points
from tests.crash.outside import KINDS
from tests.crash.trial import Kill

pytestmark = pytest.mark.crash
TABLE = ROOT / "docs/reference/crash-points.md"

# A forking program must not have the threads that a test session has.
_TRIAL = """
import sys
from pathlib import Path
from tests.crash.choice import Ground, Trial
from tests.crash.trial import Kill
ground = Ground(Path(sys.argv[1]))
place = ground.place("one", sys.argv[2])
sys.exit(Trial(sys.argv[2], "sqlite", Kill("effect.returned", 1)).run(place, Path(sys.argv[3])))
"""


def test_every_point_is_named_once_and_there_are_enough():
    counted = Counter(named_points())

    assert [name for name, times in counted.items() if times > 1] == []
    assert len(counted) >= 25


def test_the_table_in_the_docs_has_every_point_and_no_fault():
    text = TABLE.read_text()

    assert sorted(re.findall(r"^\| `([a-z_.]+)` \|", text, re.MULTILINE)) == sorted(named_points())
    assert "FAULT" not in text


@pytest.mark.parametrize(("kind", "duplicates"), [("lying", 1), ("idempotent", 0)])
def test_the_harness_sees_an_effect_that_was_repeated(tmp_path, kind, duplicates):
    out = tmp_path / "result.json"

    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _TRIAL, tmp_path, kind, out],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert json.loads(out.read_text())["duplicates"] == duplicates


@given(
    st.dictionaries(
        st.sampled_from(named_points()), st.sets(st.sampled_from(KINDS), min_size=1), min_size=1
    )
)
def test_the_few_trials_come_to_every_point_whichever_kinds_do(tmp_path_factory, kinds_of):
    ground = Ground(tmp_path_factory.mktemp("none"), "postgresql://nowhere")
    trials = [
        Trial(kind, database, Kill(point, 1))
        for point, kinds in kinds_of.items()
        for kind in sorted(kinds)
        for database in ground.databases
    ]

    few = few_trials(ground, trials)

    assert {each.kill.point for each in few} == set(kinds_of)
    assert {(each.kill.point, each.database) for each in few} >= {
        (point, database)
        for point in set(kinds_of) & set(named_points(["journal"]))
        for database in ground.databases
    }
