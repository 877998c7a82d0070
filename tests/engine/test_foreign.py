from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from typing_extensions import TypedDict

from plangate.plan.value.step import Step
from plangate.tools.answers import Found, Operation, ToolFailed
from plangate.tools.tool import Tool, tool
from tests.engine.conftest import plan_of


class Anything(TypedDict):
    value: Any


class Order(TypedDict):
    operation_id: Any


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


class Wordless(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


READS = {"effect": "read", "max_attempts": 1}
ACTS = {"effect": "write", "key": "k:{n}", "scope": "goal"}
ONE = plan_of(Step(id="a", objective="o", tool="look", args={"n": 1}))


def looking(say: Any, contract: dict[str, Any], *, is_async: bool = False) -> Tool:
    def blocking(n: int) -> Anything:
        """Look."""
        return say()

    async def waited(n: int) -> Anything:
        """Look."""
        return say()

    body = waited if is_async else blocking
    body.__name__ = "look"
    return tool(**contract)(body)


def throwing(error: BaseException) -> Any:
    def say() -> Any:
        raise error

    return say


@pytest.mark.parametrize(
    "output",
    [
        None,
        [1],
        {"value": "\ud800"},
        {"value": {"\ud800": 1}},
        {"value": 2**53},
        {"value": 1e20},
        {"value": nested(300)},
        {"value": nested(5_000)},
        {"value": object()},
        {"value": b"\xff"},
        {"value": "x" * 1_000_001},
    ],
    ids=range(11),
)
async def test_a_result_that_no_journal_can_hold_is_an_outcome_and_not_the_end_of_the_run(
    lab, output
):
    halt, session = await lab.run(ONE, [looking(lambda: output, ACTS)])

    assert (halt.kind, session.view.steps["a"].outcome) == ("step_failed", "unexpected_state")
    assert [row.state for row in lab.journal.ledger.list()] == ["done"]
    session.close()


@pytest.mark.parametrize(
    "value",
    ["a\0b", "\x1b[2J", "${S1.x}", {"a.b": 1, "": 2}, nested(150), 1e300, 2**53 - 1],
    ids=range(7),
)
async def test_what_only_looks_dangerous_comes_back_as_it_was(lab, value):
    _, session = await lab.run(ONE, [looking(lambda: {"value": value}, READS)])
    session.close()

    again = lab.session(session.run.run_id)
    assert again.load(again.view.steps["a"].output) == {"value": value}
    again.close()


@pytest.mark.parametrize(
    ("contract", "is_async"),
    [(ACTS, False), (ACTS, True), (READS, True)],
    ids=["blocking act", "async act", "async read"],
)
@pytest.mark.parametrize(
    "error",
    [
        SystemExit(3),
        KeyboardInterrupt(),
        asyncio.CancelledError(),
        GeneratorExit(),
        StopIteration(1),
        BaseExceptionGroup("both", [KeyboardInterrupt()]),
        RecursionError(),
        ValueError("\ud800"),
        Wordless(),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_whatever_a_body_raises_ends_its_attempt_and_nothing_else(
    lab, error, contract, is_async
):
    halt, session = await lab.run(ONE, [looking(throwing(error), contract, is_async=is_async)])

    assert halt.kind == ("effect_unknown" if contract is ACTS else "step_failed")
    assert [row.state for row in lab.journal.ledger.list()] == ["unknown"] * (contract is ACTS)
    session.close()


@pytest.mark.parametrize("words", [("\ud800", ""), (None, ""), (5, ""), ("x", "\ud800"), ("x", 5)])
async def test_a_failure_is_the_tools_word_whatever_it_is_made_of(lab, words):
    halt, session = await lab.run(ONE, [looking(throwing(ToolFailed(*words)), ACTS)])

    assert halt.kind == "step_failed"
    assert [row.state for row in lab.journal.ledger.list()] == ["failed"]
    session.close()


def ordering(operation_id: Any, status: Any = None, found: Any = None) -> Tool:
    @tool(
        **ACTS,
        timeout_s=0.1,
        status=lambda _id, _context: status,
        reconcile=None if found is None else lambda _key, _args, _context: found,
    )
    def look(n: int) -> Order:
        """Order."""
        if found is not None:
            raise ConnectionError("lost")
        return {"operation_id": operation_id}

    return look


@pytest.mark.parametrize(
    ("order", "state"),
    [
        (ordering(None), "unknown"),
        (ordering("OP", None), "accepted"),
        (ordering("OP", Operation("almost")), "accepted"),
        (ordering("OP", Operation("failed", code=None)), "accepted"),
        (ordering("OP", Operation("failed", code="\ud800")), "accepted"),
        (ordering("OP", Operation("done", {"operation_id": "OP"}, business_state=5)), "accepted"),
        (ordering("OP", found=Found("no")), "unknown"),
        (ordering("OP", found=Found(0)), "unknown"),
        (ordering("OP", found=Found(True, operation_id=5)), "unknown"),
        (ordering("OP", found=Found(True, operation_id="\ud800")), "unknown"),
    ],
    ids=range(10),
)
async def test_an_answer_about_an_effect_that_is_none_leaves_it_open(lab, order, state):
    halt, session = await lab.run(ONE, [order])

    assert halt.kind == "effect_unknown"
    assert [row.state for row in lab.journal.ledger.list()] == [state]
    session.close()


async def test_an_async_body_that_will_not_stop_is_left_behind_at_its_deadline(lab):
    async def stubborn() -> Any:
        until = time.monotonic() + 2.5
        while time.monotonic() < until:
            try:
                await asyncio.sleep(1)
            except asyncio.CancelledError:
                continue

    @tool(effect="read", timeout_s=0.1, max_attempts=1)
    async def look(n: int) -> Anything:
        """Look."""
        return await stubborn()

    began = time.monotonic()
    halt, session = await lab.run(ONE, [look])

    assert (halt.code, time.monotonic() - began < 2) == ("timeout", True)
    session.close()
