from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from plangate.agent import Agent, Scenario, load_agent, open_world
from plangate.graph.payload import Answer
from plangate.journal.view import RunView
from plangate.plan.facts import Rights
from plangate.runtime import Options, Runtime, new_run_id

SAYS: Mapping[str, Mapping[str, Any]] = {
    "approval": {"decision": "approve"},
    "step": {"decision": "answer", "answer": {"confirmed": True}},
    "effect": {"decision": "stop"},
    "escalation": {"decision": "stop"},
    "verdict": {
        "decision": "judge",
        "answer": {"says": "pass", "evidence": "the warehouse still has the box"},
    },
}
"""What an agreeable person says to each kind of question."""


@dataclass
class Shop:
    """The refund agent over a world and a journal of its own."""

    folder: Path
    agent: Agent = field(default_factory=lambda: load_agent("refund"))
    journal_url: str = ""
    runtime: Runtime = field(init=False)

    def __post_init__(self) -> None:
        self.world_url = f"sqlite:///{self.folder}/world.db"
        self.journal_url = self.journal_url or f"sqlite:///{self.folder}/journal.db"
        self.world = open_world(self.agent.connect, self.world_url)
        self.runtime = self.another()

    def another(self, **options: Any) -> Runtime:
        return Runtime(self.agent, self.journal_url, Options(world_url=self.world_url, **options))

    def start(self, scenario: Scenario | str, rights: Rights | None = None, **more: Any) -> str:
        if isinstance(scenario, str):
            scenario = self.agent.scenarios[scenario]
        self.world.prepare(scenario.world)
        run_id = new_run_id()
        given = {"goal": scenario.goal, "inputs": dict(scenario.inputs), **more}
        for _ in self.runtime.start(given, run_id=run_id, rights=rights):
            pass
        return run_id

    def answer(self, run_id: str, says: Mapping[str, Mapping[str, Any]] = SAYS) -> None:
        _, question = self.runtime.question(run_id)
        said = {"by": "ann", **says[question.kind]}
        self.runtime.answer(question.question_id, Answer.model_validate(said))

    def finish(self, run_id: str, says: Mapping[str, Mapping[str, Any]] = SAYS) -> RunView:
        while self.runtime.journal.runs.get(run_id).status != "ended":
            if self.runtime.view(run_id).pending_questions:
                self.answer(run_id, says)
            for _ in self.runtime.advance(run_id):
                pass
        return self.runtime.view(run_id)

    def report(self, run_id: str) -> dict[str, Any]:
        ended = self.runtime.view(run_id).ended
        assert ended is not None
        report = self.runtime.journal.artifacts.get(ended.report)
        assert isinstance(report, dict)
        return report

    def close(self) -> None:
        self.runtime.close()
        self.world.close()


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    made = Shop(tmp_path)
    yield made
    made.close()


@pytest.fixture
def events(shop: Shop) -> Callable[[str, str], list[Any]]:
    def of(run_id: str, kind: str) -> list[Any]:
        entries = shop.runtime.journal.log.read(run_id)
        return [each.event for each in entries if each.event.type == kind]

    return of
