"""The AML agent over a small world, a journal in memory of its own, and an agreeable person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plangate.agent import Agent, Scenario, load_agent
from plangate.examples.aml.world import AmlWorld, connect
from plangate.graph.payload import Answer
from plangate.journal.view import RunView
from plangate.runtime import Options, Runtime, new_run_id

ROWS = 2_000
SAYS: Mapping[str, Mapping[str, Any]] = {
    "approval": {"decision": "approve"},
    "step": {"decision": "answer", "answer": {"confirmed": True}},
    "effect": {"decision": "stop"},
    "escalation": {"decision": "stop"},
    "verdict": {"decision": "stop"},
}


@dataclass
class Desk:
    """An investigator's desk."""

    folder: Path
    world_url: str
    agent: Agent = field(default_factory=lambda: load_agent("aml"))
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.world: AmlWorld = connect(self.world_url)
        options = Options(world_url=self.world_url, **self.options)
        self.runtime = Runtime(self.agent, f"sqlite:///{self.folder}/journal.db", options)

    def run(
        self,
        scenario: Scenario | str,
        says: Mapping[str, Mapping[str, Any]] = SAYS,
        switches: Mapping[str, Any] | None = None,
        **given: Any,
    ) -> RunView:
        """Run a scenario to its end."""
        if isinstance(scenario, str):
            scenario = self.agent.scenarios[scenario]
        self.world.prepare({"rows": ROWS, **scenario.world, **(switches or {})})
        run_id = new_run_id()
        asked = {"goal": scenario.goal, "inputs": dict(scenario.inputs), "task": scenario.task}
        drain(self.runtime.start({**asked, **given}, run_id=run_id))
        while self.runtime.journal.runs.get(run_id).status != "ended":
            for question in self.runtime.view(run_id).pending_questions:
                said = {"by": "ann", **says[question.kind]}
                self.runtime.answer(question.question_id, Answer.model_validate(said))
            drain(self.runtime.advance(run_id))
        return self.runtime.view(run_id)

    def report(self, view: RunView) -> dict[str, Any]:
        assert view.ended is not None
        report = self.runtime.journal.artifacts.get(view.ended.report)
        assert isinstance(report, dict)
        return report

    def output(self, view: RunView, step: str) -> dict[str, Any]:
        found = self.runtime.journal.artifacts.get(view.steps[step].output)
        assert isinstance(found, dict)
        return found

    def calls(self, view: RunView) -> list[str]:
        """The tools that were called, in order of the plan and not of the clock."""
        return sorted(each.started.attempt_id for each in view.attempts.values())

    def close(self) -> None:
        self.runtime.close()
        self.world.close()


def drain(stream: Iterator[Any]) -> None:
    for _ in stream:
        pass
