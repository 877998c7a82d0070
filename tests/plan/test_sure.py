"""What is said to be sure, held against the queue that runs plans, whatever is skipped."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plangate.engine.queue import Limits, Needs, ReadyQueue
from plangate.plan.flow.sure import Sure
from plangate.plan.schedule import order
from plangate.plan.value.plan import Author, Plan
from plangate.plan.value.step import Step


def plan_of(*steps: Step) -> Plan:
    author = Author(kind="template", name="t")
    return Plan(goal_id="g", goal="x", task_type="t", steps=steps, author=author)


def step(step_id: str, *, reads: tuple[str, ...] = (), after: tuple[str, ...] = (), **more: str):
    args = {f"a{n}": f"${{{each}.x}}" for n, each in enumerate(reads)}
    return Step(id=step_id, objective="x", tool="t", args=args, after=after, **more)


def is_sure(plan: Plan, guard: str, before: str) -> bool:
    sure = Sure(plan, order(plan), [guard])
    return sure.holds(before, sure.bits([guard]))


@pytest.mark.parametrize(
    ("last", "sure"),
    [
        (step("S3", reads=("S2",)), True),
        (step("S3", after=("S2",)), False),
        (step("S3", reads=("S1",), after=("S2",)), False),
    ],
)
def test_a_guard_that_can_be_skipped_protects_who_reads_it_and_not_who_waits_for_it(last, sure):
    guard = step("S2", reads=("S1",), when="inputs.x == 1")

    assert is_sure(plan_of(step("S1"), guard, last), "S2", "S3") is sure


def test_what_had_to_be_done_for_what_is_read_is_sure_as_well():
    plan = plan_of(
        step("S1"),
        step("S2", reads=("S1",), when="inputs.x == 1"),
        step("S3", reads=("S2",)),
        step("S4", reads=("S3",)),
        step("S5", after=("S4",)),
    )

    assert [is_sure(plan, "S1", each) for each in ("S3", "S4", "S5")] == [True, True, False]
    assert [is_sure(plan, "S2", each) for each in ("S3", "S4", "S5")] == [True, True, False]


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    made: list[Step] = []
    for n in range(draw(st.integers(2, 7))):
        before = [f"S{m}" for m in range(n)]
        some = st.lists(st.sampled_from(before), unique=True, max_size=2) if before else st.just([])
        more = {"when": "inputs.x == 1"} if draw(st.booleans()) else {}
        made.append(step(f"S{n}", reads=tuple(draw(some)), after=tuple(draw(some)), **more))
    return plan_of(*made)


@given(plan=plans(), data=st.data())
def test_nothing_that_is_sure_is_missing_when_a_step_starts(plan: Plan, data: st.DataObject):
    queue, ended = ReadyQueue(plan, {}, Limits()), {}
    ready = queue.take(lambda _: Needs())
    while ready:
        for other, how in ended.items():
            for now in ready:
                assert not is_sure(plan, other, now) or how == "done"
        for now in ready:
            waiting = {each.id for each in plan.steps} - ended.keys()
            assert not any(is_sure(plan, other, now) for other in waiting)
        name = ready.pop(0)
        skips = plan.by_id[name].when is not None and data.draw(st.booleans())
        ended[name] = "skipped" if skips else "done"
        gone = queue.settle(name, ended[name])
        while gone:
            each = gone.pop().step
            ended[each] = "skipped"
            gone += queue.settle(each, "skipped")
        ready += queue.take(lambda _: Needs())
