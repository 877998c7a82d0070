from __future__ import annotations

import json
import sqlite3

import pytest


def question_of(run):
    return run["questions"][-1]["question_id"]


def test_without_a_terminal_and_an_option_nothing_is_answered(call, waiting):
    result = call("approve", waiting["run_id"], code=11)

    assert "--yes" in result.stderr
    assert "create_refund" in result.stderr


@pytest.mark.parametrize("name", ["question", "run", "nothing"])
def test_an_approval_goes_on_to_the_customers_question(call, waiting, name):
    names = {"question": (question_of(waiting),), "run": (waiting["run_id"],), "nothing": ()}

    said = call("approve", *names[name], "--yes", "--by", "ann", "--json", code=11)

    answered = json.loads(said.stdout)
    assert (answered["decision"]["decision"], answered["decision"]["by"]) == ("approve", "ann")
    assert answered["run"]["status"] == "waiting"
    assert "waiting for customer" in said.stderr


def test_both_answers_lead_to_the_verified_end(call, waiting):
    call("approve", waiting["run_id"], "--yes", "--by", "ann", code=11)

    call("approve", waiting["run_id"], "--answer", '{"confirmed": true}', "--by", "the customer")

    shown = json.loads(call("run", "show", waiting["run_id"], "--json").stdout)
    assert shown["terminal_verdict"] == "pass"
    assert [each["by"] for each in shown["questions"]] == ["ann", "the customer"]


def test_a_rejection_ends_the_run_with_exit_9_and_no_effect(call, waiting):
    call("approve", waiting["run_id"], "--reject", code=9)

    shown = json.loads(call("run", "show", waiting["run_id"], "--json").stdout)
    assert (shown["ending"], shown["effects"]) == ("rejected", [])


def test_a_customer_who_says_no_ends_the_run_without_payment(call, waiting):
    call("approve", waiting["run_id"], "--yes", code=11)

    call("approve", waiting["run_id"], "--reject", code=9)

    shown = json.loads(call("run", "show", waiting["run_id"], "--json").stdout)
    assert (shown["ending"], shown["effects"]) == ("declined", [])


def test_a_recorded_answer_waits_for_whoever_resumes(call, waiting):
    call("approve", waiting["run_id"], "--yes", "--record-only")
    assert (
        json.loads(call("run", "show", waiting["run_id"], "--json").stdout)["status"] == "waiting"
    )

    done = call("run", "resume", waiting["run_id"], "--json", code=11)

    assert json.loads(done.stdout)["questions"][0]["decision"] == "approve"


@pytest.mark.parametrize("by_run", [True, False])
@pytest.mark.parametrize("flags", [("--record-only",), ()])
def test_the_second_answer_changes_nothing_and_exits_9(call, waiting, by_run, flags):
    name = waiting["run_id"] if by_run and flags else question_of(waiting)
    call("approve", name, "--yes", "--by", "ann", *flags, code=0 if flags else 11)

    late = call("approve", name, "--reject", "--by", "bob", code=9)

    assert "decided already: approve by ann at" in late.stderr


def test_an_answer_to_an_ended_run_says_who_decided(call, waiting):
    call("approve", waiting["run_id"], "--reject", "--by", "ann", code=9)

    late = call("approve", waiting["run_id"], "--yes", code=9)

    assert "decided already: reject by ann" in late.stderr


@pytest.mark.slow
def test_of_two_answers_at_once_one_wins(waiting, start):
    racers = [start("approve", question_of(waiting), "--yes", "--by", by) for by in ("ann", "bob")]

    for each in racers:
        each.communicate(timeout=60)

    assert sorted(each.returncode for each in racers) == [9, 11]


@pytest.mark.slow
def test_of_four_resumes_at_once_one_runs(here, call, waiting, start):
    racers = [start("run", "resume", waiting["run_id"], "--yes", "--json") for _ in range(4)]

    said = [each.communicate(timeout=60) for each in racers]

    codes = sorted(each.returncode for each in racers)
    # One does the work; another is told that somebody is at it, or comes when it is done.
    assert codes[0] == 0, said
    assert set(codes[1:]) <= {0, 2, 7, 9}, said
    events = [
        json.loads(line)
        for line in call("run", "events", waiting["run_id"], "--json").stdout.splitlines()
    ]
    started = [
        each["event"]["attempt_id"] for each in events if each["event"]["type"] == "attempt_started"
    ]
    assert len(started) == len(set(started))
    with sqlite3.connect(here / ".plangate" / "refund-world.db") as world:
        assert world.execute("SELECT count(*) FROM provider_payments").fetchone() == (1,)


def test_a_question_that_was_never_asked_is_named_as_such(call, waiting):
    result = call("approve", f"{waiting['run_id']}-q9", "--yes", code=2)

    assert f"has no question '{waiting['run_id']}-q9'" in result.stderr
    assert question_of(waiting) in result.stderr


def test_where_nothing_waits_nothing_is_offered(call, waiting):
    call("approve", waiting["run_id"], "--reject", code=9)

    assert "no question waits" in call("approve", "--yes", code=2).stderr


def test_a_question_about_a_plan_takes_no_answer_for_a_failure(call, waiting):
    result = call("approve", waiting["run_id"], "--retry", code=9)

    assert "'retry' is not one of" in result.stderr


def test_single_steps_are_reviewed_in_one_answer(call, waiting):
    shown = call("approve", waiting["run_id"], code=11)
    assert "denying S6 also drops S5, S7" in " ".join(shown.stderr.split())

    call("approve", waiting["run_id"], "--steps", "S6=deny", code=9)
    call("approve", waiting["run_id"], "--steps", "S6", code=2)
    done = call("approve", waiting["run_id"], "--steps", "S6=approve,S7=deny", "--json", code=11)

    decision = json.loads(done.stdout)["decision"]
    assert decision["answer"]["dropped"] == {"S7": f"denied by {decision['by']}"}


def test_an_edit_is_asked_about_again_with_the_diff(call, waiting, here):
    edit = here / "edit.json"
    edit.write_text('[{"step": "S6", "args": {"amount_cents": 6000}}]')

    said = call("approve", waiting["run_id"], "--edit", str(edit), "--by", "ann", code=11)

    assert "v2 by human ann" in said.stderr
    again = call("approve", waiting["run_id"], code=11)
    assert "amount_cents" in again.stderr


@pytest.mark.parametrize(
    ("edit", "code", "why"),
    [
        ("nowhere.json", 2, "cannot be read"),
        ("{nothing", 2, "no JSON"),
        ('{"step": "S9", "args": {"a": 1}}', 9, "no step 'S9'"),
        ('{"step": "S6", "args": {"amount_cents": "60"}}', 9, "wrong_type"),
    ],
)
def test_a_bad_edit_says_what_is_wrong_with_it(call, waiting, edit, code, why):
    said = call("approve", waiting["run_id"], "--edit", edit, code=code)

    assert why in said.stderr


def test_changed_inputs_make_a_new_version(call, waiting):
    call("approve", waiting["run_id"], "--inputs", "amount_cents=5000", code=11)

    shown = json.loads(call("run", "show", waiting["run_id"], "--json").stdout)
    assert shown["plan_versions"] == [1, 2]


def test_a_question_is_handed_on_and_then_asks_for_the_role(call, waiting):
    call("approve", waiting["run_id"], "--escalate", "finance", "--comment", "too much", code=11)

    call("approve", waiting["run_id"], "--yes", code=9)
    call("approve", waiting["run_id"], "--yes", "--role", "finance", "--by", "fay", code=11)

    shown = json.loads(call("run", "show", waiting["run_id"], "--json").stdout)
    assert [each["decision"] for each in shown["questions"]][:2] == ["escalate", "approve"]


def test_more_is_read_and_shown_before_the_question_comes_back(call, waiting):
    wanted = "query_order order_id=ORD-B7K2M9Q4"

    call("approve", waiting["run_id"], "--more-info", wanted, code=11)

    shown = call("approve", waiting["run_id"], code=11).stderr
    assert "read on request" in shown
    assert "ORD-B7K2M9Q4" in shown


def test_two_ways_to_answer_do_not_go_together(call, waiting):
    call("approve", waiting["run_id"], "--yes", "--steps", "S6=deny", code=2)
