from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from plangate.journal.owner import is_dead, owner_name
from plangate.plan.errors import RunBusy

NAMED = "from plangate.journal.owner import owner_name; print(owner_name(), flush=True); input()"


def start() -> tuple[subprocess.Popen[str], str]:
    child = subprocess.Popen(
        [sys.executable, "-c", NAMED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    return child, child.stdout.readline().strip()


def end(child: subprocess.Popen[str]) -> None:
    child.kill()
    child.wait()
    child.stdin.close()
    child.stdout.close()


def test_no_two_names_agree_and_both_are_alive():
    one, two = owner_name(), owner_name()

    assert one != two
    assert one.split(":")[:3] == two.split(":")[:3]
    assert not is_dead(one)


@pytest.mark.parametrize("name", ["", "a:b", "a:1:2:c", "x:y:z:w", "a:1:2:c:d"])
def test_a_name_from_elsewhere_is_never_called_dead(name):
    assert not is_dead(name)


def test_a_reused_process_id_is_not_the_old_owner():
    host, pid, _, token = owner_name().split(":")

    assert is_dead(f"{host}:{pid}:1:{token}")
    assert not is_dead(f"{host}:{pid}:-:{token}")  # its start is not known: it may be the same


def test_an_owner_is_alive_until_its_process_ends():
    child, name = start()

    alive = not is_dead(name)
    end(child)

    assert alive
    assert is_dead(name)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc here")
def test_a_process_that_was_killed_but_not_waited_for_is_dead():
    child, name = start()

    child.kill()
    deadline = time.monotonic() + 5
    while not is_dead(name) and time.monotonic() < deadline:
        time.sleep(0.01)

    assert is_dead(name)
    end(child)


def test_a_dead_owner_of_this_machine_is_replaced_at_once_and_a_live_one_is_not(journal, new_run):
    new_run()
    child, name = start()
    journal.runs.acquire("r", name, 3600)

    with pytest.raises(RunBusy, match="worked on by"):
        journal.runs.acquire("r", owner_name(), 30)
    end(child)

    assert journal.runs.acquire("r", owner_name(), 30).epoch == 2


RACER = """
import sys
from plangate.journal.journal import Journal
from plangate.journal.owner import owner_name
from plangate.plan.errors import RunBusy
with Journal.open(sys.argv[1]) as journal:
    print("ready", flush=True)
    input()
    try:
        print(journal.runs.acquire("r", owner_name(), 30).epoch, flush=True)
    except RunBusy as exc:
        print("busy", exc.code, flush=True)
    input()
"""


@pytest.mark.slow
def test_of_processes_that_take_one_run_at_once_one_gets_it(journal, new_run):
    new_run()
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, journal.url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for racer in racers:
        assert racer.stdout.readline() == "ready\n"

    for racer in racers:
        racer.stdin.write("\n")
        racer.stdin.flush()
    said = sorted(racer.stdout.readline().strip() for racer in racers)
    for racer in racers:
        end(racer)

    assert said == ["1", "busy run_busy", "busy run_busy"]
