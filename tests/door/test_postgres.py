from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from langgraph.types import Command

from plangate.plan.errors import RunBusy
from tests.door.conftest import SAYS, Shop
from tests.postgres import admin


@pytest.fixture
def shop(tmp_path: Path, postgres: str) -> Iterator[Shop]:
    made = Shop(tmp_path, journal_url=postgres)
    yield made
    made.close()


def terminate(url: str) -> int:
    """Cut all connections to a database, as an operator or a failover does."""
    with admin(url) as server:
        cut = server.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name = 'plangate'"
        )
        return int(cut.fetchone()[0])


def ended(shop: Shop, run_id: str) -> tuple[str, str, int, list[int]]:
    view = shop.runtime.view(run_id)
    return view.ended.ending, view.ended.verdict, len(shop.world.payments()), list(view.plans)


def resumed(thread: str, paused: Any) -> Command[Any]:
    kind = paused.interrupts[0].value["type"]
    said = SAYS["approval"] if "approval" in kind else SAYS["step"]
    return Command(resume={paused.interrupts[0].id: {**said, "by": "ann"}})


@pytest.mark.parametrize("door", ["sync", "async"])
def test_a_run_is_repaired_and_paid_once_through_both_doors(shop, door):
    scenario = shop.agent.scenarios["no-logistics-record"]
    shop.world.prepare(scenario.world)
    graph, config = shop.runtime.graph, {"configurable": {"thread_id": "t"}}
    given: Any = {"goal": scenario.goal, "inputs": dict(scenario.inputs)}

    async def ainvoke() -> Any:
        out = await graph.ainvoke(given, config)
        while "__interrupt__" in out:
            out = await graph.ainvoke(resumed("t", await graph.aget_state(config)), config)
        return out

    if door == "async":
        out = asyncio.run(ainvoke())
    else:
        out = graph.invoke(given, config)
        while "__interrupt__" in out:
            out = graph.invoke(resumed("t", graph.get_state(config)), config)

    assert ended(shop, out["run_id"]) == ("completed", "pass", 1, [1, 2])
    with psycopg.connect(shop.journal_url) as tx:  # one database holds it all
        assert tx.execute("SELECT count(*) FROM checkpoints").fetchone()[0] > 0


def test_of_two_workers_that_resume_one_run_at_once_one_goes_on(shop):
    run_id = shop.start("straightforward")
    shop.answer(run_id)
    other, start, said = shop.another(), threading.Barrier(2), []

    def resume(runtime: Any) -> None:
        start.wait()
        try:
            said.append(list(runtime.advance(run_id)) and "went on")
        except RunBusy:
            said.append("busy")

    threads = [threading.Thread(target=resume, args=(each,)) for each in (shop.runtime, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    other.close()

    epochs = [entry.epoch for entry in shop.runtime.journal.log.read(run_id)]
    assert "went on" in said
    assert epochs == sorted(epochs)
    assert ended(shop, shop_finish(shop, run_id)) == ("completed", "pass", 1, [1])


def shop_finish(shop: Shop, run_id: str) -> str:
    shop.finish(run_id)
    return run_id


def cutting(shop: Shop, name: str) -> list[int]:
    """Have the connections cut while a tool works."""
    cut: list[int] = []

    def cut_first(body: Any) -> Any:
        def around(**values: Any) -> Any:
            cut.append(terminate(shop.journal_url))
            return body(**values)

        return around

    tools = tuple(
        replace(each, body=cut_first(each.body)) if each.spec.name == name else each
        for each in shop.agent.tools
    )
    shop.agent = replace(shop.agent, tools=tools)
    shop.runtime.close()
    shop.runtime = shop.another()
    return cut


def test_connections_cut_in_a_step_and_while_a_person_thinks_cost_nothing(shop, events):
    cut = cutting(shop, "create_refund")
    run_id = shop.start("straightforward")
    waiting = terminate(shop.journal_url)

    shop.finish(run_id)

    assert waiting > 0
    assert cut
    assert cut[0] > 0
    assert ended(shop, run_id) == ("completed", "pass", 1, [1])
    assert len(events(run_id, "attempt_started")) == len(
        {each.attempt_id for each in events(run_id, "attempt_started")}
    )


@pytest.mark.slow
def test_four_runs_share_a_pool_of_one_connection(shop):
    shop.runtime.close()
    shop.journal_url += "?pool_size=1"
    shop.runtime = shop.another()
    runs: list[str] = []
    threads = [
        threading.Thread(target=lambda: runs.append(shop.start("straightforward")))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert [shop.runtime.journal.runs.get(each).status for each in runs] == ["waiting"] * 4
    assert ended(shop, shop_finish(shop, runs[0])) == ("completed", "pass", 1, [1])
