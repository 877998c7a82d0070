from __future__ import annotations

import asyncio
from decimal import Decimal

import pytest
from typing_extensions import TypedDict

from plangate.engine.dataflow import run_plan
from plangate.journal.attempts import AttemptEnded, AttemptStarted
from plangate.journal.events import RunResumed
from plangate.journal.reservations import account_of
from plangate.plan.limits import DayCaps
from plangate.plan.policy import Policy
from plangate.plan.spent import Spent
from plangate.plan.value.plan import Budget
from plangate.plan.value.step import Check, Step
from plangate.tools.answers import ToolFailed
from plangate.tools.tool import tool
from tests.engine.conftest import plan_of

DOLLAR = Decimal(1)


class Seen(TypedDict):
    value: int


def looking(calls: list[int], **contract):
    @tool(effect="read", errors={"busy": "transient"}, **contract)
    async def look(n: int) -> Seen:
        """Look."""
        calls.append(n)
        return {"value": n}

    return look


def acting(done: list[int], **contract):
    @tool(effect="write", key="act:{n}", scope="goal", **contract)
    def act(n: int) -> Seen:
        """Act."""
        done.append(n)
        return {"value": n}

    return act


def reads(n: int, **more) -> Step:
    return Step(id=f"s{n}", kind="tool", objective="look", tool="look", args={"n": n}, **more)


def acts(n: int, **more) -> Step:
    return Step(id=f"s{n}", kind="tool", objective="act", tool="act", args={"n": n}, **more)


SEEN = Check(
    id="seen",
    level="L2",
    claim="It is there",
    tool="look",
    args={"n": 1},
    rule="observed.value == 1",
)


async def test_of_eight_parallel_calls_under_a_limit_of_six_no_seventh_starts(lab):
    # pydantic/pydantic-ai#3120: the limit is tested after a batch has started.
    calls: list[int] = []
    plan = plan_of(*map(reads, range(8)), budget=Budget(max_tool_calls=6))

    halt, session = await lab.run(plan, [looking(calls)])

    assert (halt.reason, halt.limit.limit, len(calls)) == ("budget", "max_tool_calls", 6)
    assert session.view.tool_calls == 6
    session.close()


async def test_of_eight_parallel_steps_at_thirty_cents_a_dollar_lets_three_start(lab):
    # BerriAI/litellm#35524: parallel calls all pass the check and overspend.
    calls: list[int] = []
    plan = plan_of(*map(reads, range(8)), budget=Budget(max_usd=DOLLAR))

    halt, session = await lab.run(plan, [looking(calls, usd=Decimal("0.30"))])

    assert (halt.limit.limit, len(calls), session.view.spent_usd) == ("max_usd", 3, Decimal("0.9"))
    session.close()


async def test_a_call_without_a_price_is_not_made_under_a_cap_in_dollars(lab):
    calls: list[int] = []
    plan = plan_of(reads(1), budget=Budget(max_usd=DOLLAR))

    halt, session = await lab.run(plan, [looking(calls, usd=None)])

    assert ("price of this call is unknown" in halt.says, calls) == (True, [])
    session.close()


async def test_an_effect_that_could_not_be_checked_is_not_begun(lab):
    done, calls = [], []
    plan = plan_of(acts(1, success=(SEEN,)), budget=Budget(max_tool_calls=1))

    halt, session = await lab.run(plan, [acting(done), looking(calls)])

    assert (halt.reason, done, calls) == ("budget", [], [])
    session.close()


async def test_the_look_of_a_check_is_a_tool_call_with_a_price(lab):
    done, calls = [], []
    plan = plan_of(acts(1, success=(SEEN,)))

    halt, session = await lab.run(
        plan, [acting(done, usd=Decimal("0.2")), looking(calls, usd=Decimal("0.05"))]
    )

    view = session.view
    assert (halt.reason, view.tool_calls, view.spent_usd) == ("done", 2, Decimal("0.25"))
    assert (view.by_step["s1"].tool_calls, view.by_step["s1"].usd) == (2, Decimal("0.25"))
    session.close()


async def test_each_retry_counts_and_a_result_from_the_ledger_does_not(lab):
    calls: list[int] = []

    @tool(effect="read", errors={"busy": "transient"}, max_attempts=3, usd=Decimal("0.1"))
    async def look(n: int) -> Seen:
        """Look."""
        calls.append(n)
        if len(calls) < 3:
            raise ToolFailed("busy")
        return {"value": n}

    plan = plan_of(reads(1), budget=Budget(max_tool_calls=3, max_usd=DOLLAR))
    halt, session = await lab.run(plan, [look])

    assert (halt.reason, session.view.tool_calls) == ("done", 3)
    assert session.view.spent_usd == Decimal("0.3")
    session.close()


async def test_a_call_that_was_cancelled_after_it_began_is_charged_once(lab):
    began = asyncio.Event()

    @tool(effect="read", usd=Decimal("0.4"))
    async def look(n: int) -> Seen:
        """Look."""
        began.set()
        await asyncio.sleep(60)
        return {"value": n}

    session = await asyncio.to_thread(lab.session)
    bench = lab.bench(session, plan_of(reads(1)), [look])
    running = asyncio.create_task(run_plan(bench))
    await began.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)

    assert session.view.spent_usd == bench.meter.spent.usd == Decimal("0.4")
    assert session.view.tool_calls == bench.meter.spent.tool_calls == 1
    assert bench.meter.committed == bench.meter.spent
    session.close()


@pytest.mark.parametrize(("ledgered", "usd", "calls"), [(False, "0.4", 1), (True, "0", 0)])
async def test_of_an_attempt_whose_owner_died_only_what_did_not_happen_is_free(
    lab, ledgered, usd, calls
):
    plan = plan_of(acts(1) if ledgered else reads(1))
    session = await asyncio.to_thread(lab.session)
    bench = lab.bench(session, plan, [acting([]), looking([])])
    session.emit(
        AttemptStarted(
            attempt_id="s1-A1",
            step="s1",
            plan_version=1,
            capability=f"{plan.steps[0].tool}@1",
            args=session.put({"n": 1}),
            args_sha256="0",
            usd=Decimal("0.4"),
            ledgered=ledgered,
        )
    )
    session.close()
    del bench

    later = await asyncio.to_thread(lab.session, session.run.run_id)

    ended = [each.ended for each in later.view.attempts.values()]
    assert [type(each) for each in ended] == [AttemptEnded]
    assert (str(later.view.spent_usd), later.view.tool_calls) == (usd, calls)
    later.close()


async def test_a_step_that_passes_its_own_limit_stops_the_run_and_names_the_rule(lab):
    limits = "[limits.step]\nmax_tool_calls = 1\n"
    lab.policy = Policy.from_toml(f'schema = 1\n[[allow]]\ntool = "*"\n{limits}')
    done: list[int] = []

    halt, session = await lab.run(plan_of(acts(1, success=(SEEN,))), [acting(done), looking([])])

    assert (halt.limit.limit, done) == ("step.max_tool_calls", [])
    session.close()


async def test_the_next_owner_frees_of_the_day_only_what_was_certainly_not_begun(lab):
    session = await asyncio.to_thread(lab.session)
    caps, asked = DayCaps(max_tool_calls=9), Spent(usd=Decimal("0.4"), tool_calls=1)
    session.emit(RunResumed(owner="before"))
    session.purse.hold(asked, caps, act="s1-A1", ledgered=True)
    session.purse.hold(asked, caps, act="s2-A1")
    session.close()

    later = await asyncio.to_thread(lab.session, session.run.run_id)

    left = later.journal.reservations
    assert left.spent(account_of(later.run.principal)) == asked
    assert (left.left_behind(later.lease), later.view.spent) == ((), Spent())
    later.close()
