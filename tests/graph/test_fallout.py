from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plangate.graph.fallout import Fallout
from plangate.plan.catalog import Catalog, Effect, ToolSpec
from plangate.plan.schedule import descendants_of
from plangate.plan.value.plan import Author, Plan
from plangate.plan.value.step import Check, Join, Question, Route, Step

ANY = {"type": "object"}
CATALOG = Catalog.of(
    [
        ToolSpec(
            name="pay", summary="Pay.", effect=Effect.IRREVERSIBLE, key="{who}", scope="goal",
            params=ANY, output=ANY, writes=("account:{who}",),
        ),
        ToolSpec(
            name="look", summary="Look.", effect=Effect.READ, params=ANY, output=ANY,
            reads=("account:{who}",),
        ),
    ]
)  # fmt: skip


def pay(id: str, *after: str, who: str = "ann", **more) -> Step:
    return Step(id=id, objective="pay", tool="pay", args={"who": who}, after=after, **more)


def plan_of(*steps: Step, criteria=()) -> Plan:
    return Plan(
        goal_id="g",
        goal="g",
        task_type="t",
        steps=steps,
        success_criteria=criteria,
        author=Author(kind="template"),
    )


def test_lost_is_what_needs_it_by_order_and_by_data():
    by_data = Step(id="S3", objective="look", tool="look", args={"who": "${S1.who}"})
    plan = plan_of(pay("S1"), pay("S2", "S1"), by_data, pay("S4", "S3"))

    assert set(Fallout(plan, CATALOG).of(["S1"]).steps) == {"S2", "S3", "S4"}


def test_nobody_is_asked_about_what_was_denied():
    asks = Step(
        id="Q",
        objective="ask",
        kind="human",
        question=Question(audience="customer", type="confirm", text="Pay?"),
    )
    both = Fallout(plan_of(asks, pay("S1", "Q"), pay("S2", "Q")), CATALOG)

    assert both.of(["S1"]).steps == ()
    assert both.of(["S1", "S2"]).steps == ("Q",)
    assert both.reasons({"S1": "ann", "S2": "bob"}) == {
        "Q": "it asks about what was denied",
        "S1": "denied by ann",
        "S2": "denied by bob",
    }


def test_criteria_that_read_a_lost_step_cannot_pass_and_those_that_look_at_its_work_may_not():
    reads = Check(id="reads", level="L1", claim="c", rule="steps.S1.output.ok")
    looks = Check(id="looks", level="L2", claim="c", tool="look", args={"who": "ann"}, rule="true")
    other = Check(id="other", level="L2", claim="c", tool="look", args={"who": "bob"}, rule="true")
    loss = Fallout(plan_of(pay("S1"), criteria=(reads, looks, other)), CATALOG).of(["S1"])

    assert (loss.cannot_pass, loss.may_not_pass) == (("reads",), ("looks",))


def test_what_has_ended_is_not_lost():
    fallout = Fallout(plan_of(pay("S1"), pay("S2", "S1")), CATALOG, settled={"S2"})

    assert fallout.of(["S1"]).steps == ()


def test_a_long_list_is_cut_and_says_how_long_it_is():
    plan = plan_of(*(pay(f"S{n}", *([f"S{n - 1}"] if n else [])) for n in range(3_000)))

    loss = Fallout(plan, CATALOG).of(["S0"], 20)

    assert (loss.steps[:2], len(loss.steps), loss.more) == (("S1", "S2"), 20, 2_979)


def test_a_stand_in_falls_with_its_step_and_not_the_other_way_round():
    first = pay("S1", routes=(Route(on="no_account", action="fallback", step="S2"),))
    fallout = Fallout(plan_of(first, pay("S2"), pay("S3", "S1")), CATALOG)

    assert set(fallout.of(["S1"]).steps) == {"S2", "S3"}
    assert fallout.of(["S2"]).steps == ()


@pytest.mark.parametrize(
    ("join", "enough"),
    [
        (Join(mode="any"), 1),
        (Join(mode="at_least", n=2), 2),
        (Join(mode="all", on_failure="partial"), 0),
        (Join(mode="when", rule="true"), 0),
        (Join(), 3),
    ],
)
def test_a_join_falls_only_when_too_little_is_left(join, enough):
    needs = ("S1", "S2", "S3")
    joined = pay("S4", *needs, join=join)
    fallout = Fallout(plan_of(*map(pay, needs), joined, pay("S5", "S4")), CATALOG)

    for denied in range(1, 4):
        lost = {"S4", "S5"} if 3 - denied < enough else set()
        assert set(fallout.of(needs[:denied]).steps) == lost


@given(st.data())
def test_lost_is_exactly_what_comes_after(data):
    size = data.draw(st.integers(1, 12))
    steps = [
        pay(f"S{n}", *(f"S{m}" for m in range(n) if data.draw(st.booleans()))) for n in range(size)
    ]
    denied = data.draw(st.sets(st.sampled_from([step.id for step in steps])))
    plan = plan_of(*steps)

    loss = Fallout(plan, CATALOG).of(denied)

    assert set(loss.steps) == descendants_of(plan, denied)
    assert set(Fallout(plan, CATALOG).reasons(dict.fromkeys(denied, "ann"))) == denied | set(
        loss.steps
    )
