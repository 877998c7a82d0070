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
    assert codes[0] == 0, said
    assert set(codes[1:]) <= {2, 7, 9}, said
    with sqlite3.connect(here / ".plangate" / "refund-world.db") as world:
        assert world.execute("SELECT count(*) FROM provider_payments").fetchone() == (1,)


def test_a_question_about_a_plan_takes_no_answer_for_a_failure(call, waiting):
    result = call("approve", waiting["run_id"], "--retry", code=9)

    assert "'retry' is not one of" in result.stderr
