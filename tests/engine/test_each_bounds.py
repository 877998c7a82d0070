"""What holds a list back: an approval, a limit, a stop, a label, a denial."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from typing_extensions import TypedDict

from plangate.budget.meter import Meter
from plangate.engine.dataflow import run_plan
from plangate.engine.steps import run_step
from plangate.journal.questions import StopAsked
from plangate.plan.catalog import ArgRule, Labels
from plangate.plan.policy import Policy
from plangate.plan.value.frozen import digest
from plangate.plan.value.plan import Budget, Plan
from plangate.plan.value.step import Route, Step
from plangate.tools.answers import ToolFailed
from plangate.tools.tool import Tool, tool
from tests.engine.conftest import Lab, plan_of
from tests.engine.test_approval import approve


class Paid(TypedDict):
    paid: str


class Till:
    """Pays, and says when it is at work."""

    def __init__(self, refuses: str = "") -> None:
        self.paid: list[str] = []
        self.refuses = refuses
        self.began, self.go = asyncio.Event(), asyncio.Event()
        self.go.set()

    def tools(self, **more: Any) -> list[Tool]:
        @tool(effect="write", key="pay:{to}", scope="goal", errors={"no": "denied"}, **more)
        async def pay(to: str, cents: int = 1) -> Paid:
            """Pay."""
            self.began.set()
            await self.go.wait()
            if to == self.refuses:
                raise ToolFailed("no", "not this account")
            self.paid.append(to)
            return {"paid": to}

        @tool(effect="write", key="pay:{to}", scope="goal")
        def wire(to: str) -> Paid:
            """Pay in another way."""
            self.paid.append(f"wired {to}")
            return {"paid": to}

        return [pay, wire]


def pays(over: str = "${inputs.one}", **more: Any) -> Step:
    args = more.pop("args", {"to": "${item}"})
    fields = {"tool": "pay", "for_each": over, "max_items": 2, "args": args}
    return Step(id="S1", objective="o", **{**fields, **more})


def paying(**more: Any) -> Plan:
    return plan_of(pays(), inputs={"one": ["a", "b"], "two": ["c", "a"]}, **more)


def digests(*names: str) -> dict[str, str]:
    each = {f"S1.{at}": digest({"to": name}) for at, name in enumerate(names, 1)}
    return {"S1": digest(list(each.values())), **each}


async def test_an_element_that_was_not_approved_does_not_run(lab):
    till, plan, session = Till(), paying(), lab.session()
    bench = lab.bench(session, plan, till.tools())
    approve(session, plan, args=digests("a", "c"))

    ended = await run_step(bench, plan.by_id["S1"])

    assert (ended.status, ended.outcome, ended.code) == ("failed", "denied", "element_not_approved")
    assert ended.why.startswith("1 of 2 elements: S1.2 element_not_approved: an element of S1 is")
    assert till.paid == ["a"]
    session.close()


async def test_an_approval_of_no_elements_is_good_for_none(lab):
    till, plan, session = Till(), paying(), lab.session()
    bench = lab.bench(session, plan, till.tools())
    approve(session, plan, args=digests())

    ended = await run_step(bench, plan.by_id["S1"])

    assert (ended.code, till.paid) == ("element_not_approved", [])
    session.close()


@pytest.mark.parametrize("known", [(), ("a", "b", "c")])
async def test_one_approval_of_a_list_is_good_for_as_many_effects_as_it_said(lab, known):
    till, plan, session = Till(), paying(), lab.session()
    bench = lab.bench(session, plan, till.tools())
    approve(session, plan, args=digests(*known) if known else {})
    await run_step(bench, plan.by_id["S1"])

    other = await run_step(bench, pays("${inputs.two}"))

    if known:
        assert (other.status, till.paid) == ("done", ["a", "b", "c"])
    else:
        assert other.code == "approval_consumed"
        assert "was used for 'pay:a' and 1 more already" in other.why
        assert till.paid == ["a", "b"]
    session.close()


async def test_nothing_begins_while_one_element_waits_for_a_person(lab):
    limit = '[[threshold]]\ntool = "pay"\narg = "cents"\nover = 10\ntier = "full"\n'
    strict = Lab(
        lab.journal, policy=Policy.from_toml(f'schema = 1\n[[allow]]\ntool = "*"\n{limit}')
    )
    step = pays(args={"to": "${item.to}", "cents": "${item.cents}"})
    lines = [{"to": "a", "cents": 1}, {"to": "b", "cents": 11}]
    till = Till()

    halt, session = await strict.run(plan_of(step, inputs={"one": lines}), till.tools())

    assert (halt.reason, halt.code, till.paid) == ("approval", "approval_missing", [])
    assert session.view.attempts == {}
    session.close()


async def test_an_approval_that_expired_begins_nothing(lab):
    till, plan, session = Till(), paying(), lab.session()
    bench = lab.bench(session, plan, till.tools())
    approve(session, plan, expires_at=datetime.now(UTC) - timedelta(seconds=1))

    ended = await run_step(bench, plan.by_id["S1"])

    assert (ended.status, ended.code, till.paid) == ("waiting", "approval_expired", [])
    session.close()


async def test_a_list_stops_at_a_limit_and_goes_on_where_it_stopped(lab):
    till, plan, session = Till(), paying(), lab.session()
    bench = lab.bench(session, plan, till.tools(concurrency=1))
    halt = await run_plan(replace(bench, meter=Meter(Budget(max_tool_calls=1))))
    assert (halt.reason, till.paid) == ("budget", ["a"])

    halt = await run_plan(lab.bench(session, plan, till.tools(concurrency=1)))

    assert (halt.reason, till.paid) == ("done", ["a", "b"])
    assert list(session.view.attempts) == ["S1.1-A1", "S1.2-A1"]
    session.close()


@pytest.mark.parametrize(("kind", "status"), [("drain", "running"), ("cancel", "cancelled")])
async def test_a_stop_lets_the_element_under_way_end_and_begins_no_other(lab, kind, status):
    till, plan, session = Till(), paying(), lab.session()
    till.go.clear()
    bench = lab.bench(session, plan, till.tools(concurrency=1))
    running = asyncio.create_task(run_plan(bench))
    await till.began.wait()

    session.stop.ask(StopAsked(kind=kind, by="ann"))
    till.go.set()
    halt = await running

    assert halt.reason == ("drained" if kind == "drain" else "cancelled")
    assert (till.paid, session.view.steps["S1"].status) == (["a"], status)
    session.close()


async def test_what_one_element_was_denied_no_other_tool_reaches(lab):
    till = Till(refuses="b")
    steps = [
        pays(routes=(Route(on="denied", action="skip"),)),
        *(
            Step(id=name, objective="o", tool="wire", args={"to": to}, after=("S1",))
            for name, to in (("S2", "b"), ("S3", "c"))
        ),
    ]

    _, session = await lab.run(plan_of(*steps, inputs={"one": ["a", "b"]}), till.tools())

    ends = {name: seen.error_code for name, seen in session.view.steps.items()}
    assert ends == {"S1": "no", "S2": "denied_before", "S3": ""}
    assert till.paid == ["a", "wired c"]
    session.close()


class Lines(TypedDict):
    lines: list[str]


async def test_an_element_has_the_labels_of_its_list(lab):
    paid: list[str] = []

    @tool(effect="read", labels=Labels(integrity="untrusted"))
    def read_mail() -> Lines:
        """Read a mail."""
        return {"lines": ["DE-66"]}

    @tool(
        effect="write", key="pay:{to}", scope="goal",
        arg_rules={"to": ArgRule(requires_trusted=True)},
    )  # fmt: skip
    def pay(to: str) -> Paid:
        """Pay."""
        paid.append(to)
        return {"paid": to}

    plan = plan_of(
        Step(id="M", objective="o", tool="read_mail"), pays("${M.lines}", args={"to": "${item}"})
    )

    _, session = await lab.run(plan, [read_mail, pay])

    seen = session.view.steps["S1"]
    assert (seen.error_code, paid) == ("forbidden_flow", [])
    assert "untrusted data reaches pay.to: read_mail.lines.0 → pay.to (M → S1)" in seen.why
    session.close()
