from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from plangate.journal.journal import Journal
from plangate.journal.ledger import Intent
from plangate.journal.owner import owner_name
from plangate.plan.errors import Conflict, JournalError, LeaseLost, RunBusy
from tests.owners import beside

INTENT = Intent(
    effect_key="k",
    business_key="refund:ORD-1",
    run_id="r",
    goal_id="g",
    step="S6",
    plan_version=1,
    attempt_id="S6-A1",
    tool="create_refund",
    tool_version="1",
    args_sha256="a",
    approval="q1",
)


def test_an_intent_is_on_the_disk_before_it_returns(journal, lease):
    claim = journal.ledger.intend(lease, INTENT)

    with Journal.open(journal.url) as other:
        assert other.ledger.get("k") == claim.row

    assert claim.fresh
    assert (claim.row.state, claim.row.epoch, claim.row.settled_at) == ("intended", 1, None)


def test_a_former_owner_may_not_intend(journal, lease, clock):
    clock.jump(30)
    journal.runs.acquire("r", owner_name(), 30)

    with pytest.raises(LeaseLost):
        journal.ledger.intend(lease, INTENT)

    assert journal.ledger.get("k") is None


@pytest.mark.parametrize("move", ["accept", "settle"])
def test_a_former_owner_may_not_settle(journal, lease, clock, move):
    journal.ledger.intend(lease, INTENT)
    clock.jump(30)
    journal.runs.acquire("r", owner_name(), 30)

    with pytest.raises(LeaseLost):
        getattr(journal.ledger, move)(lease, "k", "op" if move == "accept" else "done")

    assert journal.ledger.get("k").state == "intended"


def test_a_known_effect_is_not_fresh_and_shows_what_is_recorded(journal, lease):
    journal.ledger.intend(lease, INTENT)
    journal.ledger.settle(lease, "k", "done", output="sha256:1", business_state="PAID")

    claim = journal.ledger.intend(lease, replace(INTENT, step="S9", attempt_id="S9-A1"))

    assert not claim.fresh
    assert (claim.row.step, claim.row.state, claim.row.output) == ("S6", "done", "sha256:1")


def test_of_many_intents_at_once_one_is_fresh(journal, lease):
    said = []
    threads = [
        threading.Thread(target=lambda: said.append(journal.ledger.intend(lease, INTENT).fresh))
        for _ in range(10)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(said) == [False] * 9 + [True]


def test_one_identity_with_other_arguments_is_a_conflict(journal, lease):
    journal.ledger.intend(lease, INTENT)

    with pytest.raises(Conflict, match="'refund:ORD-1' is intended with other arguments"):
        journal.ledger.intend(lease, replace(INTENT, args_sha256="b"))

    assert journal.ledger.get("k").args_sha256 == "a"


def test_a_failed_effect_can_be_intended_again_from_a_clean_row(journal, lease, clock):
    journal.ledger.intend(lease, INTENT)
    journal.ledger.accept(lease, "k", "op-1")
    journal.ledger.settle(lease, "k", "failed", error_code="limit", note="n", by="ann")
    clock.jump(1)

    again = replace(INTENT, step="S7", args_sha256="b", approval=None)
    claim = journal.ledger.intend(lease, again)

    assert claim.fresh
    assert (claim.row.state, claim.row.step, claim.row.approval) == ("intended", "S7", None)
    assert (claim.row.operation_id, claim.row.error_code, claim.row.note) == (None, "", "")
    assert (claim.row.created_at, claim.row.settled_at) == (clock.now, None)


ALLOWED = {
    ("intended", "accepted"),
    ("unknown", "accepted"),
    *((old, new) for old in ("intended", "accepted", "unknown") for new in ("done", "failed")),
    *((old, "unknown") for old in ("intended", "accepted", "unknown")),
    ("done", "compensated"),
}
STATES = ("intended", "accepted", "done", "failed", "unknown", "compensated")
WAY_TO = {"intended": (), "compensated": ("done", "compensated")}


def move(journal, lease, state):
    if state == "accepted":
        return journal.ledger.accept(lease, "k", "op-1")
    return journal.ledger.settle(lease, "k", state)


@pytest.mark.parametrize("new", STATES)
@pytest.mark.parametrize("old", STATES)
def test_an_effect_moves_only_where_it_may(journal, lease, old, new):
    journal.ledger.intend(lease, INTENT)
    for state in WAY_TO.get(old, (old,)):
        move(journal, lease, state)

    if (old, new) in ALLOWED:
        assert move(journal, lease, new).state == new
    else:
        with pytest.raises(Conflict, match=f"is {old} and cannot become {new}"):
            move(journal, lease, new)
        assert journal.ledger.get("k").state == old


def test_what_is_not_said_when_settling_stays(journal, lease, clock):
    journal.ledger.intend(lease, INTENT)
    journal.ledger.accept(lease, "k", "op-1")
    journal.ledger.settle(lease, "k", "unknown", error_code="timeout")
    done = journal.ledger.settle(lease, "k", "done", output="sha256:1", business_state="PAID")
    undone = journal.ledger.settle(lease, "k", "compensated", note="cancelled", by="ann")

    assert (done.operation_id, done.error_code, done.settled_at) == ("op-1", "timeout", clock.now)
    assert (undone.output, undone.by, undone.business_state) == ("sha256:1", "ann", "PAID")


def test_an_effect_that_is_not_there_cannot_be_settled(journal, lease):
    with pytest.raises(JournalError, match="'x' is not in the ledger"):
        journal.ledger.settle(lease, "x", "done")


def test_effects_are_listed_by_run_and_state(journal, lease, new_run):
    new_run("s")
    other = journal.runs.acquire("s", owner_name(), 30)
    journal.ledger.intend(lease, INTENT)
    journal.ledger.intend(other, replace(INTENT, effect_key="l", run_id="s"))
    journal.ledger.settle(other, "l", "done")

    assert [row.effect_key for row in journal.ledger.list()] == ["k", "l"]
    assert [row.effect_key for row in journal.ledger.list(run_id="r")] == ["k"]
    assert [row.effect_key for row in journal.ledger.list(state="done")] == ["l"]
    assert journal.ledger.list(run_id="r", state="done") == ()


def test_another_run_meets_a_global_effect_and_may_settle_it_once_its_run_rests(
    journal, lease, new_run
):
    new_run("s")
    other = journal.runs.acquire("s", owner_name(), 30)
    journal.ledger.intend(lease, INTENT)

    assert not journal.ledger.intend(other, replace(INTENT, run_id="s")).fresh
    with pytest.raises(RunBusy, match="run 'r' is worked on"):
        journal.ledger.settle(other, "k", "done")
    journal.runs.release(lease)

    assert journal.ledger.settle(other, "k", "done").state == "done"
    assert journal.ledger.get("k").run_id == "r"


def test_what_a_silent_process_may_still_do_can_be_known_as_done_and_not_as_failed(
    journal, new_run, clock
):
    new_run()
    with beside() as other:
        first = journal.runs.acquire("r", other.name, 30)
        for key in "kl":
            journal.ledger.intend(first, replace(INTENT, effect_key=key))
        clock.jump(30)
        mine = journal.runs.acquire("r", owner_name(), 30)

        assert journal.ledger.take(mine, "k").owner == other.name
        assert journal.ledger.settle(mine, "k", "unknown").owner == other.name
        with pytest.raises(Conflict, match="may still make the call"):
            journal.ledger.settle(mine, "k", "failed")
        assert journal.ledger.settle(mine, "l", "done").owner == ""

    assert journal.ledger.take(mine, "k").owner == mine.owner
    assert journal.ledger.settle(mine, "k", "failed").owner == ""


def test_only_who_has_an_effect_in_hand_lets_go_of_it_and_needs_no_lease_for_that(
    journal, lease, clock
):
    journal.ledger.intend(lease, INTENT)
    clock.jump(30)
    mine = journal.runs.acquire("r", owner_name(), 30)

    journal.ledger.let_go("k", mine.owner)
    kept = journal.ledger.get("k").owner
    journal.ledger.let_go("k", lease.owner)

    assert (kept, journal.ledger.get("k").owner) == (lease.owner, "")
