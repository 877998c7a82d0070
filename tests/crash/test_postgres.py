"""A server of its own, killed in the middle of a run."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from plangate.journal import store
from plangate.journal.journal import Journal
from plangate.plan.errors import JournalError
from tests.door.conftest import Shop
from tests.postgres import SCRIPT, need_server, script

pytestmark = [pytest.mark.crash, pytest.mark.slow]


class Server:
    """A Postgres that can be killed without harm to other tests."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = script("start", "--quick", PLANGATE_POSTGRES_DIR=str(folder))

    def kill(self) -> None:
        pid = int((self.folder / "postmaster.pid").read_text().splitlines()[0])
        os.kill(pid, signal.SIGKILL)

    def start(self) -> subprocess.Popen[bytes]:
        """Begin to start it again; do not wait."""
        return subprocess.Popen(
            [SCRIPT, "start", "--quick"],
            stdout=subprocess.DEVNULL,
            env={**os.environ, "PLANGATE_POSTGRES_DIR": str(self.folder)},
        )


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    need_server()
    folder = Path(tempfile.mkdtemp(prefix="plangate-kill-"))
    yield Server(folder)
    script("stop", PLANGATE_POSTGRES_DIR=str(folder))
    shutil.rmtree(folder)
    Path(f"{folder}.lock").unlink()


def test_postgres_killed_and_restarted_in_mid_run_the_run_completes(tmp_path, server):
    shop = Shop(tmp_path, journal_url=server.url)
    restarts: list[subprocess.Popen[bytes]] = []

    def kill_around(body: Any) -> Any:
        def around(**values: Any) -> Any:
            server.kill()
            found = body(**values)  # the provider pays while our database is down
            restarts.append(server.start())
            return found

        return around

    tools = tuple(
        replace(each, body=kill_around(each.body)) if each.spec.name == "create_refund" else each
        for each in shop.agent.tools
    )
    shop.agent = replace(shop.agent, tools=tools)
    shop.runtime.close()
    shop.runtime = shop.another()
    run_id = shop.start("straightforward")

    view = shop.finish(run_id)

    entries = shop.runtime.journal.log.read(run_id)
    acted = [e.event for e in entries if e.event.type == "attempt_started" and e.event.step == "S6"]
    effects = [row.state for row in shop.runtime.journal.ledger.list(run_id)]
    payments = shop.world.payments()
    shop.close()
    assert [each.wait() for each in restarts] == [0]
    assert (view.ended.ending, view.ended.verdict) == ("completed", "pass")
    assert (len(payments), len(acted), effects) == (1, 1, ["done"])
    assert {entry.epoch for entry in entries} <= {1, 2, 3}


def look_until_refused(journal: Journal) -> None:
    """A connection may outlive the server that accepted it, for a query."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        journal.runs.list()


def test_a_server_that_stays_away_is_one_clear_error(server, monkeypatch):
    monkeypatch.setattr(store, "PATIENCE_S", 0.5)
    server.start().wait()
    with Journal.open(server.url) as journal:
        server.kill()
        began = time.monotonic()

        with pytest.raises(JournalError, match="refused") as caught:
            look_until_refused(journal)

        assert time.monotonic() - began >= 0.5
        assert caught.value.hint
