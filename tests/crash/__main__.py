"""Kill a run at every named point and finish it in another process. Not a test: `make crash`.

python -m tests.crash [--quick] [--postgres URL] [--table FILE]
"""

# ruff: noqa: T201 (a program for a terminal)
from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from tests.crash.choice import Ground, Trial, all_trials, few_trials, named_points
from tests.crash.table import is_bad, table
from tests.postgres import fresh_database

_JOBS = os.cpu_count() or 2


def run_all(ground: Ground, trials: Sequence[Trial]) -> list[dict[str, Any]]:
    """Try them all, as many at a time as there are cores."""
    running: dict[int, Path] = {}
    results: list[dict[str, Any]] = []
    for number, trial in enumerate(trials):
        if len(running) >= _JOBS:
            results.append(_collect(running))
        place = ground.place(f"t{number}", trial.kind, trial.database)
        out = place.folder / "result.json"
        pid = os.fork()
        if pid == 0:
            os._exit(0 if trial.run(place, out) == 0 else 1)
        running[pid] = out
    while running:
        results.append(_collect(running))
    return results


def _collect(running: dict[int, Path]) -> dict[str, Any]:
    pid, status = os.wait()
    out = running.pop(pid)
    assert status == 0, f"a trial broke: {out.parent}"
    read: dict[str, Any] = json.loads(out.read_text())
    return read


def report(results: Sequence[dict[str, Any]], points: Sequence[str]) -> bool:
    """Print what went wrong and the last line; True if nothing did."""
    bad = [each for each in results if is_bad(each)]
    for each in bad:
        print("FAULT", json.dumps(each))
    tried = {each["kill"]["point"] for each in results if each["reached"]}
    for point in sorted(set(points) - tried):
        print(f"FAULT {point} was never reached")
    missed = sum(not each["reached"] for each in results)
    kinds = len({each["kind"] for each in results})
    databases = "+".join(sorted({each["database"] for each in results}))
    print(
        f"crash: {len(tried)} of {len(points)} points, {kinds} kinds, {databases}, {len(results)} "
        f"trials ({missed} were over before their point): "
        f"{sum(each['duplicates'] for each in results)} duplicates, "
        f"{sum(bool(each['lost']) for each in results)} lost, "
        f"{sum(each['asked'] for each in results)} unknown, {len(bad)} faults"
    )
    return not bad and tried == set(points)


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests.crash")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--postgres", metavar="URL")
    parser.add_argument("--table", metavar="FILE", type=Path)
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="crash-") as folder,
        fresh_database(given.postgres) if given.postgres else nullcontext() as postgres,
    ):
        ground = Ground(Path(folder), postgres)
        trials = list(all_trials(ground))
        results = run_all(ground, few_trials(ground, trials) if given.quick else trials)
    if given.table:
        given.table.write_text(table(results))
    sys.exit(0 if report(results, named_points()) else 1)


if __name__ == "__main__":
    main()
