from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plangate.plan.schedule import (
    ancestors,
    critical_path,
    descendants_of,
    longest_remaining,
    order,
)
from plangate.plan.value.plan import Author, Plan
from plangate.plan.value.step import Step


def plan_of(needs: dict[str, tuple[str, ...]]) -> Plan:
    steps = (Step(id=name, objective="o", tool="look", after=each) for name, each in needs.items())
    return plan_with(*steps)


def plan_with(*steps: Step) -> Plan:
    author = Author(kind="human")
    return Plan(goal_id="g", goal="g", task_type="t", steps=steps, author=author)


DIAMOND = plan_of({"D": ("B", "C"), "B": ("A",), "C": ("A",), "A": ()})


@st.composite
def graphs(draw: st.DrawFn) -> Plan:
    size = draw(st.integers(1, 12))
    needs: dict[str, tuple[str, ...]] = {}
    for at in range(size):
        earlier = [f"S{each}" for each in range(at)]
        chosen = draw(st.lists(st.sampled_from(earlier), unique=True)) if earlier else []
        needs[f"S{at}"] = tuple(chosen)
    names = draw(st.permutations(list(needs)))
    return plan_of({name: needs[name] for name in names})


def test_each_step_comes_after_what_it_needs_and_ties_keep_the_order_of_the_plan():
    assert order(DIAMOND) == ("A", "B", "C", "D")


def test_ancestors_go_through_data_and_order():
    reads = Step(id="E", objective="o", tool="look", args={"x": "${D.y}"})
    plan = plan_with(*DIAMOND.steps, reads)

    assert ancestors(plan)["E"] == {"A", "B", "C", "D"}
    assert "E" not in ancestors(plan)["E"]


def test_descendants_never_hold_the_steps_they_start_from():
    assert descendants_of(DIAMOND, ["B", "D"]) == frozenset()
    assert descendants_of(DIAMOND, ["A"]) == {"B", "C", "D"}


def test_the_critical_path_is_named_step_by_step():
    found = critical_path(DIAMOND, {"A": 1, "B": 5, "C": 2, "D": 1})

    assert found == (7, ("A", "B", "D"))


def test_a_step_of_unknown_length_takes_no_time():
    assert critical_path(DIAMOND, {}).seconds == 0
    assert longest_remaining(DIAMOND, {"D": 3}) == {"A": 3, "B": 3, "C": 3, "D": 3}


@pytest.mark.parametrize(
    ("needs", "ordered"),
    [
        ({"A": ("B",), "B": ("A",), "C": ()}, ("C",)),
        ({"A": ("A",), "B": ("A",)}, ()),
        ({"A": ("nowhere",)}, ("A",)),
    ],
)
def test_a_cycle_and_what_stands_behind_it_have_no_place_in_the_order(needs, ordered):
    plan = plan_of(needs)

    assert order(plan) == ordered
    assert set(ancestors(plan)) == set(needs)
    assert set(critical_path(plan, {}).steps) <= set(ordered)


@settings(max_examples=40)
@given(graphs())
def test_the_order_is_topological(plan: Plan):
    placed = order(plan)

    assert sorted(placed) == sorted(step.id for step in plan.steps)
    for step in plan.steps:
        assert all(placed.index(need) < placed.index(step.id) for need in step.needs)


@settings(max_examples=40)
@given(graphs(), st.integers(0, 100))
def test_the_critical_path_is_no_longer_than_all_steps_together(plan: Plan, long: int):
    seconds = {step.id: float(len(step.id) + long) for step in plan.steps}

    found = critical_path(plan, seconds)

    assert max(seconds.values()) <= found.seconds <= sum(seconds.values())
    assert sum(seconds[step] for step in found.steps) == pytest.approx(found.seconds)


@settings(max_examples=40)
@given(graphs())
def test_a_step_is_an_ancestor_exactly_of_its_descendants(plan: Plan):
    before = ancestors(plan)

    for step in plan.steps:
        assert descendants_of(plan, [step.id]) == {
            each for each in before if step.id in before[each]
        }


@pytest.mark.slow
def test_ten_thousand_steps_in_a_row_take_well_under_a_second():
    plan = plan_of({f"S{at}": (f"S{at - 1}",) if at else () for at in range(10_000)})
    began = time.process_time()

    longest = critical_path(plan, dict.fromkeys(plan.by_id, 1.0))
    before = ancestors(plan)

    assert time.process_time() - began < 2
    assert (longest.seconds, len(before["S9999"])) == (10_000, 9_999)
