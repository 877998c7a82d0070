from __future__ import annotations

import asyncio
import random
import threading
from datetime import date
from decimal import Decimal

import pytest

from plangate.budget.meter import Act, Day, Meter
from plangate.journal.journal import Journal
from plangate.journal.owner import owner_name
from plangate.journal.purse import Purse
from plangate.journal.reservations import account_of
from plangate.plan.errors import BudgetExceeded, LeaseLost
from plangate.plan.facts import Rights
from plangate.plan.limits import DayCaps
from plangate.plan.spent import Spent
from plangate.plan.value.plan import Budget

ANN = account_of(Rights(principal="ann", tenant="acme"))
CAPS = DayCaps(max_usd=Decimal("1.00"), max_tool_calls=40)


def cents(amount: int) -> Spent:
    return Spent(usd=Decimal(amount) / 100, tool_calls=1)


def purse(journal, lease, account=ANN) -> Purse:
    return Purse(journal.reservations, lease, account)


def owner_of(journal, new_run, run_id):
    new_run(run_id)
    return journal.runs.acquire(run_id, owner_name(), 30)


def test_two_runs_of_one_principal_share_the_day(journal, lease, new_run):
    other = owner_of(journal, new_run, "r2")
    purse(journal, lease).hold(cents(60), CAPS, act="S1-A1")

    with pytest.raises(BudgetExceeded) as caught:
        purse(journal, other).hold(cents(60), CAPS, act="S1-A1")

    assert (caught.value.limit, caught.value.spent, caught.value.needs, caught.value.allowed) == (
        "day.max_usd", "0.6 USD", "0.6 USD", "1.00 USD",
    )  # fmt: skip
    assert "midnight UTC" in caught.value.hint
    assert journal.reservations.spent(ANN) == cents(60)


def test_a_day_says_what_counts_for_each_principal_and_what_of_it_is_only_held(
    journal, lease, new_run
):
    bob = account_of(Rights(principal="bob"))
    mine = purse(journal, lease)
    mine.end(mine.hold(cents(60), CAPS, act="S1-A1"), cents(10))
    mine.hold(cents(20), CAPS, act="S2-A1")
    purse(journal, owner_of(journal, new_run, "r2"), bob).hold(cents(5), CAPS, act="S1-A1")

    ann, other = journal.reservations.accounts()

    assert (ann.principal, ann.tenant, ann.runs) == ("ann", "acme", 1)
    assert (ann.counts, ann.held) == (cents(10) + cents(20), cents(20))
    assert (other.principal, other.tenant, other.counts) == ("bob", None, cents(5))
    assert journal.reservations.accounts(date(2020, 1, 1)) == ()


@pytest.mark.parametrize(
    "other",
    [
        Rights(principal="bob", tenant="acme"),
        Rights(principal="ann", tenant="umbrella"),
        Rights(principal="ann"),
    ],
)
def test_principals_are_apart_and_so_are_tenants(journal, lease, other):
    purse(journal, lease).hold(cents(100), CAPS, act="S1-A1")

    purse(journal, lease, account_of(other)).hold(cents(100), CAPS, act="S1-A2")

    assert journal.reservations.spent(account_of(other)) == cents(100)


def test_what_was_not_spent_is_free_once_it_is_written_with_the_next_act(journal, lease):
    mine = purse(journal, lease)
    mine.end(mine.hold(cents(60), CAPS, act="S1-A1"), cents(10))
    mine.end(mine.hold(cents(80), CAPS, act="S2-A1"), None)

    assert journal.reservations.spent(ANN) == cents(10) + cents(80)
    mine.close()
    assert journal.reservations.spent(ANN) == cents(10)


def test_the_end_of_an_act_is_written_although_the_next_one_is_refused(journal, lease):
    mine = purse(journal, lease)
    mine.end(mine.hold(cents(90), CAPS, act="S1-A1"), cents(50))

    with pytest.raises(BudgetExceeded):
        mine.hold(cents(60), CAPS, act="S2-A1")

    assert journal.reservations.spent(ANN) == cents(50)


def test_an_unknown_cost_ends_the_day_where_dollars_are_capped(journal, lease):
    mine = purse(journal, lease)
    mine.end(mine.hold(cents(10), CAPS, act="S1-A1"), Spent(usd=None, tool_calls=1))

    with pytest.raises(BudgetExceeded, match="an earlier call is unknown"):
        mine.hold(cents(1), CAPS, act="S2-A1")


def test_a_fraction_that_no_column_holds_costs_the_more(journal, lease):
    tiny = Spent(usd=Decimal("0.0000000001"), tool_calls=1)

    purse(journal, lease).hold(tiny, CAPS, act="S1-A1")

    assert journal.reservations.spent(ANN).usd == Decimal("0.000000001")


def test_a_new_day_has_a_budget_of_its_own(journal, lease, clock):
    mine = purse(journal, lease)
    mine.hold(cents(100), CAPS, act="S1-A1")
    clock.jump(86_400)

    mine.hold(cents(100), CAPS, act="S2-A1")

    assert journal.reservations.spent(ANN) == cents(100)


def test_a_clock_that_is_set_back_over_midnight_opens_no_second_budget(journal, lease, clock):
    mine = purse(journal, lease)
    clock.jump(-86_400)
    mine.hold(cents(30), CAPS, act="S1-A1")
    clock.jump(86_400)
    mine.hold(cents(100), CAPS, act="S2-A1")
    clock.jump(-86_400)

    with pytest.raises(BudgetExceeded, match=r"day.max_usd: 1 USD spent"):
        mine.hold(cents(50), CAPS, act="S3-A1")


def test_a_former_owner_holds_and_ends_nothing(journal, lease, clock):
    mine = purse(journal, lease)
    row = mine.hold(cents(60), CAPS, act="S1-A1")
    clock.jump(30)
    journal.runs.acquire("r", owner_name(), 30)

    with pytest.raises(LeaseLost):
        mine.hold(cents(1), CAPS, act="S2-A1")
    mine.end(row, None)
    mine.close()

    assert journal.reservations.spent(ANN) == cents(60)


def test_only_what_certainly_did_not_happen_is_free_again(journal, lease, clock):
    mine = purse(journal, lease)
    for act in ("S1-A1", "S2-A1"):
        mine.hold(cents(30), CAPS, act=act, ledgered=act == "S2-A1")
    clock.jump(30)
    later = journal.runs.acquire("r", owner_name(), 30)

    read, effect = sorted(journal.reservations.left_behind(later), key=lambda each: each.act)
    journal.reservations.take_back(later, [effect.row_id], [read.row_id])

    assert (read.ledgered, effect.ledgered) == (False, True)
    assert journal.reservations.spent(ANN) == cents(30)
    assert journal.reservations.left_behind(later) == ()


def test_a_deleted_run_leaves_the_day_as_it_was_and_no_name(journal, lease, clock):
    mine = purse(journal, lease)
    mine.end(mine.hold(cents(70), CAPS, act="S1-A1"), cents(70))
    mine.close()
    journal.retention.remove(lease)

    assert journal.reservations.spent(ANN) == cents(70)
    with journal.store.read() as tx:
        assert tx.exec_driver_sql("SELECT run_id, act FROM reservations").all() == [("", "")]


def spend(meter: Meter, seed: int, spent: list[Decimal]) -> None:
    """Make calls of random size that succeed, fail or never happen; count what they cost."""
    lots = random.Random(seed)  # noqa: S311 - a test that can be run again
    for number in range(7):
        asked = Decimal(lots.randint(0, 9)) / 100
        try:
            held = meter.reserve("tool", usd=asked, act=Act(f"S{number}-A{seed}"))
        except BudgetExceeded:
            continue
        how = lots.choice(["done", "failed", "cancelled"])
        if how == "cancelled":
            meter.release(held)
            continue
        cost = asked if how == "failed" else asked * lots.randint(0, 4) / 4
        meter.settle(held, usd=cost, tokens=0)
        spent.append(cost)


@pytest.mark.parametrize("seed", [1, 2])
def test_fifty_calls_over_two_connections_stay_below_the_cap(journal, lease, new_run, clock, seed):
    spent: list[Decimal] = []
    with Journal.open(journal.url, clock=clock) as second:
        purses = [purse(journal, lease), purse(second, owner_of(second, new_run, "r2"))]
        meters = [Meter(Budget(), day=Day(each, CAPS)) for each in purses]
        threads = [
            threading.Thread(target=spend, args=(meters[n % 2], seed * 100 + n, spent))
            for n in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for each in purses:
            each.close()

    day = journal.reservations.spent(ANN)
    assert day.usd == sum(spent) <= CAPS.max_usd
    assert day.tool_calls == len(spent) <= CAPS.max_tool_calls
    assert len(spent) > 10


async def test_a_call_cancelled_while_it_is_written_down_holds_nothing(journal, lease):
    mine = purse(journal, lease)
    meter = Meter(Budget(), day=Day(mine, CAPS))
    calls = [
        asyncio.create_task(meter.areserve("tool", usd=Decimal("0.01"), act=Act(f"S{n}-A1")))
        for n in range(8)
    ]
    await asyncio.sleep(0)
    for call in calls[:4]:
        call.cancel()
    held = await asyncio.gather(*calls, return_exceptions=True)
    mine.close()

    assert [type(each).__name__ for each in held[:4]] == ["CancelledError"] * 4
    assert (
        meter.committed
        == journal.reservations.spent(ANN)
        == Spent(usd=Decimal("0.04"), tool_calls=4)
    )
