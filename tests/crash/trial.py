"""One trial: a process runs, dies by SIGKILL at a point, and another one finishes its run.

Processes are forked from one that has imported everything and started nothing, so that a trial
costs what the run costs and not what the imports cost.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from plangate.graph.payload import Answer
from plangate.journal.points import watch
from plangate.runtime import Options, Runtime
from tests.crash.outside import Outside, agent_of

AFTER_THE_EFFECT = ("effect.returned", 1)
"""Dying here leaves an intent without an outcome: its recovery is what a second death cuts."""


@dataclass(frozen=True)
class Kill:
    """Where to die: the so-manieth time that a point is reached."""

    point: str
    nth: int
    recovering: bool = False
    """True: in the process that recovers from a death right after the effect."""


@dataclass
class Result:
    kind: str
    database: str
    kill: Kill
    reached: bool = True
    duplicates: int = 0
    lost: list[str] = field(default_factory=list)
    asked: bool = False
    """A person was asked what became of the effect."""

    wrong: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Place:
    """Where a trial has its files, its journal and its run."""

    folder: Path
    journal_url: str
    run_id: str
    kind: str

    @property
    def outside(self) -> Outside:
        return Outside(self.folder / "outside.jsonl")

    def open(self) -> Runtime:
        options = Options(world_url=str(self.outside.path))
        return Runtime(agent_of(self.kind), self.journal_url, options)


def run_to_the_end(place: Place, runtime: Runtime, *, leave: str = "") -> list[str]:
    """Start or take up the run, answer what is asked; return the kinds of the questions.

    Args:
        leave: A kind of question that is left alone, which ends this.
    """
    known = runtime.journal.runs.list(limit=10_000)
    if place.run_id not in [run.run_id for run in known]:
        given = {"goal": "Act once", "inputs": {"target": place.run_id}}
        for _ in runtime.start(given, run_id=place.run_id):
            pass
    asked = []
    for _ in range(20):
        if runtime.journal.runs.get(place.run_id).status == "ended":
            return asked
        for question in runtime.view(place.run_id).pending_questions:
            asked.append(question.kind)
            if question.kind == leave:
                return asked
            runtime.answer(question.question_id, _said(place, question.kind))
        for _ in runtime.advance(place.run_id):
            pass
    raise AssertionError(f"the run does not end; it asked {asked}")


def _said(place: Place, kind: str) -> Answer:
    if kind == "approval":
        return Answer(decision="approve", by="ann")
    if kind == "step":
        return Answer(decision="answer", answer={"confirmed": True}, by="ann")
    assert kind == "effect", f"nothing else is to be asked, and {kind} was"
    happened = place.outside.count()[place.run_id] > 0
    output = {"target": place.run_id, "operation_id": f"op-{place.run_id}"}
    known: dict[str, Any] = {"state": "done", "output": output} if happened else {"state": "failed"}
    return Answer(decision="settle", answer=known, by="ann", comment="looked at the file")


def forked(work: Callable[[], None]) -> int:
    """Do something in a process of its own; return its wait status."""
    return os.waitpid(child(work), 0)[1]


def child(work: Callable[[], None]) -> int:
    """Begin something in a process of its own; return its id."""
    pid = os.fork()
    if pid == 0:
        _child(work)
    return pid


def _child(work: Callable[[], None]) -> NoReturn:
    code = 1
    try:
        work()
        code = 0
    except BaseException:  # noqa: BLE001 - a forked child must not run on in the parent's code
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def record(place: Place, out: Path) -> None:
    """Run without dying, and write down how often each point was reached."""
    hits: Counter[str] = Counter()
    watch(lambda point: hits.update((point,)))
    runtime = place.open()
    run_to_the_end(place, runtime)
    runtime.close()
    out.write_text(json.dumps(hits))


def die_at(place: Place, kill: Kill) -> None:
    hits: Counter[str] = Counter()

    def deadly(point: str) -> None:
        hits.update((point,))
        if point == kill.point and hits[point] == kill.nth:
            os.kill(os.getpid(), signal.SIGKILL)

    watch(deadly)
    runtime = place.open()
    run_to_the_end(place, runtime)
    runtime.close()


def killed(place: Place, kill: Kill) -> bool:
    status = forked(lambda: die_at(place, kill))
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def try_once(place: Place, database: str, kill: Kill, out: Path) -> None:
    """Kill a run, have it finished by another process, and write down what became of it."""
    result = Result(place.kind, database, kill)
    if kill.recovering:
        assert killed(place, Kill(*AFTER_THE_EFFECT))
    result.reached = killed(place, kill)
    found = out.with_suffix(".found")
    status = forked(lambda: _finish(place, result, found))
    if status != 0:
        result.wrong.append("the run could not be finished")
        result.duplicates = max(0, place.outside.count()[place.run_id] - 1)
        found.write_text(json.dumps(asdict(result)))
    found.rename(out)


def _finish(place: Place, result: Result, found: Path) -> None:
    runtime = place.open()
    ledger, runs = runtime.journal.ledger, runtime.journal.runs.list(limit=10_000)
    known = place.run_id in [run.run_id for run in runs]
    states = [row.state for row in ledger.list(run_id=place.run_id)]
    done = {}
    if known:
        steps = runtime.view(place.run_id).steps
        done = {name: list(each.attempts) for name, each in steps.items() if each.status == "done"}
    run_to_the_end(place, runtime)
    view = runtime.view(place.run_id)
    result.asked = "effect" in [each.kind for each in view.questions.values()]
    count = place.outside.count()[place.run_id]
    result.duplicates = max(0, count - 1)
    result.lost = [
        f"{name} was done and ran again"
        for name, attempts in done.items()
        if name in view.steps and list(view.steps[name].attempts) != attempts
    ]
    if count != (place.kind != "read"):
        result.lost.append(f"the effect happened {count} times")
    unsure = place.kind == "once" and (result.kill.recovering or states == ["intended"])
    if result.asked != unsure:
        result.wrong.append(f"asked a person: {result.asked}, and the ledger had {states}")
    ended = view.ended
    if ended is None or (ended.ending, ended.verdict) != ("completed", "pass"):
        result.wrong.append(f"ended {ended}")
    rows = ledger.list(run_id=place.run_id)
    if [row.state for row in rows] != ["done"] * (place.kind != "read"):
        result.wrong.append(f"the ledger has {[row.state for row in rows]}")
    runtime.close()
    found.write_text(json.dumps(asdict(result)))
