from __future__ import annotations

import json

import pytest

REFUND = "refund:ORD-B7K2M9Q4:1:6450"
"""The effect of the run that `done` brings to its end."""

REFUSED = [
    (("show", "refund:none"), 2, "no effect is named 'refund:none'"),
    (("settle", REFUND, "--as", "done"), 2, "Missing option '--evidence'"),
    (("settle", REFUND, "--as", "failed", "--evidence", "e"), 9, "settled already: done"),
    (("settle", REFUND, "--as", "done", "--evidence", "e", "--output", "{"), 2, "not JSON"),
    (("reconcile", REFUND), 9, "settled already: done"),
    (("compensate", REFUND), 3, "'create_refund' declares no undo"),
    (("compensate", "run_none"), 2, "no run 'run_none'"),
]
"""What cannot be done: the words after `plangate effects`, the exit code, what is said."""


@pytest.fixture
def done(call, waiting):
    call("run", "resume", waiting["run_id"], "--yes")
    return waiting["run_id"]


def test_an_effect_tells_who_allowed_it_and_what_cannot_be_done_to_it_says_why(call, done):
    told = json.loads(call("effects", "show", REFUND, "--json").stdout)
    shown = call("effects", "show", told["effect_key"][:12]).stdout

    assert (told["state"], told["run_id"], told["step"]) == ("done", done, "S6")
    assert (told["allowed_by"]["by"], told["allowed_by"]["plan_version"]) == ("--yes", 1)
    assert told["operation_id"] == told["output"]["operation_id"]
    assert [each["says"] for each in told["history"]][:3] == [
        "attempt S6-A1 of create_refund@1",
        "intended",
        "accepted",
    ]
    assert (told["compensability"]["code"], told["next"]) == ("no_undo", [])
    assert "allowed by --yes" in shown
    assert "declares no undo" in shown
    for words, code, says in REFUSED:
        result = call("effects", *words, code=code)
        assert says in result.stdout + result.stderr


def test_a_change_of_goal_is_confirmed_and_both_runs_tell_of_it(call, waiting):
    old, words = waiting["run_id"], ("--goal", "Refund less", "--inputs", "amount_cents=6000")
    asked = call("run", "revise", old, *words, code=11)
    new = json.loads(call("run", "revise", old, *words, "--yes", "--json", code=11).stdout)
    told = json.loads(call("run", "show", old, "--json").stdout)

    assert "these steps will not run: S1, S2, S3, S4, S5, S6, S7" in asked.stderr
    assert (told["ending"], told["followed_by"][0]["run_id"]) == ("cancelled", new["run_id"])
    assert new["cause"] == {"kind": "goal_revision", "run_id": old, "effects": []}
    assert {
        "previous_goal_id",
        "goal_id",
        "user_message_ref",
        "confirmed_at",
        "cancelled_step_ids",
        "kept_effects",
        "compensation_candidates",
    } <= told["goal_revised"].keys()
    assert "followed by run" in call("run", "show", old).stdout
