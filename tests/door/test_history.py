from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from plangate.journal.events import RunEnded, VerifiedAs
from tests.door.holds import POLICY, WORLD, desk

SHORT = """
template: seat
goal: Hold a seat for {holder}
parameters: [{name: holder, type: string}]
steps:
  - {id: S1, objective: Hold it, tool: hold, args: {seat: A1, holder: "${inputs.holder}"},
     success: [{id: one, level: L2, claim: It is held, tool: look, args: {seat: "${S1.seat}"},
                rule: observed.holder == inputs.holder}]}
success_criteria:
  - {id: held, level: L2, claim: The seat is held, tool: look, args: {seat: "${S1.seat}"},
     rule: observed.holder == inputs.holder}
abort_conditions: [{id: many, text: Many failures, rule: run.failures >= 5}]
"""


@pytest.fixture
def trips(tmp_path):
    with desk(tmp_path, templates=(SHORT,)) as made:
        yield made


def tier(trips, run_id):
    checked = trips.runtime.view(run_id).validated[1]
    return checked.tier, checked.reasons[0]


def test_after_one_verified_run_of_its_type_a_plan_that_can_be_undone_runs_unasked(trips):
    first = trips.start()
    asked = [each.kind for each in trips.runtime.view(first).pending_questions]
    trips.go(first, "approve")
    second = trips.start()

    view = trips.runtime.view(second)
    assert asked == ["approval"]
    assert (view.ended.verdict, list(view.questions)) == ("pass", [])
    assert tier(trips, second) == (
        "auto",
        "every effect can be undone, under all limits; 1 verified runs of this type",
    )
    assert WORLD.done == ["hold A1", "hold A1"], "another goal holds it anew"


def test_a_run_that_was_not_verified_is_no_history(trips):
    first = trips.start()
    trips.go(first, "reject")

    assert tier(trips, trips.start())[0] == "selective"


@pytest.mark.parametrize(
    "policy",
    [POLICY + '[[deny]]\ntool = "note"\n', POLICY + "[tiers]\nhistory_days = 30\n"],
    ids=["another rule", "another limit"],
)
def test_success_under_another_policy_is_no_history(trips, policy):
    trips.go(trips.start(), "approve")
    trips.runtime.close()
    trips.runtime = trips.another(templates=(SHORT,), policy=policy)

    second = trips.start()

    assert tier(trips, second) == ("selective", "no verified run of type 'seat' yet")


def test_history_expires(trips):
    trips.go(trips.start(), "approve")
    kit, now = trips.runtime.kit, datetime.now(UTC)
    catalog = kit.registry.catalog()

    def count(**hashes):
        return trips.runtime.journal.verified.counts(
            catalog_hash=catalog.content_hash, policy_hash=kit.policy.content_hash, **hashes
        )

    assert count(since=now - timedelta(days=1), until=now) == {"seat": 1}
    assert count(since=now + timedelta(seconds=1), until=now + timedelta(days=1)) == {}


def test_a_deleted_run_is_no_history(trips):
    first = trips.start()
    trips.go(first, "approve")
    journal = trips.runtime.journal
    lease = journal.runs.acquire(first, "somebody", 30)
    journal.retention.remove(lease)

    assert tier(trips, trips.start())[0] == "selective"


def test_only_a_verified_end_says_what_it_speaks_for(trips):
    first = trips.start()
    view = trips.go(first, "approve")

    checked = view.validated[1]
    assert isinstance(view.ended, RunEnded)
    assert view.ended.verified == VerifiedAs(
        task_type="seat", catalog_hash=checked.catalog_hash, policy_hash=checked.policy_hash
    )
