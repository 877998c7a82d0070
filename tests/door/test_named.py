from __future__ import annotations

import pytest

from plangate.plan.errors import ConfigError
from tests.door.ledgers import office


def start(made, run_id: str, **inputs: int) -> str:
    given = {"goal": "Pay the bills", "inputs": {"cents": 100, **inputs}}
    for _ in made.runtime.start(given, run_id=run_id):
        pass
    return run_id


@pytest.fixture
def made(tmp_path):
    with office(tmp_path) as opened:
        yield opened


def test_a_run_is_named_by_any_id_and_so_is_its_question(made):
    ids = ("a-q", "-q7", "a-q1", "run-q1-q22", "q", "-q", "b-q1x", "c\n-q3", "d-q¹")
    for run_id in ids:
        start(made, run_id)
        for name in (run_id, f"{run_id}-q1"):
            run, asked = made.runtime.question(name)
            assert (run.run_id, asked.question_id) == (run_id, f"{run_id}-q1")


def test_a_name_that_means_nothing_answers_nothing(made):
    start(made, "a")

    for name in ("", "-q1", "a-q2", "a-q0", "a-q1-q1", "a-q", "b", "A", "a "):
        with pytest.raises(ConfigError):
            made.say(name)

    assert made.runtime.journal.decisions.of_run("a") == []


def test_a_name_that_means_two_runs_answers_neither_and_both_can_be_answered(made):
    start(made, "a")
    start(made, "a-q1")

    with pytest.raises(ConfigError, match="'a-q1' is a run, and a question of run 'a'"):
        made.say("a-q1")
    made.say("a")
    made.say("a-q1-q1")

    decisions = made.runtime.journal.decisions
    found = [each.question_id for name in ("a", "a-q1") for each in decisions.of_run(name)]
    assert found == ["a-q1", "a-q1-q1"]


def test_a_run_named_as_a_question_that_was_never_asked_is_that_run(made):
    start(made, "a")
    start(made, "a-q9")

    assert made.runtime.question("a-q9")[0].run_id == "a-q9"
