from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest

from plangate.journal.artifacts import ref_of
from plangate.journal.events import TriggerFired
from plangate.journal.journal import Journal
from plangate.journal.owner import owner_name
from plangate.journal.runs import Run
from plangate.plan.errors import LeaseLost, PlangateError, RunBusy
from plangate.plan.facts import Rights
from tests.conformance.test_decisions import vote
from tests.conformance.test_ledger import INTENT

FIRED = TriggerFired(kind="stall", step="S1")


@pytest.fixture
def workers(journal: Journal, clock: Any) -> Iterator[list[Journal]]:
    """Six journals over one database, as six processes have them."""
    with ExitStack() as opened:
        yield [opened.enter_context(Journal.open(journal.url, clock=clock)) for _ in range(6)]


def at_once(*work: Callable[[], Any]) -> list[Any]:
    """Do all at a barrier; return what each gave, or its error."""
    start, said = threading.Barrier(len(work)), [None] * len(work)

    def one(number: int, do: Callable[[], Any]) -> None:
        start.wait()
        try:
            said[number] = do()
        except PlangateError as exc:
            said[number] = exc

    threads = [threading.Thread(target=one, args=each) for each in enumerate(work)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return said


def names(said: list[Any]) -> list[str]:
    return sorted(type(each).__name__ for each in said)


def test_of_workers_that_take_one_run_at_once_one_gets_it(workers, new_run):
    new_run()

    said = at_once(*[lambda w=w: w.runs.acquire("r", owner_name(), 30) for w in workers])

    assert names(said) == ["Lease", *["RunBusy"] * 5]


def test_of_workers_that_start_a_run_on_one_thread_at_once_one_does(workers):
    run = Run(
        goal_id="g", goal="x", thread_id="t", agent="a", principal=Rights(principal="p"), run_id=""
    )

    said = at_once(
        *[
            lambda w=w, n=n: w.runs.create(replace(run, run_id=f"{n}"))
            for n, w in enumerate(workers)
        ]
    )

    assert names(said) == [*["Conflict"] * 5, "Run"]
    assert len(workers[0].runs.list()) == 1


def test_of_workers_with_one_identity_one_may_act(workers, new_run):
    leases = []
    for number, worker in enumerate(workers):
        new_run(f"{number}")
        leases.append(worker.runs.acquire(f"{number}", owner_name(), 30))

    said = at_once(
        *[
            lambda w=w, lease=lease: w.ledger.intend(lease, replace(INTENT, run_id=lease.run_id))
            for w, lease in zip(workers, leases, strict=True)
        ]
    )

    assert sum(each.fresh for each in said) == 1
    assert len({each.row.run_id for each in said}) == 1


def test_a_takeover_lets_nothing_of_the_former_owner_in_after_it(workers, lease, clock):
    clock.jump(30)

    def take_over() -> int:
        mine = workers[1].runs.acquire("r", owner_name(), 30)
        return workers[1].log.append(mine, workers[1].runs.get("r").last_seq, [FIRED])

    said = at_once(lambda: workers[0].log.append(lease, 0, [FIRED]), take_over)

    epochs = [entry.epoch for entry in workers[0].log.read("r")]
    assert epochs in ([1, 2], [2])
    assert (epochs == [2]) == isinstance(said[0], LeaseLost)


def test_workers_that_move_each_others_effects_do_not_wait_for_each_other(workers, new_run):
    leases = []
    for run_id, worker in zip("rs", workers, strict=False):
        new_run(run_id)
        leases.append(worker.runs.acquire(run_id, owner_name(), 30))
        worker.ledger.intend(leases[-1], replace(INTENT, run_id=run_id, effect_key=run_id))

    for _ in range(10):
        said = at_once(
            lambda: workers[0].ledger.settle(leases[0], "s", "done"),
            lambda: workers[1].ledger.settle(leases[1], "r", "done"),
        )
        assert [type(each) for each in said] == [RunBusy, RunBusy]


def test_workers_that_store_the_same_values_in_another_order_do_not_wait_for_each_other(
    workers, new_run
):
    for run_id in "rs":
        new_run(run_id)
    leases = [workers[n].runs.acquire(run_id, owner_name(), 30) for n, run_id in enumerate("rs")]

    for turn in range(10):
        bodies = dict(ref_of({"turn": turn, "n": n}) for n in range(20))
        back = dict(reversed(bodies.items()))
        said = at_once(
            lambda bodies=bodies, turn=turn: workers[0].log.append(
                leases[0], turn, [FIRED], bodies
            ),
            lambda back=back, turn=turn: workers[1].log.append(leases[1], turn, [FIRED], back),
        )
        assert said == [turn + 1, turn + 1]


def test_a_vote_and_a_rejection_at_once_give_one_answer(workers):
    workers[0].decisions.vote(vote("ann"), needs=2)

    voted, rejected = at_once(
        lambda: workers[1].decisions.vote(vote("bob"), needs=2),
        lambda: workers[2].decisions.record(vote("eve").model_copy(update={"decision": "reject"})),
    )

    assert voted.recorded.won is not rejected.won
    assert voted.recorded.decision == rejected.decision == workers[0].decisions.get("q1")
