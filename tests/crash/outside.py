"""An agent whose effects are lines of a file: what the outside remembers of a run that was killed.

One plan, five kinds of tool in the middle of it. The first look fails and is repaired, so that a
run passes the reflector and the replanner too; a person confirms before the last look.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plangate import Found, ToolContext, ToolFailed, tool
from plangate.agent import Agent
from plangate.tools.answers import Operation

KINDS = ("read", "idempotent", "reconciled", "settled", "once")
"""What a tool promises about a repeat, from the most to the least."""


@dataclass(frozen=True)
class Outside:
    """A file with a line for each effect, on the disk before the call returns."""

    path: Path

    def add(self, key: str) -> None:
        handle = os.open(self.path, os.O_APPEND | os.O_CREAT | os.O_WRONLY)
        os.write(handle, (json.dumps(key) + "\n").encode())
        os.fsync(handle)
        os.close(handle)

    def count(self) -> Counter[str]:
        text = self.path.read_text() if self.path.exists() else ""
        return Counter(json.loads(line) for line in text.splitlines())

    def close(self) -> None:
        """Nothing is held open."""


def connect(url: str) -> Outside:
    return Outside(Path(url))


@dataclass
class Seen:
    name: str
    effects: int


@dataclass
class Done:
    target: str
    operation_id: str


@tool(effect="read", errors={"moved": "permanent"})
def look(name: str, context: ToolContext) -> Seen:
    """Look at the outside."""
    if name == "first":
        raise ToolFailed("moved", "look elsewhere")
    return Seen(name, context.world.count().total())


@tool(effect="read")
def act_read(target: str) -> Done:
    """Look again."""
    return Done(target, f"op-{target}")


@tool(effect="write", key="act:{target}", scope="global", idempotent=True)
def act_idempotent(target: str, context: ToolContext) -> Done:
    """Act; a repeat with the same key changes nothing."""
    if not context.world.count()[target]:
        context.world.add(target)
    return Done(target, f"op-{target}")


def found(_: str, args: Mapping[str, Any], context: ToolContext) -> Found:
    target = args["target"]
    if not context.world.count()[target]:
        return Found(happened=False)
    output = {"target": target, "operation_id": f"op-{target}"}
    return Found(happened=True, operation_id=output["operation_id"], output=output)


def status(operation_id: str, _: ToolContext) -> Operation:
    target = operation_id.removeprefix("op-")
    return Operation("done", output={"target": target, "operation_id": operation_id})


def _act(target: str, context: ToolContext) -> Done:
    context.world.add(target)
    return Done(target, f"op-{target}")


@tool(effect="irreversible", key="act:{target}", scope="global",
      reconcile=found)  # fmt: skip
def act_reconciled(target: str, context: ToolContext) -> Done:
    """Act; the outside can be asked what became of it."""
    return _act(target, context)


@tool(effect="irreversible", key="act:{target}", scope="global",
      reconcile=found, status=status)  # fmt: skip
def act_settled(target: str, context: ToolContext) -> Done:
    """Act; the outside accepts first and is done later."""
    return _act(target, context)


@tool(effect="irreversible", key="act:{target}", scope="global")
def act_once(target: str, context: ToolContext) -> Done:
    """Act; the outside cannot be asked."""
    return _act(target, context)


@tool(effect="write", key="act:{target}", scope="global", idempotent=True)
def act_lying(target: str, context: ToolContext) -> Done:
    """Act anew at each call, against its own contract."""
    return _act(target, context)


_POLICY = """
schema = 1
constants = ["first", "second", "last"]
[[allow]]
tool = "*"

[limits.day]
max_tool_calls = 1000000
"""

_REPAIRS = """
repairs:
  - code: moved
    tool: look
    category: moved
    hypotheses: [It is elsewhere]
    confidence: 0.9
    lesson: Look elsewhere
    replace:
      steps:
        - {id: "{step}a", objective: Look elsewhere, tool: look,
           args: {name: second},
           success: [{id: seen, level: L1, claim: It was seen, rule: "result.effects >= 0"}]}
      references: {"{step}.name": "{step}a.name"}
"""

_TEMPLATE = """
template: crash
goal: Act once
parameters:
  - {name: target, type: string}
steps:
  - id: S1
    objective: Look first
    tool: look
    args: {name: first}
    success: [{id: seen, level: L1, claim: It was seen, rule: "result.effects >= 0"}]
  - id: S2
    objective: Act
    tool: ACT
    args: {target: "${inputs.target}"}
    after: [S1]
    routes: [{on: unknown, action: ask}]
    success: [{id: acted, level: L2, claim: It happened once, tool: look,
               args: {name: second}, rule: COUNTED}]
  - id: S3
    objective: Ask
    kind: human
    question: {audience: operator, type: confirm, text: "Go on?"}
    after: [S2]
    success: [{id: said, level: L1, claim: It was confirmed, rule: result.confirmed}]
  - id: S4
    objective: Look last
    tool: look
    args: {name: last}
    after: [S3]
    success: [{id: looked, level: L1, claim: It was seen, rule: "result.effects >= 0"}]
success_criteria:
  - {id: over, level: L1, claim: All was seen, rule: steps.S4.output.name == 'last'}
abort_conditions:
  - {id: enough, text: Too many failures, rule: run.failures > 9}
"""


def agent_of(kind: str) -> Agent:
    acts = (act_read, act_idempotent, act_reconciled, act_settled, act_once, act_lying)
    act = next(each for each in acts if each.spec.name == f"act_{kind}")
    counted = "observed.effects == 0" if kind == "read" else "observed.effects == 1"
    template = _TEMPLATE.replace("ACT", f"act_{kind}").replace("COUNTED", counted)
    return Agent(
        name=f"crash-{kind}",
        tools=(look, act),
        policy=_POLICY,
        templates=(template,),
        repairs=_REPAIRS,
        connect="tests.crash.outside:connect",
        world_url="unset",
    )
