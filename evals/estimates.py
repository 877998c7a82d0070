"""How often the high end of an estimate held: in runs with seeded noise, or in those of a journal.

An estimate that is honest about its p95 is passed by one run in twenty; the goal is that at least
nine in ten stay within it. Runs learn from those before them, as in a journal.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

from plangate.agent import open_world
from plangate.evals.noise import PRICES, Noise, NoisyCritic
from plangate.graph.answer import Answer
from plangate.journal.samples import MOST_SAMPLES, Past, Sample, Samples, Used
from plangate.journal.view import RunView, fold
from plangate.nodes.cost import cost_of, held
from plangate.nodes.worked import worked_s
from plangate.runtime import Options, Runtime, new_run_id

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from datetime import datetime

    from plangate.agent import Agent, Scenario
    from plangate.journal.journal import Journal
    from plangate.nodes.kit import Kit
    from plangate.plan.value.frozen import Json

GOAL = 0.9
METRICS = ("usd", "tokens", "seconds", "calls")
MOST_RUNS = 10_000
_TURNS = 20
"""Answers of one run, at most."""

_SAYS: dict[str, dict[str, Any]] = {
    "approval": {"decision": "approve"},
    "step": {"decision": "answer", "answer": {"confirmed": True}},
    "effect": {"decision": "stop"},
    "escalation": {"decision": "stop"},
    "verdict": {"decision": "judge", "answer": {"says": "pass", "evidence": "a simulated look"}},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One run, held against its estimate."""

    name: str
    """Of its scenario, or of its task type."""

    run_id: str
    cost: dict[str, Json]
    held: dict[str, bool | None]
    """By metric; None: one of the two is unknown, so that nothing can be said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How often one metric held."""

    held: int
    of: int
    unknown: int

    @property
    def share(self) -> float | None:
        """From 0 to 1; None where nothing can be said."""
        return self.held / self.of if self.of else None

    @property
    def is_good(self) -> bool:
        """False also where nothing can be said."""
        return self.share is not None and self.share >= GOAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """What was measured, case by case."""

    kind: Literal["seeded noise", "journal"]
    cases: tuple[Case, ...]
    seed: int | None = None

    def tally(self, metric: str, name: str | None = None) -> Tally:
        """Count one metric over all cases, or over those of one name."""
        said = [each.held[metric] for each in self.cases if name in (None, each.name)]
        known = [each for each in said if each is not None]
        return Tally(held=sum(known), of=len(known), unknown=len(said) - len(known))

    @property
    def is_good(self) -> bool:
        """True if each metric held in as many runs as is the goal."""
        return all(self.tally(metric).is_good for metric in METRICS)


@dataclass(slots=True)
class Memory:
    """What earlier runs of this measurement took; each has a journal of its own."""

    _used: dict[str, list[Used]] = field(default_factory=dict)

    def learn(self, used: Collection[Used]) -> None:
        """Take a run in."""
        for each in used:
            self._used.setdefault(each.subject, []).insert(0, each)

    def recall(self, subjects: Collection[str], since: datetime, until: datetime) -> Past:
        """Answer as `journal.usage.of`; all of it happened just now."""
        del since, until
        return {name: _samples(self._used[name]) for name in subjects if name in self._used}


def _samples(used: list[Used]) -> Samples:
    every: list[Sample] = [sample for each in used for sample in each.samples[:MOST_SAMPLES]]
    return Samples(samples=tuple(every), calls=tuple(each.calls for each in used))


def of_scenarios(agent: Agent, runs: int, seed: int) -> Accuracy:
    """Run each scenario of an agent so many times, each over a world of its own, with noise.

    Args:
        agent: An example.
        runs: Of each scenario.
        seed: Of the noise.
    """
    memory, cases = Memory(), list[Case]()
    # A call that a scenario has hang outlives its run, which is then told of; here that is meant.
    log = logging.getLogger("plangate")
    with TemporaryDirectory(prefix="plangate-eval-") as folder, _quiet(log):
        for number in range(runs):
            for scenario in agent.scenarios.values():
                noise = Noise(f"{seed}:{scenario.name}:{number}")
                place = Path(folder, f"{scenario.name}-{number}")
                place.mkdir()
                cases.append(_case(agent, scenario, noise, memory, place))
    return Accuracy(kind="seeded noise", cases=tuple(cases), seed=seed)


@contextmanager
def _quiet(log: logging.Logger) -> Iterator[None]:
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)


def of_journal(journal: Journal, limit: int = MOST_RUNS) -> Accuracy:
    """Hold the runs of a journal that have ended against what they were said to take."""
    return Accuracy(kind="journal", cases=tuple(_recorded(journal, limit)))


def _recorded(journal: Journal, limit: int) -> Iterator[Case]:
    for run in journal.runs.list("ended", limit):
        entries = journal.log.read(run.run_id)
        view = fold(entries)
        if view.promised is not None and view.attempts:
            cost = cost_of(view, worked_s(entries))
            yield Case(name=run.agent, run_id=run.run_id, cost=cost, held=held(cost))


def _case(agent: Agent, scenario: Scenario, noise: Noise, memory: Memory, place: Path) -> Case:
    world_url, run_id = f"sqlite:///{place}/world.db", new_run_id()
    _prepare(agent, scenario, world_url)
    options = Options(world_url=world_url, critic=NoisyCritic(noise), prices=PRICES)

    def kit(made: Kit) -> Kit:
        return replace(made, recall=memory.recall, monotonic=noise.clock.now)

    runtime = Runtime(noise.over(agent), f"sqlite:///{place}/journal.db", options, kit=kit)
    try:
        view = _finished(runtime, scenario, run_id)
    finally:
        runtime.close()
    if view.ended is not None:
        memory.learn(view.ended.used)
    cost = cost_of(view, noise.clock.now())
    return Case(name=scenario.name, run_id=run_id, cost=cost, held=held(cost))


def _prepare(agent: Agent, scenario: Scenario, world_url: str) -> None:
    world = open_world(agent.connect, world_url)
    if world is not None:
        try:
            world.prepare(scenario.world)
        finally:
            world.close()


def _finished(runtime: Runtime, scenario: Scenario, run_id: str) -> RunView:
    """Take a run to its end, with a person who agrees to all of it."""
    given = {"goal": scenario.goal, "inputs": dict(scenario.inputs), "task": scenario.task}
    for _ in runtime.start(given, run_id=run_id):
        pass
    for _ in range(_TURNS):
        if runtime.journal.runs.get(run_id).status == "ended":
            break
        for question in runtime.view(run_id).pending_questions:
            said = {"by": "eval", "role": question.roles[0] if question.roles else ""}
            runtime.answer(
                question.question_id, Answer.model_validate({**said, **_SAYS[question.kind]})
            )
        for _ in runtime.advance(run_id):
            pass
    return runtime.view(run_id)
