from __future__ import annotations

import asyncio

import pytest

from plangate.engine.dataflow import run_plan
from plangate.engine.steps import run_step
from plangate.journal.events import PlanProposed
from plangate.journal.owner import owner_name
from plangate.journal.points import watch
from plangate.journal.session import Session
from plangate.plan.errors import LeaseLost
from plangate.plan.value.plan import Plan
from tests.engine.test_effect import Bank, paying, plan


def save_next_version(session: Session, old: Plan) -> None:
    new = old.model_copy(update={"version": 2, "goal": "pay less", "parent_hash": old.content_hash})
    session.emit(
        PlanProposed(
            version=2,
            plan=session.put(new.model_dump(mode="json")),
            content_hash=new.content_hash,
            author=new.author,
        )
    )


def test_a_step_of_an_old_plan_version_that_is_delivered_again_does_nothing(lab):
    bank = Bank()
    session = lab.session()
    bench = lab.bench(session, plan(), [paying(bank, "asking")])
    save_next_version(session, plan())

    ended = asyncio.run(run_step(bench, plan().steps[0]))

    session.close()
    assert (ended.status, ended.code) == ("failed", "plan_overtaken")
    assert (bank.payments, lab.journal.ledger.list()) == ([], ())
    assert "S" not in session.view.steps, "the new version's step has not been touched"


def test_a_version_that_is_saved_after_a_step_was_released_stops_it_before_the_call(lab):
    bank = Bank()
    session = lab.session()
    bench = lab.bench(session, plan(), [paying(bank, "asking")])

    def save(point: str) -> None:
        if point == "attempt.started":
            save_next_version(session, plan())

    watch(save)
    try:
        asyncio.run(run_plan(bench))
    finally:
        watch(None)

    session.close()
    assert (bank.payments, lab.journal.ledger.list()) == ([], ())


def test_the_old_worker_that_goes_on_after_a_new_plan_version_is_saved_is_fenced_off(lab):
    bank = Bank()
    old = lab.session()
    bench = lab.bench(old, plan(), [paying(bank, "asking")])
    old.flush()
    lab.journal.runs.release(old.lease)  # as after its time: another owner may take over
    with Session.open(lab.journal, old.run.run_id, owner_name(), 15.0) as new:
        save_next_version(new, plan())
        new.flush()

        with pytest.raises(LeaseLost):
            asyncio.run(run_plan(bench))

    assert (bank.payments, lab.journal.ledger.list()) == ([], ())
