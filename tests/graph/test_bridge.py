from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import textwrap
import threading
import time
from contextvars import ContextVar

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import get_runtime
from langgraph.types import Command, interrupt

from plangate.graph.bridge import Job, Portal, after, bridged, iterate, portal, run_blocking
from plangate.graph.state import State

CONFIG = {"configurable": {"thread_id": "t"}}
WHO: ContextVar[str] = ContextVar("WHO", default="nobody")


def graph_of(body, saver=None):
    graph = StateGraph(State, context_schema=dict)
    graph.add_node("only", bridged("only", body))
    graph.add_edge(START, "only")
    graph.add_edge("only", END)
    return graph.compile(checkpointer=saver)


async def asks(_state, _config):
    get_stream_writer()({"by": get_runtime().context["by"]})
    return {"phase": interrupt({"q": 1}) + WHO.get()}


def test_interrupt_runtime_writer_and_context_variables_work_through_the_portal():
    graph = graph_of(asks, InMemorySaver())
    WHO.set("somebody")

    parts = list(
        graph.stream({"goal": "g"}, CONFIG, context={"by": "ann"}, stream_mode=["custom", "values"])
    )
    ended = graph.invoke(Command(resume="it was "), CONFIG, context={"by": "ann"})

    assert ("custom", {"by": "ann"}) in parts
    assert parts[-1][1]["__interrupt__"][0].value == {"q": 1}
    assert ended["phase"] == "it was somebody"


async def test_the_same_body_runs_on_the_callers_loop():
    loops = []

    async def body(_state, _config):
        loops.append(asyncio.get_running_loop())
        return {"phase": "x"}

    graph = graph_of(body)
    assert (await graph.ainvoke({"goal": "g"}))["phase"] == "x"
    assert [part async for part in graph.astream({"goal": "g"}, stream_mode="updates")]
    graph.invoke({"goal": "g"})  # blocks this loop, and must not need it

    assert loops[:2] == [asyncio.get_running_loop()] * 2
    assert loops[2] is portal().loop


def test_children_of_a_node_are_traced_below_it():
    seen = {}

    class Tracer(BaseCallbackHandler):
        def on_chain_start(self, _serialized, _inputs, *, run_id, parent_run_id=None, **more):
            seen[more.get("name")] = (run_id, parent_run_id)

    async def body(_state, config):
        await RunnableLambda(lambda x: x, name="child").ainvoke(1)
        await RunnableLambda(lambda x: x, name="child with config").ainvoke(1, config)
        return {}

    graph_of(body).invoke({"goal": "g"}, {"callbacks": [Tracer()]})

    assert seen["child"][1] == seen["child with config"][1] == seen["only"][0]


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt(), SystemExit(3)])
def test_whatever_a_coroutine_raises_reaches_the_caller_and_the_portal_lives_on(error):
    async def fails():
        raise error

    with pytest.raises(type(error)):
        run_blocking(fails())

    assert run_blocking(asyncio.sleep(0, "alive")) == "alive"


def test_one_thread_serves_all_callers():
    async def where():
        return threading.current_thread()

    found = []
    callers = [threading.Thread(target=lambda: found.append(run_blocking(where()))) for _ in "abc"]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()

    assert set(found) == {portal().thread}


def test_a_coroutine_on_the_portal_may_block_on_another_one():
    async def outer():
        return run_blocking(asyncio.sleep(0, "inner"))

    assert run_blocking(outer()) == "inner"


def test_leaving_an_iteration_early_ends_its_source_first():
    ended = []

    async def numbers():
        try:
            for number in range(10):
                yield number
                await asyncio.sleep(0)
            await asyncio.sleep(60)
        finally:
            ended.append(True)

    for number in iterate(numbers()):
        if number == 3:
            break

    assert ended == [True]


def test_an_iteration_ends_with_the_error_of_its_source():
    async def numbers():
        yield 1
        raise ValueError("no more")

    got = iterate(numbers())

    assert next(got) == 1
    with pytest.raises(ValueError, match="no more"):
        next(got)


def test_after_calls_once():
    called = threading.Event()

    after(0.01, called.set)

    assert called.wait(2)


SLOW = """
import asyncio, sys
from langgraph.graph import END, START, StateGraph
from plangate.graph.bridge import bridged, iterate
from plangate.graph.state import State

async def slow(state, config):
    print("started", flush=True)
    try:
        await asyncio.sleep(60)
    finally:
        await asyncio.sleep(0.2)
        print("cleaned", flush=True)

graph = StateGraph(State)
graph.add_node("slow", bridged("slow", slow))
graph.add_edge(START, "slow")
graph.add_edge("slow", END)
graph = graph.compile()
given = {"goal": "g"}
"""
INVOKE = "graph.invoke(given)"
ITERATE = "list(iterate(graph.astream(given, stream_mode='custom')))"


@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.parametrize(("door", "presses"), [(INVOKE, 1), (INVOKE, 2), (ITERATE, 1)])
def test_ctrl_c_lets_a_node_clean_up_before_the_process_ends(door, presses):
    child = subprocess.Popen(
        [sys.executable, "-c", SLOW + door],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        # A shell's background job ignores Ctrl-C, and so would its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "started\n"

    for _ in range(presses):
        child.send_signal(signal.SIGINT)
        time.sleep(0.05)
    rest, _ = child.communicate(timeout=20)

    assert rest == "cleaned\n"
    assert child.returncode in (-signal.SIGINT, 1)


def test_what_was_broken_off_before_it_began_does_not_begin():
    ran = threading.Event()

    async def act() -> None:
        ran.set()

    with pytest.raises(KeyboardInterrupt), Job(portal(), act()):
        raise KeyboardInterrupt

    run_blocking(asyncio.sleep(0))
    assert not ran.is_set()


def test_the_end_of_the_process_does_not_break_off_a_clean_up_that_goes_on():
    own, begun, cleaned = Portal(), threading.Event(), threading.Event()

    async def slow() -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.1)
            cleaned.set()

    job = Job(own, slow())
    job.begin()
    begun.wait()
    own.loop.call_soon_threadsafe(job._cancel)  # as by a Ctrl-C whose wait the next one broke off
    own.close()

    assert cleaned.is_set()


@pytest.mark.crash
@pytest.mark.slow
def test_a_forked_child_has_a_portal_of_its_own():
    code = """
    import asyncio, os, sys
    from plangate.graph.bridge import portal, run_blocking
    run_blocking(asyncio.sleep(0))
    first = portal()
    if os.fork() == 0:
        run_blocking(asyncio.sleep(0))
        sys.exit(0 if portal() is not first else 1)
    sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
    """

    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], timeout=20, check=False)

    assert done.returncode == 0
