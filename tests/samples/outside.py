"""A small world that changes while a plan runs, and an agent that acts on it once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from typing_extensions import TypedDict

from plangate.agent import Agent
from plangate.graph.payload import Answer
from plangate.journal.runs import Run
from plangate.journal.view import RunView
from plangate.plan.facts import Rights
from plangate.runtime import Options, Runtime
from plangate.tools.answers import Found, ToolFailed
from plangate.tools.context import ToolContext
from plangate.tools.tool import Tool, tool


class Stock(TypedDict):
    item: str
    version: int
    amount: int


class Sent(TypedDict):
    receipt: str


class Seen(TypedDict):
    sent: int


@dataclass
class Outside:
    """What tools see; `does` says what each tool does at its next calls."""

    does: dict[str, list[str]] = field(default_factory=dict)
    stock: dict[str, Any] = field(
        default_factory=lambda: {"item": "cup", "version": 8, "amount": 5}
    )
    acts: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)

    async def next(self, name: str) -> str:
        """Do what was told for this call: raise a code, wait, or say what to return."""
        self.calls.append(name)
        told = self.does.get(name) or ["well"]
        word = told.pop(0)
        if word == "slow":
            await asyncio.sleep(30)
        if word not in ("well", "bad", "lost", "wrong"):
            raise ToolFailed(word)
        return word


@tool(
    effect="read",
    timeout_s=0.2,
    errors={"gone": "permanent", "busy": "transient", "sold_out": "business_rejection"},
)
async def look(item: str, context: ToolContext) -> Stock:
    """Look at the stock."""
    word = await context.world.next("look")
    return {"item": item} if word == "bad" else context.world.stock.copy()  # type: ignore[typeddict-item]


@tool(effect="read", scopes=("stock:read",))
async def look_elsewhere(item: str, context: ToolContext) -> Stock:
    """Look at the stock in the other book."""
    await context.world.next("look_elsewhere")
    stock: Stock = context.world.stock.copy()
    return stock


@tool(effect="read", errors={"moved": "unexpected_state"})
async def look_same(item: str, version: int, context: ToolContext) -> Stock:
    """Look again, and say if it is another version."""
    await context.world.next("look_same")
    if context.world.stock["version"] != version:
        raise ToolFailed("moved", f"it is at version {context.world.stock['version']}")
    stock: Stock = context.world.stock.copy()
    return stock


async def _find(effect_key: str, args: Mapping[str, Any], context: ToolContext) -> Found:
    if await context.world.next("reconcile") != "well":
        return Found(None)
    return Found(effect_key in context.world.acts, output={"receipt": "R-1"})


@tool(
    effect="irreversible",
    external=True,
    key="send:{item}",
    scope="goal",
    scopes=("stock:send",),
    reconcile=_find,
    timeout_s=0.2,
    errors={"no_address": "business_rejection", "broken": "permanent", "down": "transient"},
)
async def send(item: str, amount: int, context: ToolContext) -> Sent:
    """Send it away."""
    word = await context.world.next("send")
    context.world.acts.append(context.effect_key)
    if word == "lost":
        raise ConnectionResetError
    return {} if word == "bad" else {"receipt": "R-1"}  # type: ignore[typeddict-item]


@tool(effect="write", key="count:{item}", scope="goal", reconcile=_find)
async def recount(item: str, context: ToolContext) -> Stock:
    """Count the stock anew and write it down."""
    context.world.acts.append(context.effect_key)
    stock: Stock = context.world.stock.copy()
    return stock


@tool(effect="read", errors={"dark": "permanent"})
async def sent_so_far(item: str, context: ToolContext) -> Seen:
    """See how many were sent."""
    word = await context.world.next("sent_so_far")
    return {"sent": 0 if word == "wrong" else len(context.world.acts)}


TOOLS = (look, look_elsewhere, look_same, send, recount, sent_so_far)
RIGHTS = Rights(principal="kim", roles=("clerk",), scopes=("stock:read", "stock:send"))
YES: Mapping[str, Mapping[str, Any]] = {
    "approval": {"decision": "approve"},
    "step": {"decision": "answer", "answer": {"confirmed": True}},
}


def text(name: str) -> str:
    return (Path(__file__).parent / "sender" / name).read_text("utf-8")


@dataclass
class Stage:
    """One run over one journal, through as many openings of the agent as the world needs."""

    folder: Path
    world: Outside
    agent: Agent = field(init=False)
    runtime: Runtime = field(init=False)
    later_s: float = 0.0
    held: Rights = RIGHTS
    """What the principal may do now."""

    run_id: str = "run_sample"

    def __post_init__(self) -> None:
        self.agent = Agent(
            name="sender",
            tools=TOOLS,
            policy=text("policy.toml"),
            templates=(text("template.yaml"),),
            repairs=text("repairs.yaml"),
            connect=lambda _: self.world,
            rights=RIGHTS,
        )
        self.open()

    def open(self) -> None:
        options = Options(authorizer=self)
        self.runtime = Runtime(self.agent, f"sqlite:///{self.folder}/journal.db", options)
        if self.later_s:
            now = self.runtime.kit.now
            ahead = timedelta(seconds=self.later_s)
            object.__setattr__(self.runtime.kit, "now", lambda: now() + ahead)

    async def rights(self, principal: str, run: Run) -> Rights:
        """Answer as the authorizer of the agent."""
        assert (principal, run.run_id) == (RIGHTS.principal, self.run_id)
        return self.held

    def start(self, goal: str = "Send a cup") -> None:
        for _ in self.runtime.start({"goal": goal, "inputs": {"item": "cup"}}, run_id=self.run_id):
            pass

    def go_on(self) -> None:
        config: Any = {"configurable": {"thread_id": self.run_id}}
        self.runtime.graph.invoke(None, config, context=RIGHTS)

    def answer(self, **said: Any) -> object:
        _, asked = self.runtime.question(self.run_id)
        return self.runtime.answer(asked.question_id, Answer.model_validate({"by": "ann", **said}))

    def change(self, said: Mapping[str, Any]) -> None:
        """While a person thinks, the world moves, and the agent is opened anew."""
        self.world.stock.update(said.get("stock", {}))
        self.world.does.update(said.get("does", {}))
        self.later_s = float(said.get("later_s", 0))
        if "scopes" in said:
            self.held = RIGHTS.model_copy(update={"scopes": tuple(said["scopes"])})
        tools = [each for each in self.agent.tools if each.spec.name not in said.get("without", ())]
        self.agent = replace(
            self.agent,
            tools=tuple(_released(each, said.get("versions", {})) for each in tools),
            policy=self.agent.policy + said.get("more_policy", ""),
        )
        self.runtime.close()
        self.open()

    @property
    def view(self) -> RunView:
        return self.runtime.view(self.run_id)

    @property
    def waits(self) -> str:
        return ", ".join(each.kind for each in self.view.pending_questions)


def _released(each: Tool, versions: Mapping[str, str]) -> Tool:
    version = versions.get(each.spec.name)
    if version is None:
        return each
    return replace(each, spec=each.spec.model_copy(update={"version": version}))
