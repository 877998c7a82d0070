from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from typing_extensions import TypedDict

from plangate.plan.value.step import Step
from plangate.tools.answers import Found
from plangate.tools.tool import Tool, tool
from tests.engine.conftest import plan_of


class Paid(TypedDict):
    receipt: str


@dataclass
class Bank:
    """Takes its time, and says truly what has happened up to now."""

    slow: list[threading.Event] = field(default_factory=list)
    """What each call waits for, in order; a call beyond them does not wait."""

    payments: list[int] = field(default_factory=list)

    def paying(self, **contract: Any) -> Tool:
        def was_paid(_key: str, _args: object, _context: object) -> Found:
            return Found(bool(self.payments), output={"receipt": "R"})

        def pay(n: int, note: str = "") -> Paid:
            """Pay."""
            if self.slow:
                self.slow.pop(0).wait(5)
            self.payments.append(n)
            return {"receipt": "R"}

        known = {"effect": "irreversible", "key": "pay:{n}", "reconcile": was_paid}
        return tool(**{"scope": "global", "timeout_s": 0.3, **known, **contract})(pay)


def pay(name: str, **args: Any) -> Step:
    return Step(id=name, objective="o", tool="pay", args={"n": 1, **args})


async def test_a_call_that_goes_on_after_its_deadline_is_not_made_again_beside_itself(lab):
    until = threading.Event()
    bank = Bank([until])
    asyncio.get_running_loop().call_later(0.45, until.set)

    halt, session = await lab.run(plan_of(pay("a")), [bank.paying()])

    assert (halt.reason, bank.payments) == ("done", [1])
    session.close()


async def test_a_call_that_never_ends_goes_to_a_person_and_is_not_made_again(lab):
    until = threading.Event()
    bank = Bank([until])

    halt, session = await lab.run(plan_of(pay("a")), [bank.paying(timeout_s=0.1)])

    assert (halt.kind, halt.code, bank.payments) == ("effect_unknown", "still_running", [])
    until.set()
    session.close()


async def test_a_call_without_a_question_to_ask_waits_for_the_one_before(lab):
    until = threading.Event()
    bank = Bank([until])
    keyed = bank.paying(reconcile=None, idempotent=True, timeout_s=0.1)
    asyncio.get_running_loop().call_later(0.15, until.set)
    overlapping = threading.Lock()
    body = keyed.body

    halt, session = await lab.run(plan_of(pay("a")), [alone(keyed, body, overlapping)])

    assert halt.reason == "done"
    session.close()


def alone(each: Tool, body: Callable[..., Any], lock: threading.Lock) -> Tool:
    def pay(n: int, note: str = "") -> Paid:
        assert lock.acquire(blocking=False), "two calls at once"
        try:
            return body(n, note)
        finally:
            lock.release()

    return replace(each, body=pay)


async def test_of_two_steps_with_one_identity_one_acts_and_the_other_takes_its_result(lab):
    bank = Bank([threading.Event(), threading.Event()])
    for each, seconds in zip(bank.slow, (0.1, 0.1), strict=True):
        asyncio.get_running_loop().call_later(seconds, each.set)

    halt, session = await lab.run(plan_of(pay("a"), pay("b")), [bank.paying(timeout_s=2)])

    assert (halt.reason, bank.payments) == ("done", [1])
    session.close()


async def test_two_runs_of_one_process_with_one_identity_act_once(lab):
    bank = Bank([threading.Event(), threading.Event()])
    for each in bank.slow:
        asyncio.get_running_loop().call_later(0.1, each.set)
    plan, tools = plan_of(pay("a")), [bank.paying(timeout_s=2)]

    both = await asyncio.gather(lab.run(plan, tools), lab.run(plan, tools))

    assert ([halt.reason for halt, _ in both], bank.payments) == (["done", "done"], [1])
    for _, session in both:
        session.close()


async def test_one_identity_with_other_arguments_is_an_outcome_and_no_second_effect(lab):
    bank = Bank()
    second = Step(id="b", objective="o", tool="pay", args={"n": 1, "note": "x"}, after=("a",))

    halt, session = await lab.run(plan_of(pay("a"), second), [bank.paying()])

    assert (halt.kind, halt.code, bank.payments) == ("step_failed", "other_arguments", [1])
    session.close()
