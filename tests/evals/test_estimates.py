from __future__ import annotations

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from plangate.agent import load_agent
from plangate.cli.main import cli
from plangate.evals.commands import evaluate
from plangate.evals.estimates import METRICS, Accuracy, Case, of_journal, of_scenarios
from plangate.evals.noise import Noise, VirtualClock
from plangate.journal.journal import Journal

NAMES = ("straightforward", "already-refunded")


@pytest.fixture(scope="module")
def agent():
    refund = load_agent("refund")
    return replace(refund, scenarios={name: refund.scenarios[name] for name in NAMES})


@pytest.fixture(scope="module")
def measured(agent):
    return of_scenarios(agent, 1, seed=1)


def test_each_scenario_is_run_and_each_metric_is_counted_case_by_case(measured):
    assert [each.name for each in measured.cases] == list(NAMES)
    for metric in METRICS:
        assert (measured.tally(metric).of, measured.tally(metric).unknown) == (2, 0)
        assert measured.tally(metric, "straightforward").of == 1
    assert all(each.cost["actual"]["tokens"] > 0 for each in measured.cases), "a critic was asked"
    assert all(each.cost["actual"]["seconds"] > 0 for each in measured.cases)


def test_the_same_seed_gives_the_same_noise_and_another_one_does_not():
    def durations(seed):
        noise = Noise(seed)
        return [noise.next("pay").random() for _ in range(5)]

    assert durations("1") == durations("1") != durations("2")


def test_calls_side_by_side_take_as_long_as_the_longest_and_one_by_one_as_all():
    clock = VirtualClock()
    clock.end(clock.now(), 2.0)
    began = clock.now()
    clock.end(began, 3.0)
    clock.end(began, 1.0)

    assert clock.now() == 5.0


def case(**held):
    return Case(name="s", run_id="r", cost={}, held={**dict.fromkeys(METRICS, True), **held})


@pytest.mark.parametrize(
    ("cases", "good"),
    [
        ([case()] * 9 + [case(usd=False)], True),
        ([case()] * 8 + [case(usd=False)] * 2, False),
        ([case()] * 9 + [case(usd=None)], True),
        ([case(usd=None)], False),
        ([], False),
    ],
)
def test_the_goal_is_nine_in_ten_of_what_is_known_and_nothing_known_is_no_success(cases, good):
    assert Accuracy(kind="journal", cases=tuple(cases)).is_good is good


def test_the_runs_of_a_journal_are_looked_at_and_none_is_made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    url = f"sqlite:///{tmp_path}/j.db"
    Journal.open(url).close()

    said = CliRunner().invoke(cli, ["eval", "estimates", "--journal", url, "--json"])

    found = json.loads(said.stdout)
    assert (said.exit_code, found["kind"], found["runs"]) == (9, "journal", 0)
    assert found["metrics"]["usd"] == {"held": 0, "of": 0, "unknown": 0, "share": None}


def test_a_finished_run_of_a_journal_is_held_against_what_it_was_said_to_take(shop):
    shop.finish(shop.start("straightforward"))

    [only] = of_journal(shop.runtime.journal).cases

    assert only.held["calls"] is True
    assert only.cost["actual"]["seconds"] < 1


def test_the_command_prints_what_held(monkeypatch, agent, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("plangate.agent.load_agent", lambda _: replace(agent, scenarios={}))

    said = CliRunner().invoke(cli, ["eval", "estimates"])

    assert "0 runs, seeded noise" in said.stdout
    assert "the goal is missed" in said.stdout


def test_the_help_that_is_shown_before_it_is_loaded_is_its_own():
    assert cli.commands["eval"].help == evaluate.help
