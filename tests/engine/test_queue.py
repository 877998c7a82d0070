from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plangate.engine.queue import Gone, Limits, Needs, ReadyQueue
from plangate.plan.value.plan import Author, Plan
from plangate.plan.value.step import Step

NOTHING = Needs()


def plan_of(*steps: Step) -> Plan:
    return Plan(
        goal_id="g", goal="goal", task_type="t", steps=steps, author=Author(kind="template")
    )


def step(name: str, *after: str, reads: str | None = None) -> Step:
    args = {"x": f"${{{reads}.value}}"} if reads else {}
    return Step(id=name, objective="o", tool="t", after=after, args=args)


def queue(plan: Plan, limits: Limits | None = None, **seconds: float) -> ReadyQueue:
    return ReadyQueue(
        plan, {each.id: seconds.get(each.id, 1.0) for each in plan.steps}, limits or Limits()
    )


def free(_: str) -> Needs:
    return NOTHING


@st.composite
def sound_plans(draw: st.DrawFn) -> Plan:
    steps: list[Step] = []
    for n in range(draw(st.integers(1, 9))):
        steps.append(step(f"s{n}", *[each.id for each in steps if draw(st.booleans())]))
    return plan_of(*steps)


@given(sound_plans(), st.randoms(use_true_random=False))
def test_each_step_starts_once_and_only_after_its_needs(plan, random):
    ready = queue(plan)
    running = ready.take(free)
    started, settled = list(running), set[str]()
    while running:
        ended = running.pop(random.randrange(len(running)))
        settled.add(ended)
        ready.settle(ended, "done")
        new = ready.take(free)
        assert all(plan.by_id[each].needs <= settled for each in new)
        started += new
        running += new

    assert sorted(started) == sorted(plan.by_id)


def test_the_longest_remaining_path_goes_first():
    plan = plan_of(step("short"), step("long"), step("tail", "long"))

    assert queue(plan, Limits(parallel=1), tail=9.0).take(free) == ["long"]


def test_two_steps_that_write_one_claim_never_overlap():
    plan = plan_of(step("a"), step("b"), step("c"))
    needs = {
        "a": Needs(writes=frozenset({"order:1"})),
        "b": Needs(reads=frozenset({"order:1"})),
        "c": Needs(reads=frozenset({"order:2"})),
    }
    ready = queue(plan)

    assert ready.take(needs.__getitem__) == ["a", "c"]
    ready.settle("a", "done")
    assert ready.take(needs.__getitem__) == ["b"]


def test_a_tool_limit_holds_back_only_that_tool():
    plan = plan_of(step("a"), step("b"), step("c"))
    needs = {"a": Needs(tool="slow"), "b": Needs(tool="slow"), "c": Needs(tool="fast")}

    assert queue(plan, Limits(tools={"slow": 1})).take(needs.__getitem__) == ["a", "c"]


@pytest.mark.parametrize("status", ["failed", "unknown", "cancelled"])
def test_a_failed_branch_blocks_what_depends_on_it_and_nothing_else(status):
    plan = plan_of(step("a"), step("b"), step("after_a", "a"), step("after_b", "b"))
    ready = queue(plan)
    ready.take(free)
    ready.settle("a", status)
    ready.settle("b", "done")

    assert ready.take(free) == ["after_b"]


def test_who_reads_a_skipped_step_can_never_run_who_only_follows_it_can():
    plan = plan_of(step("a"), step("reader", reads="a"), step("follower", "a"))
    ready = queue(plan)
    ready.take(free)

    assert ready.settle("a", "skipped") == [Gone("reader", "a", "reads_skipped")]
    assert ready.take(free) == ["follower"]


def test_a_step_that_reads_a_skipped_one_lets_nobody_pass_before_its_other_needs_settled():
    both = Step(id="both", objective="o", tool="t", args={"x": "${a.value}"}, after=("q",))
    plan = plan_of(step("a"), step("q"), both, step("pays", "both"))
    ready = queue(plan)
    ready.take(free)

    assert ready.settle("a", "skipped") == []
    assert ready.take(free) == []
    assert ready.settle("q", "done") == [Gone("both", "a", "reads_skipped")]
    assert ready.settle("both", "skipped") == []
    assert ready.take(free) == ["pays"]


def test_a_resumed_queue_goes_on_where_the_log_ends():
    plan = plan_of(step("a"), step("b", "a"), step("c", "b"))
    ready = queue(plan)
    ready.restore({"a": "done", "b": "running"})

    assert ready.take(free) == ["b"]
