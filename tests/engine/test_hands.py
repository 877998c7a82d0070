from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
import sqlalchemy as sa
from typing_extensions import TypedDict

from plangate.engine.dataflow import run_plan
from plangate.engine.underway import quiet
from plangate.journal.attempts import AttemptEnded
from plangate.journal.ledger import Intent
from plangate.journal.owner import process_of
from plangate.journal.schema import EFFECTS, RUNS
from plangate.plan.effects import effect_key
from plangate.plan.errors import LeaseLost, RunBusy
from plangate.plan.value.frozen import digest
from plangate.plan.value.step import Step
from plangate.tools.answers import Found, Operation
from plangate.tools.tool import Tool, tool
from tests.engine.conftest import Lab, plan_of
from tests.engine.test_underway import Bank, Paid, pay
from tests.owners import Other, beside


@pytest.fixture
def other() -> Iterator[Other]:
    """An owner in another process of this machine, which lives as a frozen one does."""
    with beside() as made:
        yield made


INTENT = Intent(
    effect_key="",
    business_key="pay:1",
    run_id="",
    goal_id="g",
    step="a",
    plan_version=1,
    attempt_id="a-A1",
    tool="pay",
    tool_version="1",
    args_sha256=digest({"n": 1}),
)


def left_by(lab: Lab, name: str, each: Tool, *, lease_s: float = -1) -> str:
    """Leave an intent behind, as an owner does that stopped in the middle of its call."""
    with lab.session() as made:
        run_id = made.run.run_id
    lease = lab.journal.runs.acquire(run_id, name, lease_s)
    key = effect_key(each.spec, {"n": 1}, "g")
    intent = replace(INTENT, effect_key=key.key, business_key=key.business, run_id=run_id)
    lab.journal.ledger.intend(lease, intent)
    return run_id


@pytest.mark.parametrize(("same_run", "holds_between"), [(True, 0), (True, 3), (False, 1)])
async def test_no_trace_outside_proves_nothing_while_a_silent_caller_lives_whoever_held_the_run(
    lab, other, same_run, holds_between
):
    bank = Bank()
    run_id = left_by(lab, other.name, bank.paying())
    for _ in range(holds_between):
        lab.session(run_id).close()
    mine, plan, tools = run_id if same_run else "", plan_of(pay("a")), [bank.paying()]

    halt, session = await lab.run(plan, tools, mine)
    session.close()
    alive = (halt.code, len(bank.payments), lab.journal.ledger.list()[0].state)
    says = [each.why for each in session.view.steps.values()]
    other.end()
    halt, session = await lab.run(plan, tools)

    assert alive == ("still_running", 0, "unknown")
    assert says[0].startswith(f"{process_of(other.name)} of this machine has it in hand, and may")
    assert (halt.reason, bank.payments) == ("done", [1])
    session.close()


@pytest.mark.parametrize(("lease_s", "code"), [(60, "in_flight"), (-1, "still_running")])
async def test_another_run_lets_be_what_a_living_owner_is_doing(lab, other, lease_s, code):
    bank = Bank()
    left_by(lab, other.name, bank.paying(), lease_s=lease_s)

    halt, session = await lab.run(plan_of(pay("a")), [bank.paying(max_attempts=1)])

    assert (halt.code, bank.payments) == (code, [])
    session.close()


async def test_an_effect_is_in_its_owners_hands_until_the_call_has_ended_and_no_longer(lab):
    until, bank = threading.Event(), Bank()
    bank.slow.append(until)

    _, session = await lab.run(plan_of(pay("a")), [bank.paying(timeout_s=0.1)])
    session.close()
    meanwhile = lab.journal.ledger.list()[0]
    until.set()
    assert await quiet((lab.journal.url, meanwhile.effect_key), within_s=5)
    await told(lab, meanwhile.effect_key)
    afterwards = lab.journal.ledger.list()[0]

    assert (meanwhile.state, meanwhile.owner) == ("unknown", session.lease.owner)
    assert (afterwards.state, afterwards.owner) == ("unknown", "")


async def told(lab: Lab, key: str) -> None:
    async with asyncio.timeout(5):
        while lab.journal.ledger.get(key).owner:  # noqa: ASYNC110 (a thread's end, not ours)
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("ends", ["overruns", "cancelled"])
async def test_an_effect_of_unknown_outcome_is_let_go_of_where_its_call_is_over(lab, ends):
    @tool(effect="irreversible", key="pay:{n}", scope="global", timeout_s=0.1)
    async def pay_late(n: int) -> Paid:
        """Pay, and never answer."""
        if ends == "cancelled":
            task.cancel()
        await asyncio.sleep(60)
        return {"receipt": "never"}

    session = lab.session()
    step = Step(id="a", objective="o", tool="pay_late", args={"n": 1})
    bench = lab.bench(session, plan_of(step), [pay_late])
    task = asyncio.ensure_future(run_plan(bench))
    await asyncio.wait([task])

    [row] = lab.journal.ledger.list()
    assert (row.state, row.owner) == ("unknown", "")
    session.close()


async def test_an_owner_that_lost_its_run_lets_go_of_the_effect_once_its_call_has_ended(lab):
    async def overtake() -> None:
        with lab.journal.store.write() as tx:
            tx.execute(sa.update(RUNS).values(owner=None, lease_until=None))
        lab.session("r1").close()

    @tool(effect="irreversible", key="pay:{n}", scope="global", timeout_s=5)
    async def pay_slowly(n: int) -> Paid:
        """Pay, while the run goes to somebody else."""
        await overtake()
        return {"receipt": "R"}

    step = Step(id="a", objective="o", tool="pay_slowly", args={"n": 1})
    with pytest.raises(LeaseLost):
        await lab.run(plan_of(step), [pay_slowly])

    [row] = lab.journal.ledger.list()
    assert (row.state, row.owner) == ("intended", "")


class Receipt(TypedDict):
    receipt: str
    operation_id: str


@dataclass
class Register:
    """An outside that, while it is asked or told, has the run come back that began the effect."""

    comes_back: Callable[[], None]
    payments: int = 1

    def paying(self, kind: str) -> Tool:
        found = {"receipt": "R", "operation_id": "OP"}

        def asked(_key: str, _args: object, _context: object) -> Found:
            self.comes_back()
            return Found(happened=True, operation_id="OP", output=found)

        def status(_operation: str, _context: object) -> Operation:
            self.comes_back()
            return Operation("done", output=found)

        def pay(n: int) -> Receipt:
            """Pay."""
            self.comes_back()
            self.payments = 1
            return found

        more: dict[str, Any] = {
            "asked": {"reconcile": asked},
            "polled": {"reconcile": asked, "status": status},
            "told again": {"idempotent": True},
        }[kind]
        contract = {"effect": "irreversible", "key": "pay:{n}", "scope": "global", "timeout_s": 5}
        return tool(**contract, **more)(pay)


@pytest.mark.parametrize("kind", ["asked", "polled", "told again"])
async def test_a_run_that_finds_out_about_anothers_effect_is_not_disturbed_by_it(lab, kind):
    said: list[object] = []

    def come_back() -> None:
        with lab.session(run_id) as session:
            ledger, lease = lab.journal.ledger, session.lease
            [row] = ledger.list()
            intent = replace(INTENT, effect_key=row.effect_key, run_id=run_id)
            said.append(ledger.intend(lease, intent).fresh)
            with pytest.raises(RunBusy):
                ledger.settle(lease, row.effect_key, "done")
            with pytest.raises(RunBusy):
                ledger.take(lease, row.effect_key)

    register = Register(come_back)
    each = register.paying(kind)
    run_id = left_by(lab, "elsewhere.0:1:1:gone", each)

    halt, session = await lab.run(plan_of(pay("a")), [each])

    assert (halt.reason, said[:1]) == ("done", [False])
    assert [(row.state, row.run_id) for row in lab.journal.ledger.list()] == [("done", run_id)]
    session.close()


async def test_an_effect_that_somebody_else_settles_under_a_call_is_taken_from_the_ledger(lab):
    """Its own lease was over by then; nobody took its run, so it may write, and finds it done."""

    def settle_it() -> None:
        if not once:
            once.append(1)
            with lab.journal.store.write() as tx:
                tx.execute(sa.update(EFFECTS).values(owner=""))
            other = lab.session(run_id)
            [row] = lab.journal.ledger.list()
            output = other.put({"receipt": "R", "operation_id": "OP"})
            other.flush()
            lab.journal.ledger.settle(other.lease, row.effect_key, "done", output=output)
            other.close()

    once: list[int] = []
    each = Register(settle_it).paying("asked")
    run_id = left_by(lab, "elsewhere.0:1:1:gone", each)

    halt, session = await lab.run(plan_of(pay("a")), [each])

    assert halt.reason == "done"
    ends = [e.event for e in lab.journal.log.read("r2") if isinstance(e.event, AttemptEnded)]
    assert [(end.error_code, end.reused) for end in ends] == [
        ("in_other_hands", ""),
        ("", "ledger"),
    ]
    session.close()
