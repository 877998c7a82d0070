"""Runs a plan with an agent step and dies by SIGKILL in a call that its model chose. No test.

python -m tests.crash.agent JOURNAL_URL FILE live|read_load|model

FILE holds a line for each call of a body; the model goes by it, as it remembers nothing itself.
"""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage

from plangate import create_plan_agent
from tests.crash.outside import Outside
from tests.door.test_agent_steps import (
    CONFIG,
    DONE,
    GOAL,
    HIJACKED,
    LOAD,
    POLICY,
    READ,
    TEMPLATE,
    TOOLS,
    YES,
)


@dataclass
class Remembering:
    """Wishes for what has not been called yet; for what it may not have before that."""

    called: Outside
    dies: bool
    model_name: str = "gpt-5-mini"
    max_tokens: int = 200

    async def ainvoke(self, messages: list[dict[str, str]]) -> AIMessage:
        text, called = messages[-1]["content"], self.called.count()
        if called["read_log"] and self.dies:
            os.kill(os.getpid(), signal.SIGKILL)
        if not called["read_log"]:
            return AIMessage(content=READ)
        if "outside_envelope" not in text:
            return AIMessage(content=HIJACKED)
        return AIMessage(content=DONE if "high" in text else LOAD)


def main(journal_url: str, file: str, dies_in: str) -> None:
    called = Outside(Path(file))

    def told(tool: Any) -> Any:
        def body(**values: Any) -> Any:
            called.add(tool.spec.name)
            if tool.spec.name == dies_in:
                os.kill(os.getpid(), signal.SIGKILL)
            return tool.body(**values)

        return replace(tool, body=body)

    agent = create_plan_agent(
        None,
        [told(each) for each in TOOLS],
        step_model=Remembering(called, dies=dies_in == "model"),
        journal=journal_url,
        name="outages",
        policy=POLICY,
        templates=[TEMPLATE.replace("max_steps: 4", "max_steps: 5")],  # one may be lost
    )
    if dies_in == "live":
        sys.stdout.write(agent.invoke(None, CONFIG)["verdict"])
        return
    agent.invoke(GOAL, CONFIG)
    agent.invoke(YES, CONFIG)


if __name__ == "__main__":
    main(*sys.argv[1:])
