"""Theme A, reports 4 and 5: no layer repeats what its tool says must not be repeated."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest
from langgraph.types import Command
from typing_extensions import TypedDict

from plangate.plan.errors import ModelFailed
from plangate.plan.value.plan import Budget
from plangate.plan.value.step import Step
from plangate.tools.answers import Found
from plangate.tools.context import ToolContext
from plangate.tools.tool import Tool, tool
from tests.door.test_model import GOAL, agent, draft, empty, journal_url, kept, view_of
from tests.engine.conftest import Lab, lab, plan_of
from tests.models.fake_openai import Said, serving

__all__ = ["empty", "journal_url", "lab"]


class Charged(TypedDict):
    receipt: str


@dataclass
class Bank:
    """Records the charge, then drops the connection, `drops` times."""

    drops: int = 9
    charged: dict[str, int] = field(default_factory=dict)
    keys: list[str | None] = field(default_factory=list)

    def tool(self, **contract: Any) -> Tool:
        def charge_card(order: str, context: ToolContext) -> Charged:
            """Charge a card."""
            self.keys.append(context.effect_key)
            self.charged.setdefault(str(context.effect_key), 100)
            if len(self.keys) <= self.drops:
                raise ConnectionResetError
            return {"receipt": "R"}

        acting = {"key": "charge:{order}", "scope": "goal", "effect": "irreversible"}
        return tool(**({} if contract.get("effect") == "read" else acting) | contract)(charge_card)


def charge() -> Step:
    return Step(id="a", objective="o", tool="charge_card", args={"order": "O"})


# Report 4: three attempts allowed, the charge is made, the connection is reset.
@pytest.mark.parametrize(
    ("contract", "drops", "calls", "end"),
    [
        ({}, 9, 1, ("effect_unknown", "unknown")),
        ({"idempotent": True}, 2, 3, ("", "done")),
        ({"idempotent": True}, 9, 3, ("effect_unknown", "unknown")),
        ({"reconcile": lambda *_: Found(None)}, 9, 1, ("effect_unknown", "unknown")),
        (
            {"reconcile": lambda *_: Found(happened=True, output={"receipt": "R"})},
            9,
            1,
            ("", "done"),
        ),
        ({"effect": "read"}, 2, 3, ("", None)),
    ],
    ids=["once", "keyed", "keyed to the end", "outside cannot say", "outside says yes", "read"],
)
async def test_a_charge_that_was_made_before_the_connection_broke_is_never_made_twice(
    lab: Lab, contract, drops, calls, end
):
    bank = Bank(drops)

    halt, session = await lab.run(plan_of(charge()), [bank.tool(**contract)])

    rows = lab.journal.ledger.list()
    assert (halt.kind, rows[0].state if rows else None) == end
    assert len(bank.keys) == calls
    assert len(bank.charged) == len(set(bank.keys)) == 1
    session.close()


# The matrix does not ask about money: the meter does, before each attempt.
@pytest.mark.parametrize("budget", [Budget(max_usd=Decimal(1)), Budget(max_tool_calls=1)], ids=str)
async def test_a_retry_that_cannot_be_paid_is_not_made(lab: Lab, budget):
    bank = Bank()
    costly = bank.tool(effect="read", usd=Decimal(1))

    halt, session = await lab.run(plan_of(charge(), budget=budget), [costly])

    assert (halt.reason, len(bank.keys)) == ("budget", 1)
    session.close()


# Report 5: a model call fails after effects were made; the supervisor starts from the top.
def test_a_failing_model_call_is_retried_by_its_class_and_repeats_no_effect(journal_url):
    given = {**GOAL, "goal_id": "g"}
    yes = Command(resume={"decision": "approve", "by": "ann"})
    with serving(Said(content=draft())) as fake:
        first = agent(fake, journal_url)
        first.invoke(given, on("t1"))
        first.invoke(yes, on("t1"))
    assert kept == ["milk"]

    with serving(Said(status=400)) as fake, pytest.raises(ModelFailed, match="http_400"):
        agent(fake, journal_url).invoke(given, on("t2"))
    assert len(fake.requests) == view_of(journal_url).model_calls == 1

    with serving(Said(status=500), Said(content=draft())) as fake:
        second = agent(fake, journal_url)
        second.invoke(given, on("t3"))
        done = second.invoke(yes, on("t3"))
    view = view_of(journal_url)
    assert len(fake.requests) == view.model_calls == 2
    assert (done["verdict"], kept) == ("pass", ["milk"])
    [ended] = [each.ended for each in view.attempts.values()]
    assert ended.reused == "ledger"


def on(thread: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread}}
