"""A step over a list: in order, at most once each, and nothing at all beyond its bound."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest
from typing_extensions import TypedDict

from plangate.engine.dataflow import run_plan
from plangate.plan.value.plan import Plan
from plangate.plan.value.step import Check, Route, Step
from plangate.tools.answers import ToolFailed
from plangate.tools.tool import Tool, tool
from tests.engine.conftest import plan_of


class Lines(TypedDict):
    lines: list[Any]


class Paid(TypedDict):
    paid: str


@dataclass
class Till:
    """An outside that pays, and fails where it is told to."""

    lines: list[Any] = field(default_factory=list)
    fails: dict[str, list[Exception]] = field(default_factory=dict)
    paid: list[str] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)
    meet: asyncio.Barrier | None = None
    now: int = 0
    most: int = 0

    def tools(self, **more: Any) -> list[Tool]:
        @tool(effect="read")
        def read() -> Lines:
            """Read."""
            return {"lines": self.lines}

        @tool(effect="read", **more)
        async def look(to: str) -> Paid:
            """Look."""
            self.seen.append(to)
            return {"paid": to}

        @tool(
            effect="write",
            key="pay:{to}",
            scope="goal",
            errors={"busy": "transient", "no": "business_rejection", "denied": "denied"},
            **more,
        )
        async def pay(to: str) -> Paid:
            """Pay."""
            self.now += 1
            self.most = max(self.most, self.now)
            if self.meet is not None:
                await self.meet.wait()
            self.now -= 1
            if self.fails.get(to):
                raise self.fails[to].pop(0)
            self.paid.append(to)
            return {"paid": to}

        return [read, look, pay]


def paying(most: int = 5, **more: Any) -> Plan:
    return plan_of(
        Step(id="S1", objective="o", tool="read"),
        Step(
            id="S2",
            objective="o",
            **{"tool": "pay", "args": {"to": "${item}"}, **more},
            for_each="${S1.lines}",
            max_items=most,
        ),
    )


def output(session: Any, step: str) -> Any:
    return session.load(session.view.steps[step].output)


async def test_the_output_of_a_step_over_a_list_is_the_list_of_results_in_its_order(lab):
    till = Till(["c", "a", "b"])

    halt, session = await lab.run(paying(), till.tools())

    assert halt.reason == "done"
    assert output(session, "S2") == [{"paid": "c"}, {"paid": "a"}, {"paid": "b"}]
    assert sorted(session.view.attempts) == ["S1-A1", "S2.1-A1", "S2.2-A1", "S2.3-A1"]
    rows = session.journal.ledger.list(run_id=session.run.run_id)
    assert {(row.step, row.business_key, row.state) for row in rows} == {
        ("S2", f"pay:{to}", "done") for to in "abc"
    }


async def test_an_empty_list_is_done_at_once(lab):
    halt, session = await lab.run(paying(), Till([]).tools())

    assert (halt.reason, output(session, "S2")) == ("done", [])


@pytest.mark.parametrize(
    ("lines", "code"), [(list("abcdef"), "too_many_items"), ([1, "b"], "bad_arguments")]
)
async def test_what_is_wrong_with_a_list_is_said(lab, lines, code):
    till = Till(lines)

    halt, session = await lab.run(paying(), till.tools())

    assert halt.code == session.view.steps["S2"].error_code == code
    assert till.paid == ([] if code == "too_many_items" else ["b"])


async def test_a_list_that_is_too_long_goes_where_its_route_says(lab):
    routes = (Route(on="too_many_items", action="skip"),)

    halt, session = await lab.run(paying(2, routes=routes), Till(list("abc")).tools())

    assert halt.reason == "done"
    assert session.view.steps["S2"].status == "skipped"


async def test_an_element_that_fails_stops_no_other_and_is_named(lab):
    till = Till(list("abc"), fails={"b": [ToolFailed("no", "account closed")]})

    halt, session = await lab.run(paying(), till.tools())

    seen = session.view.steps["S2"]
    assert (seen.status, seen.error_code) == ("failed", "no")
    assert seen.why == "1 of 3 elements: S2.2 no: account closed"
    assert halt.reason == "declined"
    assert sorted(till.paid) == ["a", "c"]


async def test_an_element_whose_outcome_is_unknown_makes_the_step_unknown(lab):
    fails = {"a": [ToolFailed("no")], "b": [RuntimeError("line cut")]}

    halt, session = await lab.run(paying(), Till(list("abc"), fails=fails).tools())

    assert (halt.kind, session.view.steps["S2"].status) == ("effect_unknown", "unknown")
    assert session.view.steps["S2"].why.startswith("1 of 3 elements: S2.2 ")


async def test_each_element_is_tried_again_by_itself(lab):
    till = Till(list("abc"), fails={"b": [ToolFailed("busy")]})

    halt, session = await lab.run(paying(), till.tools())

    assert halt.reason == "done"
    assert Counter(till.paid) == Counter("abc")
    assert [each for each in session.view.attempts if each.startswith("S2.2")] == [
        "S2.2-A1",
        "S2.2-A2",
    ]


async def test_elements_run_beside_each_other_as_far_as_the_tool_allows(lab):
    till, other = Till(list("abcd"), meet=asyncio.Barrier(2)), Till(list("vwxyz"))
    other.meet = asyncio.Barrier(5)

    async with asyncio.timeout(20):
        await lab.run(paying(), till.tools(concurrency=2))
        await lab.run(paying(), other.tools())

    assert (till.most, other.most) == (2, 5)


async def test_two_elements_with_one_identity_are_one_effect(lab):
    till = Till(["a", "a", "b"])

    _, session = await lab.run(paying(), till.tools())

    assert Counter(till.paid) == Counter("ab")
    assert output(session, "S2") == [{"paid": "a"}, {"paid": "a"}, {"paid": "b"}]


async def test_what_an_element_holds_is_never_read_as_a_reference(lab):
    till = Till(["${inputs.secret}", "${S1.lines.2}", "c"])

    await lab.run(paying(), till.tools())

    assert sorted(till.paid) == sorted(till.lines)


@pytest.mark.parametrize("name", ["pay", "look"])
async def test_who_comes_back_to_a_list_does_only_what_is_left(lab, name):
    till = Till(list("abc"), fails={"b": [RuntimeError("x")] * 3 if name == "pay" else []})
    plan = paying(tool=name)
    session = await asyncio.to_thread(lab.session)
    await run_plan(lab.bench(session, plan, till.tools()))
    first = list(session.view.attempts)
    session.view.steps.pop("S2")  # as when a person says: try again
    for row in session.journal.ledger.list(state="unknown"):
        session.journal.ledger.settle(session.lease, row.effect_key, "failed")
    till.fails.clear()

    halt = await run_plan(lab.bench(session, plan, till.tools()))

    assert halt.reason == "done"
    again = [each for each in session.view.attempts if each not in first]
    assert again == (["S2.2-A2"] if name == "pay" else [])
    assert Counter(till.paid + till.seen) == Counter("abc")


async def test_a_check_of_an_element_looks_at_that_element(lab):
    again = Check(
        id="there", level="L2", claim="c", tool="look", args={"to": "${item}"},
        rule="observed.paid == result.paid && result.paid != 'b'",
    )  # fmt: skip
    till = Till(list("abc"))

    _, session = await lab.run(paying(success=(again,)), till.tools())

    seen = session.view.steps["S2"]
    assert (seen.status, seen.error_code) == ("failed", "check_failed:there")
    assert seen.why == "1 of 3 elements: S2.2 check_failed:there: c: not true"
    assert [each.says for each in session.view.checks("S2")] == ["pass", "fail", "pass"]
    assert sorted(till.seen) == list("abc")
