from __future__ import annotations

import json

import pytest

REFUND = "refund:ORD-B7K2M9Q4:1:6450"
MARKS = "sent \x1b[2J to\nthe \u202e wrong desk"


def test_nothing_is_deleted_where_nobody_is_there_to_confirm_it(call, waiting):
    run_id = waiting["run_id"]
    asked = call("run", "delete", run_id, code=11)
    call("run", "prune", "--older-than", "0s", "--status", "waiting", code=11)

    assert "say --yes" in asked.stderr
    assert json.loads(call("run", "show", run_id, "--json").stdout)["status"] == "waiting"


@pytest.mark.parametrize(
    ("age", "code"),
    [("999999w", 0), ("30d", 0), ("-1d", 2), ("1e3d", 2), ("", 2), ("9999999d", 2), ("1y", 2)],
)
def test_an_age_is_any_time_that_there_was_and_nothing_else(call, waiting, age, code):
    del waiting
    said = call("run", "prune", "--older-than", age, "--yes", "--json", code=code)

    empty = {"deleted": {}, "kept": {}, "gone": [], "rewritten": False}
    assert code or json.loads(said.stdout) == empty


def test_what_a_deleted_run_did_is_shown_and_cannot_be_changed(call, waiting):
    run_id = waiting["run_id"]
    call("run", "resume", run_id, "--yes")
    key = json.loads(call("effects", "show", REFUND, "--json").stdout)["effect_key"]

    deleted = json.loads(call("run", "delete", run_id, "--yes", "--json").stdout)["deleted"]

    assert list(deleted) == [run_id]
    told = json.loads(call("effects", "show", key[:12], "--json").stdout)
    assert (told["state"], told["run_id"], told["output"], told["next"]) == ("done", "", None, [])
    assert "nothing is left to undo it by" in call("effects", "show", key[:12]).stdout
    assert f"deleted:{key[:12]}" in call("effects", "list").stdout
    for words in (
        ("settle", key[:12], "--as", "failed", "--evidence", "e"),
        ("reconcile", key[:12]),
        ("compensate", key[:12]),
    ):
        assert "was deleted" in call("effects", *words, code=2).stderr


def test_what_a_person_says_of_a_cancel_is_kept_and_never_acts_on_a_terminal(call, waiting):
    run_id = waiting["run_id"]
    said = call("run", "cancel", run_id, "--reason", MARKS, "--by", "e\x1bve")
    shown = call("run", "show", run_id)
    told = json.loads(call("run", "show", run_id, "--json").stdout)

    assert told["why"] == f"cancelled by e\x1bve: {MARKS}"
    assert not {"\x1b", "\u202e"} & {*said.stdout, *said.stderr, *shown.stdout, *shown.stderr}
    call("run", "cancel", run_id, "--wait", "nan", code=2)
