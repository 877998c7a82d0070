"""A small agent that sends letters, for tests of the door."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plangate import Found, tool
from plangate.agent import Agent
from plangate.runtime import Options, Runtime
from plangate.tools.answers import NotSent
from plangate.tools.tool import Tool

POLICY = 'schema = 1\n[[allow]]\ntool = "*"\n'
TEMPLATE = """
template: letter
goal: Send the letter to {to}
parameters: [{name: to, type: string}]
steps:
  - {id: S1, objective: Read the draft, tool: draft, args: {to: "${inputs.to}"}}
  - id: S2
    objective: Send it
    tool: send
    args: {to: "${S1.to}", text: "${S1.text}"}
    success: [{id: arrived, level: L2, claim: It is in the outbox, tool: outbox,
               args: {to: "${S1.to}"}, rule: observed.count == 1}]
success_criteria: [{id: once, level: L2, claim: One letter was sent, tool: outbox,
                    args: {to: "${inputs.to}"}, rule: observed.count == 1}]
"""


@dataclass
class Letter:
    to: str
    text: str


@dataclass
class Count:
    count: int


@dataclass
class Post:
    """The agent, over a journal in `folder`, and the letters that it sent."""

    folder: Path
    sent: list[str] = field(default_factory=list)
    busy: int = 0
    """How often the next reads of a draft are not answered: each takes a call more."""

    opened: list[Runtime] = field(default_factory=list)

    def tools(self, **contract: Any) -> tuple[Tool, ...]:
        def was_sent(_key: str, args: Mapping[str, Any], _context: object) -> Found:
            return Found(args["to"] in self.sent, output={"count": 1})

        @tool(effect="read")
        def draft(to: str) -> Letter:
            """Read the draft of a letter."""
            if self.busy:
                self.busy -= 1
                raise NotSent("busy")
            return Letter(to, "Dear")

        @tool(effect="read")
        def outbox(to: str) -> Count:
            """Count the letters sent to somebody."""
            return Count(self.sent.count(to))

        def send(to: str, text: str) -> Count:
            """Send a letter."""
            self.sent.append(to)
            return Count(self.sent.count(to))

        known = {"effect": "irreversible", "key": "letter:{to}", "scope": "goal"}
        return draft, outbox, tool(**{**known, "reconcile": was_sent, **contract})(send)

    def open(self, contract: Mapping[str, Any] | None = None, **chosen: Any) -> Runtime:
        """Open the agent; `chosen` are fields of `Agent` or of `Options`."""
        known = ("checkpointer", "ttl_s", "model")
        options = {key: chosen.pop(key) for key in known if key in chosen}
        clock = chosen.pop("clock", None)
        said = {"policy": POLICY, "templates": (TEMPLATE,)}
        parts = {**said, "tools": self.tools(**(contract or {})), **chosen}
        agent = Agent(name="post", **parts)
        url = f"sqlite:///{self.folder}/journal.db"
        runtime = Runtime(agent, url, Options(**options), clock=clock)
        self.opened.append(runtime)
        return runtime

    def close(self) -> None:
        for runtime in self.opened:
            runtime.close()


def given(to: str = "Ann") -> dict[str, Any]:
    return {"goal": f"Tell {to}", "inputs": {"to": to}}


def on(thread: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread}}
