from __future__ import annotations

import pytest

from plangate.agent import load_agent
from plangate.replay.drive import replay

SCENARIOS = load_agent("refund").scenarios


@pytest.mark.parametrize("name", SCENARIOS)
def test_each_scenario_comes_out_as_its_file_says_and_replays_alike(shop, name):
    scenario = SCENARIOS[name]

    run_id = shop.start(scenario)
    view = shop.finish(run_id)

    payments = shop.world.payments(scenario.inputs["order_id"])
    assert {
        "ending": view.ended.ending,
        "verdict": view.ended.verdict,
        "payments": len(payments),
        "plan_versions": list(view.plans),
    } == scenario.expect
    replayed = replay(shop.runtime.journal, run_id, shop.agent)
    assert [each.line for each in replayed.differences] == []
    assert replayed.compared > 20


def test_a_missing_record_repairs_only_what_hangs_on_it(shop):
    run_id = shop.start("no-logistics-record")
    shop.finish(run_id)

    diff = shop.report(run_id)["plan_diffs"][0]["diff"]

    assert diff["kept"] == ["S1", "S3", "S4", "S5", "S6", "S7"]
    assert diff["replaced"] == {"S2": ["S2a", "S2b"]}
    assert diff["invalidated"] == ["S2"]
    assert diff["boundary"] == []


def test_the_repair_asks_nobody_again_and_says_under_whose_approval_it_goes_on(shop, events):
    run_id = shop.start("no-logistics-record")
    shop.finish(run_id)

    decisions = [(each.decision, each.by) for each in events(run_id, "decision_taken")]

    assert decisions == [("approve", "ann"), ("carried", "plangate"), ("answer", "ann")]


def test_a_done_step_is_not_run_again_after_the_repair(shop, events):
    run_id = shop.start("no-logistics-record")
    shop.finish(run_id)

    attempts = [each.attempt_id for each in events(run_id, "attempt_started")]

    assert attempts == ["S1-A1", "S2-A1", "S2a-A1", "S2b-A1", "S3-A1", "S4-A1", "S6-A1", "S7-A1"]


def test_what_the_provider_accepted_before_it_fell_silent_is_found_and_not_paid_again(shop, events):
    run_id = shop.start("accepted-then-timeout")
    shop.finish(run_id)

    ends = [
        (each.outcome, each.reused) for each in events(run_id, "attempt_ended") if each.step == "S6"
    ]
    states = [each.state for each in events(run_id, "effect_moved")]

    assert ends == [("unknown", ""), ("success", "reconcile")]
    assert states == ["intended", "unknown", "accepted", "done"]


def test_a_second_run_for_the_same_line_finds_the_payment_and_makes_no_other(shop):
    first = shop.start("straightforward")
    shop.finish(first)

    second = shop.start("straightforward")
    view = shop.finish(second)

    assert view.ended.ending == "declined"
    assert len(shop.world.payments()) == 1


def test_a_customer_who_says_no_ends_the_run_cleanly(shop):
    run_id = shop.start("straightforward")
    says = {
        "approval": {"decision": "approve"},
        "step": {"decision": "answer", "answer": {"confirmed": False}},
    }

    view = shop.finish(run_id, says)

    assert (view.ended.ending, view.ended.why.partition(":")[0]) == ("declined", "not_confirmed")
    assert shop.world.payments() == []


def test_every_verified_claim_names_its_evidence(shop):
    run_id = shop.start("no-logistics-record")
    shop.finish(run_id)
    report = shop.report(run_id)

    assert [each["says"] for each in report["verified"]] == ["pass", "pass"]
    assert all(each["evidence"] for each in report["verified"])
    assert [each["holds"] for each in report["claims"]] == [True]
