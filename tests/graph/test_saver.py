from __future__ import annotations

import asyncio
import logging
import multiprocessing
import sqlite3
import threading
from pathlib import Path
from typing import TypedDict

import ormsgpack
import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from plangate.graph.bridge import run_blocking
from plangate.graph.fenced import fenced
from plangate.graph.saver import check_saver, checkpoints_path, open_saver
from plangate.graph.wiring import NEXT, Nodes, wire
from plangate.journal.clock import utc_now
from plangate.journal.journal import Journal
from plangate.journal.runs import Runs
from plangate.journal.store import Store, open_engine
from plangate.plan.errors import ConfigError, JournalError


class Count(TypedDict, total=False):
    n: int


def counting(saver):
    graph = StateGraph(Count)
    graph.add_node("more", lambda state: {"n": state["n"] + 1})
    graph.add_edge(START, "more")
    graph.add_conditional_edges(
        "more", lambda state: "more" if state["n"] < 5 else END, {"more": "more", END: END}
    )
    return graph.compile(checkpointer=saver)


def thread(name: str):
    return {"configurable": {"thread_id": name}}


@pytest.fixture
def url(tmp_path: Path):
    return f"sqlite:///{tmp_path}/journal.db"


def opened(url: str):
    """The saver of a journal, which needs no tables of the journal's own."""
    return open_saver(Store(open_engine(url)))


@pytest.fixture
def file_saver(url):
    saver = opened(url)
    yield saver
    saver.close()


@pytest.fixture(params=["sqlite", "postgres"])
def store(request, url):
    named = request.getfixturevalue("postgres") if request.param == "postgres" else url
    with Journal.open(named) as journal:
        yield journal.store


@pytest.fixture
def saver(store):
    opened = open_saver(store)
    yield opened
    opened.close()


def test_both_doors_read_what_the_other_wrote(saver):
    graph = counting(saver)

    graph.invoke({"n": 0}, thread("sync"))
    asyncio.run(graph.ainvoke({"n": 0}, thread("async")))

    assert asyncio.run(graph.aget_state(thread("sync"))).values == {"n": 5}
    assert graph.get_state(thread("async")).values == {"n": 5}


def test_two_loops_and_a_thread_use_one_saver_at_once(saver):
    graph = counting(saver)
    work = [
        lambda name: asyncio.run(graph.ainvoke({"n": 0}, thread(name))),
        lambda name: run_blocking(graph.ainvoke({"n": 0}, thread(name))),
        lambda name: graph.invoke({"n": 0}, thread(name)),
    ]
    callers = [threading.Thread(target=work[k % 3], args=(f"{k}",), daemon=True) for k in range(6)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(20)

    assert [graph.get_state(thread(f"{k}")).values for k in range(6)] == [{"n": 5}] * 6


def _run_here(url: str, name: str) -> None:
    saver = opened(url)
    counting(saver).invoke({"n": 0}, thread(name))
    saver.close()


@pytest.mark.slow
def test_several_processes_open_a_new_file_and_write_to_it_at_once(url):
    others = [
        multiprocessing.get_context("spawn").Process(target=_run_here, args=(url, f"{k}"))
        for k in range(3)
    ]
    for other in others:
        other.start()
    for other in others:
        other.join(60)
    saver = opened(url)

    assert [other.exitcode for other in others] == [0, 0, 0]
    assert [counting(saver).get_state(thread(f"{k}")).values for k in range(3)] == [{"n": 5}] * 3
    saver.close()


def test_a_caller_may_read_checkpoints_while_it_goes_through_them(saver):
    graph = counting(saver)
    graph.invoke({"n": 0}, thread("t"))

    steps = [
        graph.get_state(snapshot.config).values for snapshot in graph.get_state_history(thread("t"))
    ]

    assert len(steps) == 7


async def test_the_async_list_and_delete_work(saver):
    graph = counting(saver)
    await graph.ainvoke({"n": 0}, thread("t"))

    assert len([found async for found in saver.alist(thread("t"), limit=3)]) == 3
    await saver.adelete_thread("t")
    assert (await graph.aget_state(thread("t"))).values == {}


def test_a_checkpoint_can_name_no_code_to_run(file_saver, tmp_path, caplog):
    saver = file_saver
    graph = counting(saver)
    graph.invoke({"n": 0}, thread("t"))
    mark = tmp_path / "ran"
    call = ormsgpack.packb(("os", "system", (f"touch {mark}",)))
    evil = ormsgpack.packb({"v": 1, "id": "x", "channel_values": {"n": ormsgpack.Ext(1, call)}})
    saver.conn.execute("UPDATE checkpoints SET checkpoint = ?", (evil,))
    saver.conn.commit()

    saver.get_tuple(thread("t"))

    assert not mark.exists()
    assert "Blocked deserialization of os.system" in caplog.text


async def test_a_paused_run_of_the_real_wiring_is_read_back_without_a_warning(saver, caplog):
    caplog.set_level(logging.WARNING)

    async def gate(_state, _config):
        answer = interrupt({"type": "plan_approval", "steps": [{"args": {"amount": 1}}]})
        return {"go": "settle", "report": {"answer": answer}}

    async def planner(_state, _config):
        return {"go": "human_gate", "waiting": ["q1"], "plan_version": 1}

    async def rest(_state, _config):
        return {}

    nodes = dict.fromkeys(NEXT, rest) | {"planner": planner, "human_gate": gate}
    graph = wire(Nodes(**nodes), saver=saver)

    await graph.ainvoke({"goal": "g", "inputs": {"order": [1, None, 2.5]}}, thread("t"))
    paused = await graph.aget_state(thread("t"))
    out = graph.invoke(Command(resume={paused.interrupts[0].id: {"decision": "x"}}), thread("t"))

    assert out["report"] == {"answer": {"decision": "x"}}
    assert caplog.records == []


def test_the_file_is_beside_the_journal_and_cheap_to_commit(url, file_saver, tmp_path):
    assert checkpoints_path(url) == tmp_path / "journal.checkpoints.db"
    assert checkpoints_path("sqlite+pysqlite:///rel/j.sqlite?x=1") == Path(
        "rel/j.checkpoints.sqlite"
    )
    assert file_saver.conn.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert file_saver.conn.execute("PRAGMA synchronous").fetchone() == (1,)


def test_a_file_that_cannot_be_opened_is_said(tmp_path):
    (tmp_path / "j.checkpoints.db").write_text("no database, but text that is long enough to see")

    with pytest.raises(JournalError, match="cannot be opened"):
        opened(f"sqlite:///{tmp_path}/j.db")


def test_a_saver_on_another_kind_of_database_is_refused(file_saver, url):
    with pytest.raises(ConfigError, match="journal is on 'postgresql' and the checkpoints"):
        check_saver(file_saver, "postgresql+psycopg://db/x")

    class PostgresSaver(InMemorySaver):
        __module__ = "langgraph.checkpoint.postgres"

    with pytest.raises(ConfigError, match="on 'sqlite' and the checkpoints are on 'postgresql'"):
        check_saver(PostgresSaver(), url)


def test_a_hosts_own_saver_is_let_in(url, file_saver):
    for given in (None, InMemorySaver(), file_saver, SqliteSaver(sqlite3.connect(":memory:"))):
        check_saver(given, url)


def test_a_file_that_refuses_is_an_error_in_our_words(tmp_path):
    saver = opened(f"sqlite:///{tmp_path}/journal.db")
    saver.conn.execute("PRAGMA query_only=1")

    with pytest.raises(JournalError, match="checkpoints refused"):
        counting(saver).invoke({"n": 0}, thread("t"))

    saver.close()


@pytest.mark.parametrize("is_ours", [True, False], ids=["ours", "a host's"])
def test_an_answer_is_given_to_the_node_and_not_kept(tmp_path, is_ours):
    store = Store(open_engine(f"sqlite:///{tmp_path}/journal.db"))
    own = open_saver(store) if is_ours else InMemorySaver()
    refuse = [True]

    def ask(_: Count) -> Count:
        got = interrupt("how many?")
        if refuse:
            raise JournalError("not you")
        return {"n": got}

    graph = StateGraph(Count)
    graph.add_node("ask", ask)
    graph.add_edge(START, "ask")
    asking = graph.compile(checkpointer=fenced(own, lambda _: None, Runs(store, utc_now)))
    asking.invoke({"n": 0}, thread("t"))
    with pytest.raises(JournalError):
        asking.invoke(Command(resume=7), thread("t"))
    refuse.clear()

    assert asking.invoke(None, thread("t"))["__interrupt__"]
    assert asking.invoke(Command(resume=8), thread("t")) == {"n": 8}
    if is_ours:
        own.close()
