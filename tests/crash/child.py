"""Runs the refund agent and dies by SIGKILL at a named point. Not a test: a program for tests.

python -m tests.crash.child FOLDER RUN_ID SCENARIO TOOL before|after
"""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import replace
from typing import Any

from plangate.agent import load_agent, open_world
from plangate.graph.payload import Answer
from plangate.runtime import Options, Runtime
from plangate.tools.tool import Tool

SAYS = {
    "approval": Answer(decision="approve", by="ann"),
    "step": Answer(decision="answer", answer={"confirmed": True}, by="ann"),
}


def deadly(tool: Tool, moment: str) -> Tool:
    def body(**values: Any) -> Any:
        if moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        tool.body(**values)
        os.kill(os.getpid(), signal.SIGKILL)

    return replace(tool, body=body)


def main(folder: str, run_id: str, scenario: str, name: str, moment: str) -> None:
    agent = load_agent("refund")
    tools = tuple(deadly(each, moment) if each.spec.name == name else each for each in agent.tools)
    agent = replace(agent, tools=tools)
    chosen = agent.scenarios[scenario]
    world_url = f"sqlite:///{folder}/world.db"
    open_world(agent.connect, world_url).prepare(chosen.world)
    runtime = Runtime(agent, f"sqlite:///{folder}/journal.db", Options(world_url=world_url))
    given = {"goal": chosen.goal, "inputs": dict(chosen.inputs)}
    for _ in runtime.start(given, run_id=run_id):
        pass
    while runtime.journal.runs.get(run_id).status == "waiting":
        _, question = runtime.question(run_id)
        runtime.answer(question.question_id, SAYS[question.kind])
        for _ in runtime.advance(run_id):
            pass
    sys.exit("the child was to die and did not")


if __name__ == "__main__":
    main(*sys.argv[1:])
