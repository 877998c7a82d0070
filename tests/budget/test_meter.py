from __future__ import annotations

import asyncio
import json
import random
import threading
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plangate.budget.meter import Act, Meter, Spent, Steps
from plangate.plan.errors import BudgetExceeded
from plangate.plan.limits import StepCaps
from plangate.plan.value.plan import Budget

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DOLLAR = Decimal(1)


def meter(**limits) -> Meter:
    return Meter(Budget(**limits), clock=lambda: NOW)


def test_a_settled_act_costs_what_it_did_cost():
    budget = meter(max_usd=DOLLAR)

    held = budget.reserve("model", usd=Decimal("0.9"), tokens=900)
    budget.settle(held, usd=Decimal("0.1"), tokens=70)

    assert budget.spent == budget.committed
    assert (budget.spent.usd, budget.spent.tokens) == (Decimal("0.1"), 70)
    assert (budget.spent.model_calls, budget.spent.tool_calls) == (1, 0)


def test_parallel_acts_cannot_pass_a_limit_together():
    budget = meter(max_usd=DOLLAR)
    budget.reserve("tool", usd=Decimal("0.6"))

    with pytest.raises(BudgetExceeded) as caught:
        budget.reserve("tool", usd=Decimal("0.6"))

    assert (caught.value.limit, caught.value.spent, caught.value.allowed) == (
        "max_usd",
        "0.6 USD",
        "1 USD",
    )
    assert str(caught.value).startswith("max_usd: 0.6 USD spent and reserved")
    assert caught.value.hint


def test_a_released_act_never_happened():
    budget = meter(max_tool_calls=1)

    budget.release(budget.reserve("tool", usd=Decimal(0)))

    assert budget.reserve("tool", usd=Decimal(0)).number == 2
    assert budget.spent.tool_calls == 0


def test_a_limit_may_be_reached_but_not_passed():
    budget = meter(max_usd=DOLLAR, max_tokens=10, max_model_calls=1)

    budget.settle(budget.reserve("model", usd=DOLLAR, tokens=10), usd=DOLLAR, tokens=10)

    assert budget.spent.usd == DOLLAR
    assert budget.reserve("tool", usd=Decimal(0))


@pytest.mark.parametrize(
    ("limits", "act", "limit"),
    [
        ({"max_tokens": 10}, {"tokens": 11}, "max_tokens"),
        ({"max_model_calls": 0}, {}, "max_model_calls"),
        ({"max_seconds": 5.0}, {"elapsed_s": 5.1}, "max_seconds"),
        ({"max_seconds": 5.0}, {"elapsed_s": 4.0, "seconds": 1.5}, "max_seconds"),
        ({"deadline": NOW + timedelta(seconds=1)}, {"seconds": 2.0}, "deadline"),
        ({"deadline": NOW - timedelta(seconds=1)}, {}, "deadline"),
    ],
)
def test_each_limit_stops_the_act_that_would_pass_it(limits, act, limit):
    with pytest.raises(BudgetExceeded) as caught:
        meter(**limits).reserve("model", usd=Decimal(0), **act)

    assert caught.value.limit == limit


def test_a_refused_act_holds_nothing_back():
    budget = meter(max_usd=DOLLAR, max_seconds=1.0)

    with pytest.raises(BudgetExceeded):
        budget.reserve("tool", usd=DOLLAR, elapsed_s=2.0)

    assert budget.committed.usd == 0


def test_calls_of_tools_and_models_are_counted_apart():
    budget = meter(max_tool_calls=1, max_model_calls=1)

    budget.reserve("tool", usd=Decimal(0))
    budget.reserve("model", usd=Decimal(0))

    with pytest.raises(BudgetExceeded, match="max_tool_calls: 1 spent"):
        budget.reserve("tool", usd=Decimal(0))


def test_an_act_without_a_price_is_refused_under_a_cap_in_dollars():
    with pytest.raises(BudgetExceeded, match="price of this call is unknown") as caught:
        meter(max_usd=DOLLAR).reserve("tool", usd=None)

    assert "price" in caught.value.hint


def test_after_an_unknown_cost_nothing_more_is_let_through_under_a_cap():
    budget = meter(max_usd=DOLLAR)
    budget.settle(budget.reserve("model", usd=Decimal("0.1")), usd=None, tokens=5)

    with pytest.raises(BudgetExceeded, match="price of an earlier call is unknown"):
        budget.reserve("tool", usd=Decimal(0))


def test_without_a_cap_an_unknown_cost_stays_unknown():
    budget = meter()
    budget.settle(budget.reserve("tool", usd=None), usd=None, tokens=0)
    budget.settle(budget.reserve("tool", usd=DOLLAR), usd=DOLLAR, tokens=0)

    assert budget.spent.usd is None


def test_an_act_that_cost_more_than_reserved_is_recorded_and_stops_the_next():
    budget = meter(max_usd=DOLLAR)
    budget.settle(budget.reserve("tool", usd=Decimal("0.5")), usd=Decimal(2), tokens=0)

    assert budget.spent.usd == 2
    with pytest.raises(BudgetExceeded, match="2 USD spent"):
        budget.reserve("tool", usd=Decimal("0.01"))


def test_a_resumed_run_goes_on_counting():
    before = Spent(usd=DOLLAR, tokens=5, tool_calls=3, model_calls=1)
    resumed = Meter(Budget(max_tool_calls=3), spent=before)

    assert (resumed.spent.usd, resumed.spent.tokens, resumed.spent.model_calls) == (DOLLAR, 5, 1)
    with pytest.raises(BudgetExceeded):
        resumed.reserve("tool", usd=Decimal(0))


cents = st.integers(0, 60).map(lambda n: Decimal(n) / 100)
acts = st.lists(
    st.tuples(cents, st.integers(0, 60), st.sampled_from(["hold", "release", "settle"]), cents)
)


@settings(max_examples=100)
@given(acts)
def test_what_is_settled_and_held_never_passes_a_limit(steps):
    budget = meter(max_usd=DOLLAR, max_tokens=100)

    for usd, tokens, then, actual in steps:
        before = budget.committed
        if before.usd + usd > 1 or before.tokens + tokens > 100:
            with pytest.raises(BudgetExceeded):
                budget.reserve("model", usd=usd, tokens=tokens)
            continue
        held = budget.reserve("model", usd=usd, tokens=tokens)
        if then == "release":
            budget.release(held)
        elif then == "settle":
            budget.settle(held, usd=min(actual, usd), tokens=tokens)
        assert budget.committed.usd <= 1
        assert budget.committed.tokens <= 100


def test_threads_cannot_pass_a_limit_together():
    budget = meter(max_usd=DOLLAR)
    let_through = []

    def act() -> None:
        for _ in range(50):
            try:
                let_through.append(budget.reserve("tool", usd=Decimal("0.03")))
            except BudgetExceeded:
                return

    threads = [threading.Thread(target=act) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len({held.number for held in let_through}) == len(let_through) == 33


@pytest.mark.parametrize(
    ("caps", "act", "limit"),
    [
        ({"max_usd": "0.5"}, {"usd": Decimal("0.3")}, "step.max_usd"),
        ({"max_tool_calls": 1}, {"usd": Decimal(0)}, "step.max_tool_calls"),
        ({"max_tokens": 50}, {"usd": Decimal(0), "tokens": 30}, "step.max_tokens"),
    ],
)
def test_a_step_has_limits_of_its_own(caps, act, limit):
    steps = Steps(StepCaps.model_validate_json(json.dumps(caps)))
    budget = Meter(Budget(), steps=steps)
    for step in ("S1", "S2"):
        budget.reserve("tool", act=Act(f"{step}-A1", step), **act)

    with pytest.raises(BudgetExceeded) as caught:
        budget.reserve("tool", act=Act("S1-A2", "S1"), **act)

    assert caught.value.limit == limit
    assert "[limits.step]" in caught.value.hint
    assert budget.reserve("tool", **act).act.step is None


def test_a_step_that_has_worked_too_long_is_not_tried_again():
    budget = Meter(Budget(), steps=Steps(StepCaps(max_seconds=5), {"S1": Spent(seconds=4.0)}))
    budget.settle(
        budget.reserve("tool", usd=Decimal(0), act=Act("S1-A2", "S1")), usd=Decimal(0), tokens=0
    )
    budget.took("S1", 1.5)

    with pytest.raises(BudgetExceeded, match=r"step.max_seconds: 5.5 s spent"):
        budget.reserve("tool", usd=Decimal(0), act=Act("S1-A3", "S1"))


def one_call(budget: Meter, lots: random.Random, over: list[Decimal]):
    """Make a call of random size that ends in a random way; yield where others may run."""
    asked = Decimal(lots.randint(1, 6)) / 100
    try:
        held = budget.reserve("model", usd=asked, tokens=lots.randint(0, 30))
    except BudgetExceeded:
        return
    yield
    if lots.random() < 0.3:
        budget.release(held)
        return
    cost = asked * lots.randint(0, 5) / 4  # a model may answer a little longer than it should
    budget.settle(held, usd=cost, tokens=held.asked.tokens)
    over.append(max(Decimal(0), cost - asked))


@settings(max_examples=25)
@given(st.integers(0, 10**6))
def test_fifty_tasks_spend_no_more_than_the_cap_and_what_models_exceed(seed):
    budget, lots, over = meter(max_usd=DOLLAR, max_tokens=900), random.Random(seed), []  # noqa: S311

    async def call() -> None:
        for _ in one_call(budget, lots, over):
            await asyncio.sleep(0)
            if lots.random() < 0.2:
                asyncio.current_task().cancel()

    async def all_calls() -> None:
        await asyncio.gather(*(call() for _ in range(50)), return_exceptions=True)

    asyncio.run(all_calls())

    assert budget.spent.usd <= DOLLAR + sum(over)
    assert budget.spent.tokens <= 900
    assert budget.spent.model_calls == len(over)


def test_fifty_threads_spend_no_more_than_the_cap_and_what_models_exceed():
    budget, over = meter(max_usd=DOLLAR), []

    def call(seed: int) -> None:
        for _ in one_call(budget, random.Random(seed), over):  # noqa: S311
            pass

    threads = [threading.Thread(target=call, args=(seed,)) for seed in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert budget.spent.usd <= DOLLAR + sum(over)
    assert budget.spent == budget.committed
    assert budget.spent.model_calls == len(over)
