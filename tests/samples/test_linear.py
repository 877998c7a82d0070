"""Validation takes time linear in the size of a plan: processor time for a step stays the same."""

from __future__ import annotations

import gc
import time
from typing import Any

import pytest

from plangate.plan.layers.run import validate
from plangate.plan.value.frozen import parse
from plangate.plan.value.plan import Plan
from tests.samples.cases import base
from tests.samples.catalogs import desk

SMALL, LARGE = 1_000, 10_000


def looks(count: int, after: Any) -> Plan:
    """The migration's scan, then many looks at tables, each with a check and a condition."""
    said = base("migration")
    scan = said["steps"][0]
    looks = [
        {
            "id": f"L{at}",
            "objective": "Count again",
            "tool": "count_rows",
            "args": {"table": f"${{L{at - 1}.table}}" if at % 5 else "${inputs.table}"},
            "after": after(at),
            "when": f"steps.L{at - 1}.output.rows > 0" if at % 5 else None,
            "success": [
                {"id": f"l{at}", "level": "L1", "claim": "Some", "rule": "result.rows > 0"}
            ],
        }
        for at in range(count - 1)
    ]
    said.update(
        steps=[scan, *looks],
        budget={},
        success_criteria=[
            {
                "id": "all",
                "level": "L1",
                "claim": "All are there",
                "rule": f"steps.L{count - 2}.output.rows >= steps.S1.output.valid_rows",
            }
        ],
        abort_conditions=[{"id": "f", "text": "Failures", "rule": "run.failures > 3"}],
    )
    return parse(Plan, said)


def layered(at: int) -> list[str]:
    """Ten wide, and each of a row waits for three of the row before."""
    row = at // 10 * 10
    before = [row - 10 + (at + shift) % 10 for shift in range(3)] if row else []
    return [f"L{each}" for each in before] or ["S1"]


def per_step(count: int, after: Any) -> float:
    """Processor seconds for each step: of a small plan the best of three."""
    best = float("inf")
    for _ in range(3 if count < LARGE else 1):
        plan, migration = looks(count, after), desk("migration")
        known = migration.facts(None)
        gc.collect()
        start = time.process_time()
        report = validate(plan, known)
        best = min(best, time.process_time() - start)
        assert report.errors == ()
        assert report.not_evaluated == ()
    return best / count


@pytest.mark.slow
@pytest.mark.parametrize("after", [layered])
def test_a_step_of_a_large_plan_costs_what_one_of_a_small_plan_does(after: Any):
    small, large = per_step(SMALL, after), per_step(LARGE, after)
    if large >= 2 * small:  # caches of a busy machine: look once more
        large = min(large, per_step(LARGE, after))

    assert large < 2 * small, f"{large * 1e6:.0f} µs a step, {small * 1e6:.0f} in a small plan"
    assert small < 2 * large, f"{small * 1e6:.0f} µs a step, {large * 1e6:.0f} in a large plan"
