from __future__ import annotations

from contextlib import closing
from datetime import timedelta

import pytest

from plangate.graph.payload import Answer
from plangate.journal.owner import owner_name
from plangate.journal.session import Session
from plangate.nodes.decide import Refused
from plangate.runtime import Options, Runtime
from tests.door.conftest import shop

__all__ = ["shop"]

# LanternOps/breeze#3090: an approval's time is over, then the clock is set back.


def at(shop, hours):
    """Open the agent on a machine whose clock is so many hours ahead."""
    time = shop.runtime.kit.now() + timedelta(hours=hours)
    options = Options(world_url=shop.world_url)
    return closing(Runtime(shop.agent, shop.journal_url, options, clock=lambda: time))


def noted(shop, run_id, hours):
    """Have a worker of that time take the run and let go of it: it is on the record."""
    with (
        at(shop, hours) as worker,
        Session.open(worker.journal, run_id, owner_name(), 15),
    ):
        pass


def approved(shop):
    run_id = shop.start("straightforward")
    shop.answer(run_id)
    for _ in shop.runtime.advance(run_id):
        pass
    shop.answer(run_id)
    return run_id


@pytest.mark.parametrize(("hours", "asks"), [(0.5, False), (2, True)])
def test_what_had_expired_is_not_valid_again_once_the_clock_is_set_back(shop, hours, asks):
    run_id = approved(shop)
    noted(shop, run_id, hours)

    with at(shop, 0.1) as worker:
        for _ in worker.advance(run_id):
            pass

    waits = [each.kind for each in shop.runtime.view(run_id).pending_questions]
    assert waits == (["approval"] if asks else [])
    assert len(shop.world.payments()) == (0 if asks else 1)


def test_an_answer_that_was_too_late_is_still_too_late_once_the_clock_is_set_back(shop):
    run_id = shop.start("straightforward")
    noted(shop, run_id, 2)

    with at(shop, 0.1) as worker:
        got = worker.answer(run_id, Answer(decision="approve", by="ann"))

    assert isinstance(got, Refused)
    assert "it came after" in got.why
    assert shop.world.payments() == []
