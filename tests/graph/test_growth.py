"""Checkpoints grow with the passes of the loop; neither with the plan nor with steps' outputs."""

from __future__ import annotations

import pytest
import yaml
from typing_extensions import TypedDict

from plangate import tool
from plangate.agent import Agent
from plangate.plan.facts import Rights
from plangate.runtime import Options, Runtime

POLICY = 'schema = 1\n[[allow]]\ntool = "*"\nroles = ["clerk"]\n'
COUNT = {
    "sqlite": (
        "SELECT sum(length(checkpoint) + length(metadata)) FROM checkpoints",
        "SELECT sum(length(value)) FROM writes",
    ),
    "postgres": (
        "SELECT sum(length(checkpoint::text) + length(metadata::text)) FROM checkpoints",
        "SELECT sum(length(blob)) FROM checkpoint_writes",
        "SELECT sum(length(blob)) FROM checkpoint_blobs",
    ),
}


class Page(TypedDict):
    size: int
    text: str


@tool(effect="read")
async def fetch(number: int) -> Page:
    """Return a large page."""
    return {"size": 20_000, "text": f"{number}" + "x" * 20_000}


def template(steps: int) -> str:
    made = [
        {
            "id": f"S{number}",
            "objective": "Fetch a page",
            "tool": "fetch",
            "args": {"number": number},
            "success": [
                {
                    "id": f"ok{number}",
                    "level": "L1",
                    "claim": "It has text",
                    "rule": "result.size > 0",
                }
            ],
        }
        for number in range(steps)
    ]
    done = {"id": "all", "level": "L1", "claim": "All", "rule": "steps.S0.output.size > 0"}
    said = {"template": "pages", "goal": "Fetch", "parameters": [], "steps": made}
    return yaml.safe_dump({**said, "success_criteria": [done]})


def bytes_of_checkpoints(kind: str, url: str, steps: int) -> int:
    agent = Agent(
        name="pages",
        tools=(fetch,),
        policy=POLICY,
        templates=(template(steps),),
        rights=Rights(principal="ann", roles=("clerk",)),
    )
    runtime = Runtime(agent, url, Options())
    run_id = f"run_{steps}"
    for _ in runtime.start({"goal": "Fetch", "inputs": {}}, run_id=run_id):
        pass
    ended = runtime.view(run_id).ended
    assert ended is not None
    assert ended.verdict == "pass", ended.why
    with runtime._own_saver.cursor() if kind == "sqlite" else runtime._own_saver._cursor() as tx:
        found = [next(iter(tx.execute(count))) for count in COUNT[kind]]
    runtime.close()
    return sum(each[0] if kind == "sqlite" else each["sum"] for each in found)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_fifty_large_steps_make_no_larger_checkpoints_than_ten(request, tmp_path, kind):
    sizes = []
    for steps in (10, 25, 50):
        url = f"sqlite:///{tmp_path}/{steps}/journal.db"
        if kind == "postgres":
            url = request.getfixturevalue("postgres")
        sizes.append(bytes_of_checkpoints(kind, url, steps) - sum(sizes) * (kind == "postgres"))

    assert max(sizes) < 1.1 * min(sizes)
    assert max(sizes) < 20_000
