"""Checking a plan is work linear in its size. Calls are counted, not seconds: a busy machine
makes no difference. The larger plan has more rules than any cache holds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import chain
from types import FrameType
from typing import Any

import pytest

from plangate.plan.facts import Facts
from plangate.plan.layers.run import validate
from plangate.plan.shape.tokens import tokens_of
from plangate.plan.value.frozen import parse
from plangate.plan.value.plan import Author, Plan
from tests.plan import test_flow
from tests.plan.test_flow import asks, step
from tests.samples.cases import base
from tests.samples.catalogs import desk

MORE = 4
"""How much larger the larger plan is."""


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
            "preconditions": [f"steps.L{at - 1}.status == 'done'"] if at % 5 else [],
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


def in_a_row(at: int) -> list[str]:
    return [f"L{at - 1}"] if at else ["S1"]


def all_at_once(_: int) -> list[str]:
    return ["S1"]


def calls(check: Callable[[], Any]) -> int:
    """How many functions are called, ours and built-in ones."""
    count = 0

    def one_more(_: FrameType, event: str, __: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(one_more)
    try:
        check()
    finally:
        sys.setprofile(before)
    return count


def grows(plans: tuple[Plan, Plan], facts: Facts) -> float:
    """How many times as dear a step is in the larger of two plans; neither was looked at before."""
    each = []
    for plan in plans:
        tokens_of.cache_clear()
        count = calls(lambda plan=plan: validate(plan, facts))  # type: ignore[misc]
        each.append(count / len(plan.steps))
    return each[1] / each[0]


@pytest.mark.slow
@pytest.mark.parametrize(("after", "count"), [(layered, 700), (in_a_row, 150), (all_at_once, 150)])
def test_a_step_of_a_large_plan_costs_what_one_of_a_small_plan_does(after: Any, count: int):
    plans = looks(count, after), looks(MORE * count, after)
    facts = desk("migration").facts(None)

    assert grows(plans, facts) < 1.02
    assert validate(plans[0], facts).errors == ()


def own_value(at: int) -> tuple[Any, ...]:
    """Each payment goes where its own search says, once a person saw that."""
    found = f"${{S{at}.memo}}"
    shown = asks(f"A{at}", details={"to": found})
    return step(f"S{at}", "search"), shown, step(f"P{at}", "pay", to=found, after=(f"A{at}",))


def one_value(at: int) -> tuple[Any, ...]:
    """All payments go where one search says, and each asks for itself."""
    first = (step("S", "search"),) if at == 0 else ()
    shown = asks(f"A{at}", details={"to": "${S.memo}"}, after=(f"P{at - 1}",) if at else ())
    return *first, shown, step(f"P{at}", "pay", to="${S.memo}", after=(f"A{at}",))


def one_voucher(at: int) -> tuple[Any, ...]:
    """One question vouches for what all payments read."""
    first = (step("S", "search"), asks("A", details={"to": "${S.memo}"})) if at == 0 else ()
    return *first, step(f"P{at}", "pay", to="${S.memo}", after=(f"P{at - 1}" if at else "A",))


def handed_on(at: int) -> tuple[Any, ...]:
    """What an outsider wrote goes from model to model, and on to a payment."""
    first = (step("S", "read_mail"), step("P", "pay", to="ann")) if at == 0 else ()
    return *first, step(f"M{at}", None, text=f"${{M{at - 1}.text}}" if at else "${S.text}")


@pytest.mark.parametrize("part", [own_value, one_value, one_voucher, handed_on])
def test_labels_are_followed_through_a_large_plan_as_cheaply_as_through_a_small_one(part: Any):
    def plan(parts: int) -> Plan:
        steps = tuple(chain.from_iterable(part(at) for at in range(parts)))
        author = Author(kind="planner")
        return Plan(goal_id="g", goal="g", task_type="t", steps=steps, author=author)

    assert grows((plan(50), plan(50 * MORE)), test_flow.FACTS) < 1.02
