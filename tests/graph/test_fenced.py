from __future__ import annotations

import asyncio
import sqlite3
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, TypedDict

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Interrupt, interrupt

from plangate.graph.fenced import fenced, need_plain
from plangate.graph.saver import open_saver
from plangate.journal.journal import Journal
from plangate.journal.runs import Run
from plangate.plan.errors import ConfigError, LeaseLost
from plangate.plan.facts import Rights

CONFIG: Any = {"configurable": {"thread_id": "t"}}


class Box(TypedDict, total=False):
    value: Any


def boxing(saver, body):
    graph = StateGraph(Box)
    graph.add_node("first", body)
    graph.add_node("second", lambda _: {})
    graph.add_edge(START, "first")
    graph.add_edge("first", "second")
    graph.add_edge("second", END)
    return graph.compile(checkpointer=saver)


@pytest.fixture(params=["sqlite", "postgres"])
def journal(request, tmp_path):
    url = f"sqlite:///{tmp_path}/journal.db"
    if request.param == "postgres":
        url = request.getfixturevalue("postgres")
    with Journal.open(url) as made:
        run = Run(run_id="r", goal_id="g", goal="x", thread_id="t", agent="a", principal=RIGHTS)
        made.runs.create(run)
        yield made


RIGHTS = Rights(principal="p")


@pytest.fixture(params=["ours", "a host's"])
def saver(request, journal):
    made = open_saver(journal.store) if request.param == "ours" else InMemorySaver()
    yield made
    if request.param == "ours":
        made.close()


def history(saver: Any) -> list[Any]:
    return [each.checkpoint["channel_values"].get("value") for each in saver.list(CONFIG)]


def run(graph: Any, door: str, given: Any) -> Any:
    call = {"durability": "sync"}
    if door == "sync":
        return graph.invoke(given, CONFIG, **call)
    return asyncio.run(graph.ainvoke(given, CONFIG, **call))


@pytest.mark.parametrize("door", ["sync", "async"])
def test_a_former_owner_writes_no_checkpoint(journal, saver, door):
    held = [journal.runs.acquire("r", "elsewhere:1:1:old", -1)]

    def paused(_: Box) -> Box:
        journal.runs.acquire("r", "elsewhere:1:1:new", 30)  # while the former owner slept
        return {"value": "late"}

    graph = boxing(fenced(saver, lambda _: held[0], journal.runs), paused)

    with pytest.raises(LeaseLost, match="new holds it with epoch 2"):
        run(graph, door, {"value": "early"})

    assert set(history(saver)) <= {None, "early"}


@pytest.mark.parametrize("door", ["sync", "async"])
def test_the_present_owner_and_one_that_let_go_write_theirs(journal, saver, door):
    lease = journal.runs.acquire("r", "elsewhere:1:1:me", 30)

    def settle(_: Box) -> Box:
        journal.runs.release(lease)
        return {"value": "mine"}

    graph = boxing(fenced(saver, lambda _: lease, journal.runs), settle)

    assert run(graph, door, {"value": "early"}) == {"value": "mine"}
    assert history(saver)[0] == "mine"


def test_a_former_owner_that_paused_is_let_go_without_a_word(journal, saver):
    lease = journal.runs.acquire("r", "elsewhere:1:1:me", -1)
    view = fenced(saver, lambda _: lease, journal.runs)
    boxing(view, lambda _: {}).invoke({"value": "early"}, CONFIG)
    journal.runs.acquire("r", "elsewhere:1:1:you", 30)
    newest = saver.get_tuple(CONFIG)

    view.put_writes(newest.config, [("__interrupt__", (Interrupt(value="q", id="i"),))], "task")
    with pytest.raises(LeaseLost):
        view.put_writes(newest.config, [("value", "late")], "task")

    assert saver.get_tuple(CONFIG).pending_writes == newest.pending_writes


def none_held(saver: Any, journal: Journal) -> Any:
    return fenced(saver, lambda _: None, journal.runs)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (datetime(2026, 1, 1, tzinfo=UTC), "a value of type datetime at value"),
        ({"a": [1, {"b": Decimal(1)}]}, r"a value of type Decimal at value\.a\[1\]\.b"),
        ({"a": {1: 2}}, "a key of type int at value.a"),
        ((1, 2), "a value of type tuple at value"),
        ([float("nan")], r"the number nan at value\[0\]"),
        (2**64, "a whole number of more than 64 bits at value"),
        (RIGHTS, "a value of type Rights at value"),
    ],
    ids=str,
)
def test_what_is_not_json_is_refused_when_it_is_written_with_its_place(value, says):
    with pytest.raises(ConfigError, match=says) as caught:
        need_plain([("value", value)])

    assert "plain JSON" in caught.value.hint


def test_plain_values_and_langgraphs_own_channels_pass():
    deep = {"a": [1, 2.5, None, True, "ü", {"b": [2**63, -(2**63)]}]}

    need_plain([("value", deep), ("branch:to:x", None), ("__error__", ValueError("x"))])


def test_a_node_that_gives_no_json_fails_at_once_and_leaves_nothing(journal, saver):
    graph = boxing(none_held(saver, journal), lambda _: {"value": {"when": datetime.now(UTC)}})

    with pytest.raises(ConfigError, match=r"type datetime at value\.when"):
        graph.invoke({"value": 1}, CONFIG)

    assert set(history(saver)) <= {None, 1}


def test_an_interrupt_with_a_payload_that_is_no_json_is_refused(journal, saver):
    graph = boxing(none_held(saver, journal), lambda _: interrupt({"by": {1, 2}}))

    with pytest.raises(ConfigError, match=r"type set at the interrupt's payload\.by"):
        graph.invoke({"value": 1}, CONFIG)


def test_a_hosts_permissive_saver_is_read_strictly_and_left_as_it_is(journal):
    with sqlite3.connect(":memory:", check_same_thread=False) as file:
        host = SqliteSaver(file)
        view = none_held(host, journal)
        boxing(host, lambda _: {"value": RIGHTS}).invoke({"value": 1}, CONFIG)

        found = view.get_tuple(CONFIG).checkpoint["channel_values"]["value"]

    file.close()
    assert type(found) is dict
    assert isinstance(host.serde, JsonPlusSerializer)
    assert host.serde is not view.serde
