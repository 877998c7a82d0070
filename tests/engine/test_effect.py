from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from decimal import Decimal

import pytest
from typing_extensions import TypedDict

from plangate.journal.attempts import AttemptEnded
from plangate.plan.value.plan import Author, Plan
from plangate.plan.value.step import Step
from plangate.tools.answers import Found, Operation, ToolFailed
from plangate.tools.context import ToolContext
from plangate.tools.tool import Tool, tool


class Paid(TypedDict):
    operation_id: str


@dataclass
class Bank:
    """The outside: it remembers every payment, and by which key."""

    payments: list[str | None] = field(default_factory=list)
    raises: list[BaseException | None] = field(default_factory=list)
    knows: bool | None = True
    pending: int = 0
    polls: int = 0

    def pay(self, key: str | None) -> Paid:
        error = self.raises.pop(0) if self.raises else None
        if isinstance(error, ToolFailed):
            raise error
        self.payments.append(key)
        if error is not None:
            raise error
        return {"operation_id": "OP-1"}


def paying(bank: Bank, kind: str) -> Tool:
    async def reconcile(effect_key: str, args: object, context: ToolContext) -> Found:
        happened = None if bank.knows is None else effect_key in bank.payments
        found = {"operation_id": "OP-1"}
        return Found(happened, operation_id="OP-1" if kind == "accepting" else None, output=found)

    async def status(operation_id: str, context: ToolContext) -> Operation:
        bank.polls += 1
        if bank.polls <= bank.pending:
            return Operation("pending")
        return Operation("done", output={"operation_id": operation_id}, business_state="paid")

    more = {
        "once": {},
        "keyed": {"idempotent": True},
        "asking": {"reconcile": reconcile},
        "accepting": {"reconcile": reconcile, "status": status},
    }[kind]

    @tool(
        effect="irreversible",
        key="pay:{amount}",
        scope="global",
        timeout_s=0.4,
        usd=Decimal("0.05"),
        errors={"no_funds": "business_rejection", "busy": "transient"},
        **more,
    )
    async def pay(amount: int, context: ToolContext) -> Paid:
        """Pay."""
        return bank.pay(context.effect_key)

    return pay


def plan() -> Plan:
    step = Step(id="S", objective="pay", tool="pay", args={"amount": 7})
    return Plan(
        goal_id="g", goal="pay", task_type="t", steps=(step,), author=Author(kind="template")
    )


LOST = ConnectionResetError("connection lost after the request was sent")
SAYS_NO = ToolFailed("no_funds")
BUSY = ToolFailed("busy")


@pytest.mark.parametrize(
    ("kind", "raises", "ends", "payments", "state"),
    [
        ("once", [], ("done", ""), 1, "done"),
        ("once", [BUSY], ("done", ""), 1, "done"),
        ("once", [SAYS_NO], ("declined", "declined"), 0, "failed"),
        ("once", [LOST], ("trigger", "effect_unknown"), 1, "unknown"),
        ("keyed", [LOST], ("done", ""), 2, "done"),
        ("asking", [LOST], ("done", ""), 1, "done"),
        ("accepting", [LOST], ("done", ""), 1, "done"),
        ("accepting", [], ("done", ""), 1, "done"),
    ],
)
async def test_an_effect_is_repeated_only_where_the_outside_keeps_it_single(
    lab, kind, raises, ends, payments, state
):
    bank = Bank(raises=list(raises))

    halt, session = await lab.run(plan(), [paying(bank, kind)])

    assert (halt.reason, halt.kind) == ends
    assert len(bank.payments) == payments
    assert len(set(bank.payments)) <= 1
    assert [row.state for row in lab.journal.ledger.list()] == [state]
    session.close()


@pytest.mark.parametrize("knows", [None, False])
async def test_what_nobody_can_say_goes_to_a_person_and_what_did_not_happen_is_done(lab, knows):
    bank = Bank(raises=[LOST], knows=knows)
    if knows is False:
        bank.pay = lambda key: _lost_before(bank, key)

    halt, session = await lab.run(plan(), [paying(bank, "asking")])

    wanted = "effect_unknown" if knows is None else ""
    assert halt.kind == wanted
    assert len(bank.payments) == 1
    session.close()


def _lost_before(bank: Bank, key: str | None) -> Paid:
    if bank.raises:
        raise bank.raises.pop()
    bank.payments.append(key)
    return {"operation_id": "OP-1"}


async def test_an_operation_that_is_still_pending_is_polled_and_not_ordered_again(lab):
    bank = Bank(pending=3)

    halt, session = await lab.run(plan(), [paying(bank, "accepting")])

    assert halt.reason == "done"
    assert bank.polls == 4
    assert lab.journal.ledger.list()[0].business_state == "paid"
    session.close()


async def test_a_call_that_overruns_its_deadline_is_unknown_and_never_simply_repeated(lab):
    bank = Bank()

    @tool(effect="irreversible", key="pay:{amount}", scope="global", timeout_s=0.05)
    async def pay(amount: int) -> Paid:
        """Pay."""
        bank.payments.append("x")
        await asyncio.sleep(60)
        return {"operation_id": "never"}

    halt, session = await lab.run(plan(), [pay])

    assert (halt.kind, halt.code) == ("effect_unknown", "timeout")
    assert len(bank.payments) == 1
    session.close()


@pytest.mark.parametrize("kind", ["once", "keyed", "asking", "accepting"])
async def test_a_second_delivery_of_a_done_effect_reuses_its_result(lab, kind):
    bank = Bank()
    _, first = await lab.run(plan(), [paying(bank, kind)])
    first.close()

    halt, second = await lab.run(plan(), [paying(bank, kind)])

    assert halt.reason == "done"
    assert len(bank.payments) == 1
    ended = [e.event for e in lab.journal.log.read("r2") if isinstance(e.event, AttemptEnded)]
    assert [(each.reused, each.usd) for each in ended] == [("ledger", 0)]
    second.close()


async def test_two_runs_that_want_one_effect_at_once_make_it_once(lab):
    bank = Bank(pending=1)
    tools = [paying(bank, "accepting")]

    ends = await asyncio.gather(lab.run(plan(), tools), lab.run(plan(), tools))

    assert len(bank.payments) == 1
    assert "done" in {halt.reason for halt, _ in ends}
    for _, session in ends:
        session.close()
