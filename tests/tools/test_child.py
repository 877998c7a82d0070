from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from plangate.engine.classify import classify
from plangate.plan.errors import ConfigError
from plangate.tools.answers import NotSent, ToolFailed
from plangate.tools.child import LimitPassed, Limits, outcome_of
from plangate.tools.context import ToolContext
from plangate.tools.credentials import Granted, Secret
from plangate.tools.tool import tool
from tests.tools import isolated

CONTEXT = ToolContext(run_id="r", step="S1", attempt_id="S1-A1", principal="ann")


async def misbehave(how: str, where: str = "") -> list[str]:
    got = await isolated.misbehave.call({"how": how, "where": where}, CONTEXT)
    return got["said"]


def is_alive(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


async def test_a_child_inherits_nothing_is_limited_and_leaves_nothing_behind(monkeypatch, tmp_path):
    monkeypatch.setenv("VAULT_TOKEN", "hunter2")

    said = await misbehave("look around", str(tmp_path / "file"))

    assert not {"VAULT_TOKEN", "PATH", "HOME", "forged"} & set(said)
    assert {"folder:", "file:EFBIG", "files:EMFILE"} <= set(said)
    assert f"group:{os.getpgrp()}" not in said
    [left] = [int(line[5:]) for line in said if line.startswith("left:")]
    await until(lambda: not is_alive(left))


@pytest.mark.parametrize("how", ["fill memory", "spin", "answer much"])
async def test_a_limit_that_was_passed_is_not_tried_again(how):
    with pytest.raises(LimitPassed) as caught:
        await misbehave(how)

    assert classify(isolated.misbehave.spec, caught.value).outcome == "permanent"


async def test_a_child_that_dies_while_it_acts_leaves_the_effect_unknown():
    with pytest.raises(OSError, match="SIGKILL") as caught:
        await isolated.pay_and_die.call({"how": "die"}, CONTEXT)

    assert classify(isolated.pay_and_die.spec, caught.value).outcome == "unknown"


@pytest.mark.parametrize(
    ("message", "began", "outcome", "code"),
    [
        ({"failed": "closed", "says": "no", "evidence": ["x://1"]}, True, "permanent", "closed"),
        ({"raised": "ConnectionResetError", "of_system": True}, True, "transient", None),
        ({"raised": "ValueError", "of_system": False}, True, "permanent", "ValueError"),
        ({"raised": "MemoryError"}, True, "permanent", "LimitPassed"),
        ({"raised": "not a name"}, True, "permanent", "Exception"),
        ({"not_sent": "not_connected"}, True, "transient", "not_connected"),
        ({"raised": "OSError", "of_system": True}, False, "permanent", "not_started"),
    ],
)
def test_what_a_child_says_of_a_failure_is_what_the_tool_would_have_raised(
    message, began, outcome, code
):
    with pytest.raises(Exception) as caught:  # noqa: PT011 - any kind; classify() sorts them
        outcome_of(message, began=began)

    failure = classify(isolated.misbehave.spec, caught.value)
    assert (failure.outcome, failure.code) == (outcome, code or message["raised"])


async def test_at_the_deadline_the_child_and_what_it_started_are_killed(tmp_path):
    pids = tmp_path / "pids"
    call = asyncio.create_task(misbehave("hang", str(pids)))
    await until(lambda: pids.exists() and len(pids.read_text().split()) == 2)

    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call

    child, grandchild = map(int, pids.read_text().split())
    assert not is_alive(child)
    await until(lambda: not is_alive(grandchild))


async def test_the_child_dies_with_its_parent(tmp_path):
    pids = tmp_path / "pids"
    code = (
        "import asyncio; from tests.tools.test_child import misbehave; "
        f"asyncio.run(misbehave('hang', {str(pids)!r}))"
    )
    parent = subprocess.Popen(  # noqa: ASYNC220
        [sys.executable, "-c", code], cwd=Path(__file__).parents[2]
    )
    await until(lambda: pids.exists() and len(pids.read_text().split()) == 2)

    parent.kill()
    parent.wait()

    child, grandchild = map(int, pids.read_text().split())
    await until(lambda: not is_alive(child) and not is_alive(grandchild))


async def test_credentials_and_secrets_reach_the_child_and_stand_in_no_list_of_processes():
    asked = []

    async def grants(secrets: tuple[str, ...]) -> Granted:
        asked.append(secrets)
        return Granted(credential=Secret("tok-en"), secrets={secrets[0]: Secret("hunter2")})

    heard: list[str] = []
    context = replace(
        CONTEXT, scopes=("pay",), effect_key="K", grants=grants, progress=heard.append
    )

    got = await isolated.pay.call({"order_id": "O", "password": "secret://crm/pw"}, context)

    assert got == {"said": ["O", "tok", "7", "K", "pay"]}
    assert (asked, heard) == ([("secret://crm/pw",)], ["half way"])


async def test_the_outside_is_asked_from_the_child_as_well():
    assert isolated.pay.reconcile is not None
    found = await isolated.pay.reconcile("K", {}, CONTEXT)

    assert (found.happened, found.output["said"][0], found.output["said"][2]) == (True, "K", "S1")
    assert found.output["said"][1] != str(os.getpid())


async def test_a_child_that_cannot_load_the_tool_has_not_acted(monkeypatch):
    gone = replace(isolated.pay_and_die.isolated, address="tests.tools.nowhere:pay")

    with pytest.raises(ToolFailed, match="cannot be loaded") as caught:
        await replace(isolated.pay_and_die, isolated=gone).call({"how": "die"}, CONTEXT)

    assert caught.value.code == "not_started"


async def test_a_machine_without_room_for_a_process_has_not_acted(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")

    with pytest.raises(NotSent) as caught:
        await isolated.pay_and_die.call({"how": "die"}, CONTEXT)

    assert classify(isolated.pay_and_die.spec, caught.value).outcome == "transient"


def test_a_tool_that_a_child_could_not_import_cannot_be_isolated():
    with pytest.raises(ConfigError, match="could not import"):

        @tool(effect="read", isolated=Limits())
        def inner() -> isolated.Said:
            """Look."""
            return isolated.Said([])


def test_limits_below_what_a_child_needs_are_refused():
    with pytest.raises(ConfigError, match="memory_bytes"):
        Limits(memory_bytes=1000)


async def until(true) -> None:
    end = time.monotonic() + 10
    while not true():
        assert time.monotonic() < end
        await asyncio.sleep(0.01)
