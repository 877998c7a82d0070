from __future__ import annotations

from datetime import timedelta

import pytest
import sqlalchemy as sa

from plangate.journal.artifacts import ref_of
from plangate.journal.decisions import Decision
from plangate.journal.events import StepEnded
from plangate.journal.journal import Journal
from plangate.journal.ledger import Intent
from plangate.journal.owner import owner_name
from plangate.plan.errors import Conflict, EffectUnknown, LeaseLost

SECRET = "marker-7f3a"
SHARED = {"said": "the same in both runs"}


@pytest.fixture
def filled(journal, new_run):
    """Two runs that say the same, and of which one has a secret."""
    for run_id in ("gone", "left"):
        new_run(run_id, goal=SECRET if run_id == "gone" else "g")
        lease = journal.runs.acquire(run_id, owner_name(), 30)
        own = ref_of({"mine": SECRET if run_id == "gone" else "x"})
        shared = ref_of(SHARED)
        events = [
            StepEnded(step="S1", plan_version=1, status="done", output=ref, why=why)
            for ref, why in ((own.ref, run_id), (shared.ref, SECRET if run_id == "gone" else ""))
        ]
        bodies = {own.ref: own.body, shared.ref: shared.body}
        journal.log.append(lease, 0, events, bodies)
        said = {"question_id": f"{run_id}-q1", "run_id": run_id, "decision": "approve"}
        comment = SECRET if run_id == "gone" else ""
        said = Decision(**said, by="ann", at=journal.clock(), comment=comment)
        journal.decisions.vote(said, needs=2)
        journal.decisions.record(said)
        journal.ledger.intend(lease, intent(run_id))
        journal.ledger.settle(lease, f"key-{run_id}", "done", output=own.ref)
        journal.runs.release(lease)
    return journal


def intent(run_id: str, **other: str) -> Intent:
    said = {
        "effect_key": f"key-{run_id}",
        "business_key": f"pay:{SECRET if run_id == 'gone' else run_id}",
        "run_id": run_id,
        "goal_id": "g",
        "step": "S1",
        "attempt_id": "S1-A1",
        "tool": "pay",
        "tool_version": "1",
        "args_sha256": "0",
    }
    return Intent(**{**said, **other}, plan_version=1)


def remove(journal: Journal, run_id: str = "gone"):
    return journal.retention.remove(journal.runs.acquire(run_id, owner_name(), 30))


def dump(journal: Journal) -> dict[str, str]:
    with journal.store.read() as tx:
        return {
            table: str(tx.execute(sa.select(sa.text("*")).select_from(sa.table(table))).all())
            for table in sa.inspect(tx).get_table_names()
        }


def test_a_removed_run_leaves_nothing_that_was_said_in_any_table(filled):
    removed = remove(filled)

    assert [table for table, rows in dump(filled).items() if SECRET in rows] == []
    assert (removed.events, removed.artifacts, removed.kept_effects) == (2, 1, 1)


def test_a_removed_run_takes_nothing_of_another_run_with_it(filled):
    remove(filled)

    refs = [entry.event.output for entry in filled.log.read("left")]
    assert [filled.artifacts.get(ref) for ref in refs] == [{"mine": "x"}, SHARED]
    assert filled.ledger.get("key-left").business_key == "pay:left"
    assert [each.by for each in filled.decisions.of_run("left")] == ["ann"]
    assert len(filled.decisions.votes("left-q1")) == 1


def test_what_the_last_run_that_uses_it_leaves_goes(filled):
    remove(filled)
    remove(filled, "left")

    rows = dump(filled)
    assert {name: rows[name] for name in TABLES} == dict.fromkeys(TABLES, "[]")


TABLES = ("runs", "events", "decisions", "votes", "artifacts", "artifact_uses")


def test_an_effect_that_was_done_is_refused_after_its_run_is_gone(filled, new_run):
    remove(filled)
    new_run("next")
    lease = filled.runs.acquire("next", owner_name(), 30)

    claim = filled.ledger.intend(lease, intent("next", effect_key="key-gone"))

    assert (claim.fresh, claim.row.state, claim.row.output) == (False, "done", None)
    with pytest.raises(Conflict, match="is done with other arguments"):
        filled.ledger.intend(lease, intent("next", effect_key="key-gone", args_sha256="1"))


def test_an_effect_that_failed_is_forgotten_with_its_run(filled):
    lease = filled.runs.acquire("gone", owner_name(), 30)
    filled.ledger.intend(lease, intent("gone", effect_key="refused"))
    filled.ledger.settle(lease, "refused", "failed")

    filled.retention.remove(lease)

    assert filled.ledger.get("refused") is None


@pytest.mark.parametrize("state", ["intended", "accepted", "unknown"])
def test_a_run_whose_effect_is_unsettled_stays(filled, state):
    lease = filled.runs.acquire("gone", owner_name(), 30)
    filled.ledger.intend(lease, intent("gone", effect_key="open"))
    if state == "accepted":
        filled.ledger.accept(lease, "open", "op")
    if state == "unknown":
        filled.ledger.settle(lease, "open", "unknown")
    before = dump(filled)

    with pytest.raises(EffectUnknown, match=f"open is {state}"):
        filled.retention.remove(lease)

    assert dump(filled) == before


def test_a_former_owner_removes_nothing(filled, clock):
    former = filled.runs.acquire("gone", "elsewhere.0:1:1:a", 1)
    clock.jump(2)
    filled.runs.acquire("gone", owner_name(), 30)

    with pytest.raises(LeaseLost):
        filled.retention.remove(former)

    assert len(filled.log.read("gone")) == 2


def test_an_artifact_that_another_run_uses_by_name_alone_stays(filled, new_run):
    new_run("reader")
    lease = filled.runs.acquire("reader", owner_name(), 30)
    ref = ref_of({"mine": SECRET}).ref
    filled.log.append(lease, 0, [StepEnded(step="S1", plan_version=1, status="done", output=ref)])

    remove(filled)

    assert filled.artifacts.get(ref) == {"mine": SECRET}


def test_only_runs_in_which_nothing_happened_for_so_long_are_old(filled, clock, new_run):
    clock.jump(60)
    new_run("young")

    old = filled.retention.idle_since(clock() - timedelta(seconds=30), "planning")

    assert [each.run_id for each in old] == ["gone", "left"]


@pytest.mark.parametrize("happens", ["event", "decision", "vote", "nothing"])
def test_a_run_in_which_anything_happened_since_is_not_what_was_listed(filled, clock, happens):
    [seen, _] = filled.retention.idle_since(clock() + timedelta(seconds=1), "planning")
    clock.jump(60)
    said = Decision(question_id="gone-q2", run_id="gone", decision="approve", by="bob", at=clock())
    if happens == "event":
        lease = filled.runs.acquire("gone", owner_name(), 30)
        event = StepEnded(step="S2", plan_version=1, status="skipped")
        filled.log.append(lease, 2, [event])
    elif happens == "decision":
        filled.decisions.record(said)
    elif happens == "vote":
        filled.decisions.vote(said, needs=2)

    assert filled.retention.is_still(seen) == (happens == "nothing")
    young = filled.retention.idle_since(clock(), "planning")
    assert ("gone" in [each.run_id for each in young]) == (happens == "nothing")


def test_a_later_run_of_the_same_id_inherits_no_effect(filled, new_run):
    remove(filled)
    new_run("gone")

    assert filled.ledger.list(run_id="gone") == ()
    assert filled.ledger.under("gone", "gone-q1", "S1") == ()
    assert filled.ledger.get("key-gone").is_buried


def test_a_result_stays_as_long_as_another_run_says_it(filled, new_run):
    new_run("reader")
    lease = filled.runs.acquire("reader", owner_name(), 30)
    ref = ref_of({"mine": SECRET}).ref
    filled.log.append(lease, 0, [StepEnded(step="S1", plan_version=1, status="done", output=ref)])

    remove(filled)
    kept = filled.ledger.get("key-gone").output
    filled.retention.remove(lease)

    assert (kept, filled.ledger.get("key-gone").output) == (ref, None)
