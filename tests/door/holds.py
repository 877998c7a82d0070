"""A small agent that holds seats and can let go of them, over a world that is a few lists."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plangate import Found, Undo, tool
from plangate.agent import Agent
from plangate.graph.payload import Answer
from plangate.journal.view import RunView
from plangate.plan.facts import Rights
from plangate.plan.value.frozen import parse
from plangate.runtime import Options, Runtime, new_run_id
from plangate.tools.answers import ToolFailed


@dataclass
class World:
    """Who holds what, what was done in which order, and how the outside misbehaves."""

    held: dict[str, str] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)
    """Calls, as `release A1`, that do something and never answer."""

    meanwhile: dict[str, Callable[[], object]] = field(default_factory=dict)
    """What happens elsewhere during a call."""

    refused: set[str] = field(default_factory=set)
    lying: bool = False
    """Releases say that they worked, and do nothing."""

    silent: bool = False
    """The outside cannot say what happened."""


WORLD = World()


@dataclass
class Seat:
    seat: str
    holder: str
    ticket: str


@dataclass
class Released:
    released: bool


@dataclass
class Note:
    text: str


def _act(what: str) -> None:
    if what in WORLD.refused:
        raise ToolFailed("refused", "the outside says no")
    WORLD.meanwhile.get(what, str)()
    WORLD.done.append(what)
    if what in WORLD.broken:
        raise ConnectionError("no answer")


def found(_key: str, args: Mapping[str, Any], _context: object) -> Found:
    if WORLD.silent:
        return Found(None)
    seat, ticket = str(args.get("seat", "")), str(args.get("ticket", ""))
    if seat:
        holder = WORLD.held.get(seat)
        output = {"seat": seat, "holder": holder, "ticket": f"T-{seat}"}
        return Found(holder is not None, output=output if holder else None)
    gone = ticket.removeprefix("T-") not in WORLD.held
    return Found(gone, output={"released": True} if gone else None)


@tool(effect="read", reads=("seat:{seat}",))
def look(seat: str) -> Seat:
    """Look at a seat."""
    return Seat(seat, WORLD.held.get(seat, ""), f"T-{seat}")


@tool(
    effect="write",
    key="hold:{seat}",
    scope="goal",
    undo=Undo(
        tool="release",
        look="look",
        only_if="result.holder != ''",
        gone="observed.holder == ''",
    ),
    reconcile=found,
    errors={"refused": "permanent"},
)
def hold(seat: str, holder: str) -> Seat:
    """Hold a seat."""
    if f"hold {seat}" not in WORLD.refused:
        WORLD.held[seat] = holder
    _act(f"hold {seat}")
    return Seat(seat, holder, f"T-{seat}")


@tool(
    effect="write",
    key="release:{ticket}",
    scope="goal",
    reconcile=found,
    errors={"refused": "permanent"},
)
def release(ticket: str) -> Released:
    """Let go of a seat."""
    seat = ticket.removeprefix("T-")
    if not WORLD.lying and f"release {seat}" not in WORLD.refused:
        WORLD.held.pop(seat, None)
    _act(f"release {seat}")
    return Released(released=True)


@tool(effect="write", key="note:{text}", scope="goal", reconcile=found)
def note(text: str) -> Note:
    """Write a line into a book that nothing is ever struck out of."""
    _act(f"note {text}")
    return Note(text)


POLICY = 'schema = 1\nconstants = ["A1", "B2", "C3"]\n[[allow]]\ntool = "*"\n'
TEMPLATE = """
template: trip
goal: Hold the seats for {holder}
parameters: [{name: holder, type: string}]
steps:
  - {id: S1, objective: Hold the first, tool: hold, args: {seat: A1, holder: "${inputs.holder}"},
     success: [{id: one, level: L2, claim: It is held, tool: look, args: {seat: "${S1.seat}"},
                rule: observed.holder == inputs.holder}]}
  - {id: S2, objective: Hold the second, tool: hold, args: {seat: B2, holder: "${inputs.holder}"},
     after: [S1],
     success: [{id: two, level: L2, claim: It is held, tool: look, args: {seat: "${S2.seat}"},
                rule: observed.holder == inputs.holder}]}
  - {id: S3, objective: Ask, kind: human, after: [S2],
     question: {audience: operator, type: confirm, text: "Go on?"}}
  - {id: S4, objective: Note it, tool: note, args: {text: "${S2.seat}"}, after: [S3],
     success: [{id: noted, level: L1, claim: It is noted, rule: result.text == 'B2'}]}
success_criteria:
  - {id: both, level: L2, claim: The second seat is held, tool: look, args: {seat: "${S2.seat}"},
     rule: observed.holder == inputs.holder}
abort_conditions: [{id: many, text: Many failures, rule: run.failures >= 5}]
"""


@dataclass
class Desk:
    """The agent over a journal of its own."""

    folder: Path
    parts: Mapping[str, Any] = field(default_factory=dict)
    runtime: Runtime = field(init=False)

    def __post_init__(self) -> None:
        self.runtime = self.another(**self.parts)

    def another(self, **more: Any) -> Runtime:
        parts: dict[str, Any] = {"policy": POLICY, "templates": (TEMPLATE,), **more}
        agent = Agent(
            name="trips",
            tools=parts.pop("tools", (look, hold, release, note)),
            connect=lambda _: WORLD,
            rights=Rights(principal="ann"),
            **parts,
        )
        return Runtime(agent, f"sqlite:///{self.folder}/journal.db", Options())

    def start(self, **more: Any) -> str:
        run_id = new_run_id()
        given = {"goal": "Hold them", "inputs": {"holder": "Ann"}, **more}
        for _ in self.runtime.start(given, run_id=run_id):
            pass
        return run_id

    def say(self, run_id: str, decision: str = "approve", **said: Any) -> Any:
        said = parse(Answer, {"decision": decision, "by": "ann", **said})
        return self.runtime.answer(run_id, said)

    def go(self, run_id: str, decision: str = "", **said: Any) -> RunView:
        if decision:
            self.say(run_id, decision, **said)
        for _ in self.runtime.advance(run_id):
            pass
        return self.runtime.view(run_id)

    def held(self) -> str:
        """Start a run that holds both seats and asks whether to go on."""
        run_id = self.start()
        self.go(run_id, "approve")
        return run_id

    def stopped(self) -> str:
        """Start a run that held both seats and was given up then."""
        run_id = self.held()
        self.go(run_id, "answer", answer={"confirmed": False})
        return run_id

    def states(self, run_id: str) -> dict[str, str]:
        rows = self.runtime.journal.ledger.list(run_id=run_id)
        return {row.business_key: row.state for row in rows}

    def key(self, run_id: str, business: str) -> str:
        rows = self.runtime.journal.ledger.list(run_id=run_id)
        return next(row.effect_key for row in rows if row.business_key == business)

    def events(self, run_id: str, kind: str) -> list[Any]:
        entries = self.runtime.journal.log.read(run_id)
        return [each.event for each in entries if each.event.type == kind]


@contextmanager
def desk(folder: Path, **parts: Any) -> Iterator[Desk]:
    """Open the agent over an empty world; `parts` are fields of `Agent`."""
    WORLD.__init__()  # type: ignore[misc]
    made = Desk(folder, parts)
    yield made
    made.runtime.close()
