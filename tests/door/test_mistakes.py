from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from plangate.graph.payload import Answer
from plangate.journal.owner import owner_name
from plangate.journal.session import Session
from plangate.plan.errors import ConfigError, Denied, RunBusy
from tests.door.letters import POLICY, Post, given, on

YES = Command(resume={"decision": "approve", "by": "ann"})


@pytest.fixture
def post(tmp_path: Path) -> Iterator[Post]:
    made = Post(tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize(
    "wrong",
    [
        {"goal": "\ud800"},
        {"goal": 5},
        {"goal_id": 5},
        {"goal_id": "\ud800"},
        {"goal_id": "x" * 300},
        {"task": 5},
        {"task": "nope"},
        {"inputs": [1]},
        {"inputs": {}},
        {"inputs": {1: 2}},
        {"inputs": {"to": 5}},
        {"inputs": {"to": "\ud800"}},
        {"inputs": {"to": float("nan")}},
        {"inputs": {"to": 1e20}},
        {"inputs": {"to": 2**60}},
        {"inputs": {"to": object()}},
    ],
    ids=lambda wrong: ascii(wrong)[:40],
)
def test_a_mistake_in_the_call_is_named_and_leaves_the_thread_free(post, wrong):
    graph = post.open().graph
    with pytest.raises(ConfigError):
        graph.invoke({**given(), **wrong}, on("t"))

    asked = graph.invoke(given(), on("t"))

    assert asked["__interrupt__"]


@pytest.mark.parametrize(
    "context", ["ann", 7, {"nope": 1}, {"principal": 5}, {"principal": "\ud800"}]
)
def test_a_context_that_names_nobody_is_not_taken_for_the_agents_own_rights(post, context):
    runtime = post.open()

    with pytest.raises(ConfigError, match="context="):
        runtime.graph.invoke(given(), on("t"), context=context)

    assert runtime.journal.runs.list() == ()


@pytest.mark.parametrize("saver", [None, InMemorySaver()], ids=["ours", "a host's"])
def test_the_yes_of_somebody_who_was_refused_is_not_kept_for_later(post, saver):
    runtime = post.open(checkpointer=saver)
    runtime.graph.invoke(given(), on("t"))
    with pytest.raises(Denied):
        runtime.graph.invoke(YES, on("t"), context={"principal": "mallory"})

    asked = runtime.graph.invoke(None, on("t"))

    assert asked["__interrupt__"]
    assert post.sent == []
    assert runtime.graph.invoke(YES, on("t"))["verdict"] == "pass"


def test_a_yes_that_found_the_run_busy_is_not_kept_for_later(post):
    runtime = post.open()
    run_id = runtime.graph.invoke(given(), on("t"))["run_id"]
    with (
        Session.open(runtime.journal, run_id, owner_name(), 15.0),
        pytest.raises(RunBusy),
    ):
        runtime.graph.invoke(YES, on("t"))

    assert runtime.graph.invoke(None, on("t"))["__interrupt__"]
    assert post.sent == []


def lose_checkpoints(post: Post) -> None:
    for file in post.folder.glob("journal.checkpoints*"):
        file.unlink()


def test_a_waiting_run_whose_checkpoint_is_lost_goes_on_from_the_journal(post):
    runtime = post.open()
    run_id = runtime.graph.invoke(given(), on("t"))["run_id"]
    runtime.close()
    lose_checkpoints(post)
    runtime = post.open()
    runtime.answer(run_id, Answer(decision="approve", by="ann"))

    list(runtime.advance(run_id))

    assert (runtime.view(run_id).ended.verdict, post.sent) == ("pass", ["Ann"])


def test_a_resume_without_a_checkpoint_finds_its_run_by_the_thread_and_asks_again(post):
    runtime = post.open()
    run_id = runtime.graph.invoke(given(), on("t"))["run_id"]
    runtime.close()
    lose_checkpoints(post)
    graph = post.open().graph

    assert graph.invoke(YES, on("t"))["run_id"] == run_id
    assert graph.invoke(YES, on("t"))["verdict"] == "pass"
    assert post.sent == ["Ann"]


@pytest.mark.parametrize(
    ("changed", "status", "ending"),
    [
        ({"contract": {"key": "other:{to}"}}, "waiting", None),
        ({"policy": POLICY + '[[allow]]\ntool = "send"\n'}, "waiting", None),
        (
            {
                "policy": POLICY
                + '[[require]]\nbefore = "send"\nancestors = ["human:operator"]\nreason = "now"\n'
            },
            "ended",
            "failed",
        ),
    ],
    ids=["a contract", "the policy", "the policy forbids it"],
)
def test_an_approval_does_not_outlive_the_contracts_and_the_policy_it_was_given_under(
    post, changed: dict[str, Any], status, ending
):
    runtime = post.open()
    run_id = runtime.graph.invoke(given(), on("t"))["run_id"]
    runtime.answer(run_id, Answer(decision="approve", by="ann"))
    runtime.close()
    runtime = post.open(**changed)

    list(runtime.advance(run_id))

    run = runtime.journal.runs.get(run_id)
    assert (run.status, run.ending, post.sent) == (status, ending, [])


def test_a_world_that_cannot_be_opened_is_named_and_the_run_goes_on_once_it_can(post):
    def nobody(_url: str) -> None:
        raise ConnectionError("nobody home at https://u:secret@host")

    runtime = post.open(connect=nobody)
    run_id = runtime.graph.invoke(given(), on("t"))["run_id"]
    runtime.answer(run_id, Answer(decision="approve", by="ann"))
    with pytest.raises(ConfigError, match="nobody home") as caught:
        list(runtime.advance(run_id))
    runtime.close()

    runtime = post.open()
    list(runtime.advance(run_id))

    assert "secret" not in str(caught.value)
    assert (runtime.view(run_id).ended.verdict, post.sent) == ("pass", ["Ann"])


def test_callers_on_loops_of_their_own_share_one_world(post):
    opened: list[str] = []

    def slowly(url: str) -> object:
        time.sleep(0.2)
        opened.append(url)
        return object()

    graph = post.open(connect=slowly).graph
    ends: list[Any] = []

    def call(name: str) -> None:
        async def both() -> None:
            await graph.ainvoke(given(name), on(name))
            ends.append((await graph.ainvoke(YES, on(name)))["verdict"])

        asyncio.run(both())

    threads = [threading.Thread(target=call, args=(name,)) for name in ("Ann", "Bob", "Cy")]
    for each in threads:
        each.start()
    for each in threads:
        each.join(30)

    assert (ends, len(opened)) == (["pass"] * 3, 1)
