"""Theme H: what is stored comes back as it was, grows with the run, and survives its database."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typing_extensions import TypedDict

from plangate import tool
from plangate.agent import Agent
from plangate.graph.saver import checkpoints_path
from plangate.journal.journal import Journal
from plangate.plan.value.step import Step
from plangate.runtime import Runtime, new_run_id
from plangate.tools.answers import Found
from tests.engine.conftest import Lab, lab, plan_of

__all__ = ["lab"]


class Out(TypedDict):
    value: Any


class Colour(Enum):
    RED = "red"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text() | st.floats(-9, 9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


# 28 langchain-ai/langgraph#6718: nested values come back as something else.
@settings(max_examples=60, deadline=None)
@given(value=JSON)
def test_a_value_comes_back_equal_or_is_refused_when_it_is_written(tmp_path_factory, value):
    folder = tmp_path_factory.getbasetemp() / "values"
    with Journal.open(f"sqlite:///{folder}/journal.db") as journal:
        assert journal.artifacts.get(journal.artifacts.put({"value": value})) == {"value": value}


@pytest.mark.parametrize(
    ("value", "back"),
    [
        ({"deep": [{"colour": Colour.RED}]}, {"deep": [{"colour": "red"}]}),
        (datetime(2026, 1, 31, 8, tzinfo=UTC), "2026-01-31T08:00:00Z"),
        (Decimal("0.10"), "0.10"),
        ((1, 2), [1, 2]),
        (b"abc", "abc"),
        ({(1, 2): "x"}, {"1,2": "x"}),
    ],
    ids=["nested enum", "aware time", "decimal", "tuple", "bytes", "tuple keys"],
)
async def test_what_is_no_json_is_written_as_json_before_any_step_reads_it(lab: Lab, value, back):
    read: list[Any] = []

    @tool(effect="read")
    def look() -> Out:
        """Look."""
        return {"value": value}

    @tool(effect="read")
    def use(seen: Any) -> Out:
        """Use what was seen."""
        read.append(seen)
        return {"value": seen}

    first = Step(id="a", objective="o", tool="look")
    second = Step(id="b", objective="o", tool="use", args={"seen": "${a.value}"})
    _, session = await lab.run(plan_of(first, second), [look, use])
    await asyncio.to_thread(session.close)
    again = await asyncio.to_thread(lab.session, session.run.run_id)

    assert read == [back], "the step beside reads what a restored run would read"
    assert again.load(again.view.steps["a"].output) == {"value": back}
    await asyncio.to_thread(again.close)


# 29 bytedance/deer-flow#4189: storage grows with the square of the run.
POLICY = 'schema = 1\n[[allow]]\ntool = "*"\n'
CHUNK = 200_000
COUNTS = (3, 12)
"""Measured at 10, 25 and 50: 2.1, 5.2 and 10.3 MB of journal, and 61 kB of checkpoints each."""


def long_agent(steps: int, *, same: bool) -> Agent:
    @tool(effect="read")
    def chunk(n: int) -> Out:
        """Return 200 kB."""
        return {"value": "x" * CHUNK if same else f"{n:06}" * (CHUNK // 6)}

    rows = "\n".join(
        f"  - {{id: S{n}, objective: Read, tool: chunk, args: {{n: {n}}}, success: [{{id: c{n}, "
        f'level: L1, claim: There is something, rule: "has(result.value)"}}]}}'
        for n in range(steps)
    )
    criteria = "[{id: all, level: L1, claim: Read, rule: 'steps.S0.status == \"done\"'}]"
    template = (
        f"template: long\ngoal: Read\nsteps:\n{rows}\nsuccess_criteria: {criteria}\n"
        "budget: {min_level: L0}\n"
    )
    return Agent(name="long", tools=(chunk,), policy=POLICY, templates=(template,))


def sizes(folder: Path, steps: int, *, same: bool = False) -> tuple[int, int]:
    """Return the bytes of the journal and of the checkpoints after a run of so many steps."""
    runtime = Runtime(long_agent(steps, same=same), f"sqlite:///{folder}/{steps}{same}/journal.db")
    run_id = new_run_id()
    for _ in runtime.start({"goal": "Read"}, run_id=run_id):
        pass
    assert {each.status for each in runtime.view(run_id).steps.values()} == {"done"}
    assert len(runtime.view(run_id).steps) == steps
    runtime.journal.store.rewrite()
    path = checkpoints_path(runtime.journal.url)
    runtime._own_saver.rewrite()
    journal = Path(runtime.journal.url.removeprefix("sqlite:///"))
    found = journal.stat().st_size, path.stat().st_size
    runtime.close()
    return found


def test_a_journal_grows_with_the_steps_and_checkpoints_do_not(tmp_path: Path):
    measured = [sizes(tmp_path, steps) for steps in COUNTS]

    (small, _), (large, _) = measured
    assert large - small < 1.05 * CHUNK * (COUNTS[1] - COUNTS[0]), "each output once, little beside"
    checkpoints = [size for _, size in measured]
    assert max(checkpoints) - min(checkpoints) < 16_384


def test_the_same_output_many_times_is_stored_once(tmp_path: Path):
    journal, _ = sizes(tmp_path, 6, same=True)

    assert journal < 2 * CHUNK


# 46 langchain-ai/langgraph#8606: saving fails long after the step that made the object.
@pytest.mark.parametrize(
    "value",
    [lambda: 1, object(), ValueError("x"), threading.Lock(), {"deep": [{"er": object()}]}],
    ids=["lambda", "object", "exception", "lock", "nested"],
)
async def test_an_object_in_a_result_is_an_error_of_its_step_and_the_effect_is_not_repeated(
    lab: Lab, value
):
    calls: list[int] = []

    @tool(effect="write", key="act", scope="goal", reconcile=lambda _k, _a, _c: Found(True))
    def act() -> Out:
        """Act, and return something that cannot be stored."""
        calls.append(1)
        return {"value": value}

    plan = plan_of(Step(id="a", objective="o", tool="act"))
    halt, session = await lab.run(plan, [act])
    await asyncio.to_thread(session.close)
    _, again = await lab.run(plan, [act], session.run.run_id)
    await asyncio.to_thread(again.close)

    assert (halt.step, halt.code) == ("a", "output_not_json")
    assert "act returned no JSON" in halt.says
    assert (calls, [row.state for row in lab.journal.ledger.list()]) == ([1], ["done"])
