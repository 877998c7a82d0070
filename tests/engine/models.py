"""A scripted chat model, and model steps to try it on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from langchain_core.messages import AIMessage

from plangate.budget.prices import PriceBook
from plangate.engine.bench import Bench
from plangate.engine.brake import Brake
from plangate.engine.dataflow import run_plan
from plangate.engine.triggers import Halt
from plangate.engine.working import StepModel
from plangate.journal.session import Session
from plangate.plan.value.plan import Plan
from plangate.plan.value.step import Step
from plangate.tools.tool import Tool
from tests.engine.conftest import Lab

BOOK = PriceBook({"scripted": {"input": "1", "output": "2"}})
FOUND = {
    "type": "object",
    "properties": {"who": {"type": "string"}, "cents": {"type": "integer"}},
    "required": ["who", "cents"],
}
GOOD = json.dumps({"who": "Ann", "cents": 5})


@dataclass
class Scripted:
    """Says what it is told to, in order; the last word is repeated. An exception is raised."""

    script: list[Any]
    model_name: str = "scripted"
    max_tokens: int = 100
    asked: list[list[dict[str, str]]] = field(default_factory=list)
    on_call: Callable[[], Any] = lambda: None

    async def ainvoke(self, messages: list[dict[str, str]]) -> AIMessage:
        self.asked.append(messages)
        self.on_call()
        await asyncio.sleep(0)
        said = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(said, BaseException):
            raise said
        return said if isinstance(said, AIMessage) else AIMessage(content=said)


class Quick(Brake):
    """Notes how long it would have waited between two tries."""

    def __init__(self) -> None:
        super().__init__()
        self.waited: list[float] = []

    async def pause(self, seconds: float) -> None:
        self.waited.append(seconds)


def reads(name: str = "S2", **more: Any) -> Step:
    """A model step."""
    said = {"args": {"mail": "${S1.body}"}, "output": FOUND, **more}
    return Step(id=name, objective="Find who asks, and for how much", kind="model", **said)


def bench_of(lab: Lab, session: Session, plan: Plan, tools: list[Tool], chat: Any) -> Bench:
    made = lab.bench(session, plan, tools)
    model = None if chat is None else StepModel(chat, BOOK)
    return replace(made, step_model=model, brake=Quick())


async def run(
    lab: Lab, plan: Plan, tools: list[Tool], chat: Any, run_id: str = ""
) -> tuple[Halt, Session]:
    session = await asyncio.to_thread(lab.session, run_id)
    halt = await run_plan(bench_of(lab, session, plan, tools, chat))
    await session.aflush()
    return halt, session
