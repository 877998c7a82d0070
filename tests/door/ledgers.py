"""A small agent with several effects, over a world that is a few lists in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plangate import Found, tool
from plangate.agent import Agent
from plangate.graph.payload import Answer
from plangate.journal.view import RunView
from plangate.plan.facts import Rights
from plangate.plan.value.frozen import parse
from plangate.runtime import Options, Runtime, new_run_id
from plangate.tools.tool import Tool


@dataclass
class World:
    """What the tools see: accounts with versions, and what was done."""

    versions: dict[str, int] = field(default_factory=lambda: {"rent": 7, "tax": 3})
    done: list[str] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)
    blind: bool = False
    silent: bool = False
    """The next payment happens and nobody answers."""


WORLD = World()


def connect(_: str) -> World:
    return WORLD


@dataclass
class Account:
    name: str
    version: int
    due: int


@dataclass
class Receipt:
    id: str
    count: int


@tool(
    effect="read",
    evidence=("account://{name}?version={version}",),
    reads=("account:{name}",),
    errors={"blind": "permanent"},
)
def look(name: str) -> Account:
    """Look at an account."""
    WORLD.reads.append(name)
    if WORLD.blind:
        raise OSError("nothing to be seen")
    return Account(name, WORLD.versions[name], 100)


@tool(effect="read", reads=("receipt:{id}",))
def receipt(id: str) -> Receipt:
    """Find out how often something was done."""
    return Receipt(id, WORLD.done.count(id))


def found(key: str, args: Mapping[str, Any], context: object) -> Found:
    return Found(None if WORLD.silent else False)


@tool(
    effect="irreversible",
    key="pay:{name}:{cents}",
    scope="goal",
    writes=("account:{name}",),
    reconcile=found,
)
def pay(name: str, cents: int) -> Receipt:
    """Pay an account."""
    WORLD.done.append(f"pay {name} {cents}")
    if WORLD.silent:
        raise ConnectionError("no answer")
    return Receipt(f"pay {name} {cents}", 1)


@tool(effect="irreversible", key="mail:{to}:{about}", scope="goal", reconcile=found)
def mail(to: str, about: str) -> Receipt:
    """Send a mail."""
    WORLD.done.append(f"mail {to}")
    return Receipt(f"mail {to}", 1)


POLICY = """
schema = 1
constants = ["ann", "bob"]
[[allow]]
tool = "*"
"""

TEMPLATE = """
template: bills
goal: Pay the bills
parameters:
  - {name: cents, type: integer, min: 1, max: 5000}
steps:
  - id: S1
    objective: Look at the rent
    tool: look
    args: {name: rent}
    success: [{id: seen, level: L1, claim: It is due, rule: result.due > 0}]
  - id: S2
    objective: Pay the rent
    tool: pay
    args: {name: rent, cents: "${inputs.cents}"}
    after: [S1]
    success: [{id: paid, level: L2, claim: It was paid once, tool: receipt, args: {id: "${S2.id}"},
               rule: observed.count == 1}]
  - id: S3
    objective: Tell ann
    tool: mail
    args: {to: ann, about: "${S2.id}"}
    success: [{id: told, level: L2, claim: Ann was told, tool: receipt, args: {id: "${S3.id}"},
               rule: observed.count == 1}]
  - id: S4
    objective: Pay the tax
    tool: pay
    args: {name: tax, cents: 50}
    success: [{id: taxed, level: L2, claim: It was paid once, tool: receipt, args: {id: "${S4.id}"},
               rule: observed.count == 1}]
  - id: S5
    objective: Tell bob when all is over
    tool: mail
    args: {to: bob, about: all}
    after: [S3, S4]
    success: [{id: told_bob, level: L2, claim: Bob was told, tool: receipt, args: {id: "${S5.id}"},
               rule: observed.count == 1}]
success_criteria:
  - {id: tax_is_paid, level: L2, claim: The tax is paid, tool: receipt, args: {id: "${S4.id}"},
     rule: observed.count == 1}
  - {id: rent_is_paid, level: L2, claim: The rent is paid, tool: receipt, args: {id: "${S2.id}"},
     rule: observed.count == 1}
abort_conditions: [{id: many, text: Many failures, rule: run.failures >= 5}]
budget: {min_level: L1}
"""


@dataclass
class Office:
    """The agent over a journal of its own."""

    folder: Path
    policy: str = POLICY
    template: str = TEMPLATE
    options: Mapping[str, Any] = field(default_factory=dict)
    tools: tuple[Tool, ...] = (look, receipt, pay, mail)
    runtime: Runtime = field(init=False)

    def __post_init__(self) -> None:
        self.runtime = self.another()

    def another(self) -> Runtime:
        agent = Agent(
            name="bills",
            tools=self.tools,
            policy=self.policy,
            templates=(self.template,),
            connect=connect,
            rights=Rights(principal="ann"),
        )
        return Runtime(agent, f"sqlite:///{self.folder}/journal.db", Options(**self.options))

    def start(self, **inputs: Any) -> str:
        run_id = new_run_id()
        given = {"goal": "Pay the bills", "inputs": {"cents": 100, **inputs}}
        for _ in self.runtime.start(given, run_id=run_id):
            pass
        return run_id

    def say(self, run_id: str, decision: str = "approve", **said: Any) -> Any:
        answer = parse(Answer, {"decision": decision, "by": "ann", **said})
        return self.runtime.answer(run_id, answer)

    def go(self, run_id: str, runtime: Runtime | None = None) -> RunView:
        for _ in (runtime or self.runtime).advance(run_id):
            pass
        return self.runtime.view(run_id)

    def asked(self, run_id: str) -> dict[str, Any]:
        """Return the payload of the only open question."""
        question = self.runtime.question(run_id)[1]
        payload = self.runtime.journal.artifacts.get(question.payload)
        assert isinstance(payload, dict)
        return payload

    def events(self, run_id: str, kind: str) -> list[Any]:
        entries = self.runtime.journal.log.read(run_id)
        return [each.event for each in entries if each.event.type == kind]


@contextmanager
def office(folder: Path, **how: Any) -> Iterator[Office]:
    """Open the agent over an empty world."""
    WORLD.__init__()  # type: ignore[misc]
    made = Office(folder, **how)
    yield made
    made.runtime.close()
