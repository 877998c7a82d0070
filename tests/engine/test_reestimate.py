from __future__ import annotations

import asyncio
from decimal import Decimal

import pytest
from typing_extensions import TypedDict

from plangate.engine.dataflow import run_plan
from plangate.engine.reestimate import Need, decide
from plangate.engine.triggers import same_failure, tokens_rising
from plangate.journal.events import ModelCalled, PlanProposed, Reflected, StepEnded
from plangate.journal.view import RunView
from plangate.plan.value.plan import Author, Budget
from plangate.plan.value.step import Step
from plangate.tools.tool import tool
from tests.engine.conftest import plan_of


def need(p50: float, p95: float, left: float) -> Need:
    return Need("max_seconds", p50, p95, left, "s")


@pytest.mark.parametrize(
    ("needs", "asked", "word"),
    [
        ([], False, "continue"),
        ([need(3, 6, 6)], False, "continue"),
        ([need(3, 6, 5)], False, "compress"),
        ([need(3, 6, 2)], False, "ask"),
        ([need(3, 6, 2)], True, "compress"),
        ([need(3, 6, 0)], False, "stop"),
        ([need(3, 6, -1)], True, "stop"),
        ([need(0, 0, 0)], False, "continue"),
        ([need(3, 6, 9), need(3, 6, 2)], False, "ask"),
    ],
)
def test_what_is_left_against_the_limits_says_what_follows(needs, asked, word):
    assert decide(needs, is_asked=asked)[0] == word


class Seen(TypedDict):
    value: int


class Time:
    """Seconds that pass only while a tool works."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def slow(time: Time, took_s: float):
    @tool(effect="read", seconds=1.0, usd=Decimal("0.01"))
    async def look(n: int) -> Seen:
        """Look."""
        time.now_s += took_s if n == 1 else 1.0
        return {"value": n}

    return look


def chain(count: int, **limits):
    steps = [
        Step(
            id=f"s{n}",
            kind="tool",
            objective="look",
            tool="look",
            args={"n": n},
            after=(f"s{n - 1}",) if n > 1 else (),
        )
        for n in range(1, count + 1)
    ]
    return plan_of(*steps, budget=Budget(**limits))


async def weighed(lab, took_s, **limits):
    """Run three steps in a row of which the first takes so many seconds of an expected one."""
    time = Time()
    session = await asyncio.to_thread(lab.session)
    made = lab.bench(session, chain(3, **limits), [slow(time, took_s)])
    bench = type(made)(**{**vars(made), "monotonic": time, "started_s": 0.0})
    halt = await run_plan(bench)
    session.close()
    return halt, session.view.reestimated


async def test_a_step_that_took_what_was_expected_has_nothing_weighed(lab):
    halt, found = await weighed(lab, 1.9, max_seconds=3)

    assert (halt.reason, found) == ("done", [])


@pytest.mark.parametrize(
    ("limits", "word", "reason", "kind"),
    [
        ({}, "continue", "done", ""),
        ({"max_seconds": 60}, "continue", "done", ""),
        ({"max_seconds": 19}, "compress", "done", ""),
        ({"max_seconds": 9}, "ask", "trigger", "over_plan"),
        ({"max_seconds": 3}, "stop", "budget", ""),
    ],
)
async def test_a_step_that_is_overdue_has_the_rest_weighed_at_its_own_ratio(
    lab, limits, word, reason, kind
):
    halt, found = await weighed(lab, 4.0, **limits)

    assert (halt.reason, halt.kind) == (reason, kind)
    assert [(each.decision, each.step, each.trigger) for each in found] == [(word, "s1", "overdue")]
    assert (found[0].time_ratio, found[0].seconds.p50, found[0].seconds.p95) == (4.0, 8.0, 16.0)
    assert (found[0].continue_usd, found[0].repair_usd) == (Decimal("0.02"), Decimal("0.02"))


def asked(tokens: int) -> ModelCalled:
    return ModelCalled(
        role="planner", model="m", prompt="p", prompt_sha256="0", ok=True, latency_s=1.0,
        input_tokens=tokens, output_tokens=0, usd=Decimal("0.5"),
    )  # fmt: skip


DONE = StepEnded(step="S1", plan_version=0, status="done")


@pytest.mark.parametrize(
    ("events", "fires"),
    [
        ([asked(1), asked(2), asked(3)], True),
        ([asked(1), asked(2)], False),
        ([asked(1), asked(3), asked(2)], False),
        ([asked(9), asked(1), asked(2), asked(3)], True),
        ([asked(1), asked(2), DONE, asked(3)], False),
    ],
)
def test_rounds_that_take_more_and_more_without_progress_are_seen_in_the_log(events, fires):
    view = RunView()
    for event in events:
        view.apply(event)

    assert tokens_rising(view) is fires


def reflected(category: str) -> Reflected:
    return Reflected(failure_category=category, failed_steps=("S1",), confidence=1.0)


def repaired(version: int) -> PlanProposed:
    author = Author(kind="replanner")
    return PlanProposed(version=version, plan="sha256:0", content_hash=str(version), author=author)


@pytest.mark.parametrize(
    ("categories", "fires"),
    [("aa", False), ("aaa", True), ("aba", False), ("abab", False), ("ababa", True)],
)
def test_the_same_category_of_failure_across_repairs_is_seen_in_the_log(categories, fires):
    view = RunView()
    for version, category in enumerate(categories, 2):
        view.apply(reflected(category))
        before = same_failure(view)
        view.apply(repaired(version))

    assert before is fires
