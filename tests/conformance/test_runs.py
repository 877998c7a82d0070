from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from plangate.journal.events import RunEnded
from plangate.journal.journal import Journal
from plangate.journal.owner import owner_name
from plangate.plan.errors import ConfigError, Conflict, LeaseLost, RunBusy


def test_a_run_comes_back_as_it_was_made(journal, new_run, clock):
    made = new_run()

    assert journal.runs.get("r") == made
    assert (made.created_at, made.status, made.principal.roles) == (
        clock.now,
        "planning",
        ("clerk",),
    )


def test_an_unknown_run_is_named_with_a_way_out(journal):
    with pytest.raises(ConfigError, match="unknown_run: no run 'x'") as caught:
        journal.runs.get("x")

    assert "plangate run list" in caught.value.hint


def test_a_run_id_is_taken_once(new_run):
    new_run()

    with pytest.raises(Conflict, match="exists already"):
        new_run()


def test_runs_are_listed_newest_first(journal, new_run, clock):
    for run_id in ("a", "b", "c"):
        new_run(run_id)
        clock.jump(1)

    assert [run.run_id for run in journal.runs.list()] == ["c", "b", "a"]
    assert [run.run_id for run in journal.runs.list(limit=2)] == ["c", "b"]
    assert journal.runs.list(status="ended") == ()


def test_a_status_that_is_none_is_refused(journal):
    with pytest.raises(ConfigError, match="'done' is not a status"):
        journal.runs.list(status="done")


def test_a_thread_leads_to_its_newest_run(journal, new_run, clock):
    new_run("a", thread_id="t")
    end(journal, "a")
    clock.jump(1)
    new_run("b", thread_id="t")
    new_run("c", thread_id="other")

    assert journal.runs.latest_of_thread("t").run_id == "b"
    assert journal.runs.latest_of_thread("none") is None


def end(journal: Journal, run_id: str) -> None:
    lease = journal.runs.acquire(run_id, owner_name(), 30)
    ended = RunEnded(ending="completed", verdict="pass", report="sha256:" + "0" * 64)
    journal.log.append(lease, 0, [ended])
    journal.runs.release(lease)


def test_a_thread_has_at_most_one_run_that_has_not_ended(journal, new_run):
    new_run("a", thread_id="t")

    with pytest.raises(Conflict, match="thread 't' has an open run"):
        new_run("b", thread_id="t")

    end(journal, "a")
    assert new_run("b", thread_id="t").run_id == "b"


def test_a_live_lease_is_not_given_again_not_even_to_its_owner(journal, lease, clock):
    clock.jump(29.9)

    for owner in (owner_name(), lease.owner):
        with pytest.raises(RunBusy, match=f"worked on by {lease.owner} until 2026-01-31T08:15:30"):
            journal.runs.acquire("r", owner, 30)


def test_an_expired_lease_is_given_with_the_next_epoch(journal, lease, clock):
    clock.jump(30)
    later = journal.runs.acquire("r", owner_name(), 30)

    assert (lease.epoch, later.epoch) == (1, 2)
    with pytest.raises(LeaseLost, match=f"{later.owner} holds it with epoch 2"):
        journal.runs.renew(lease, 30)


def test_a_released_run_is_free_at_once_and_its_epoch_still_grows(journal, lease):
    journal.runs.release(lease)

    assert journal.runs.acquire("r", owner_name(), 30).epoch == 2


def test_a_late_release_does_not_take_the_run_from_its_new_owner(journal, lease, clock):
    clock.jump(30)
    later = journal.runs.acquire("r", owner_name(), 30)

    journal.runs.release(lease)

    assert journal.runs.get("r").owner == later.owner


def test_an_owner_that_died_on_another_machine_is_waited_for(journal, new_run, clock):
    new_run()
    journal.runs.acquire("r", "elsewhere.0:1:1:abc", 30)

    with pytest.raises(RunBusy):
        journal.runs.acquire("r", owner_name(), 30)
    clock.jump(30)

    assert journal.runs.acquire("r", owner_name(), 30).epoch == 2


def test_a_renewed_lease_is_longer(journal, lease, clock):
    clock.jump(10)

    assert journal.runs.renew(lease, 30).expires_at == clock.now + timedelta(seconds=30)


def test_a_clock_that_goes_back_shortens_no_lease(journal, lease, clock):
    clock.jump(-3600)

    assert journal.runs.renew(lease, 30).expires_at == lease.expires_at


def test_a_lease_that_ran_out_unnoticed_can_be_renewed(journal, lease, clock):
    clock.jump(100)

    journal.runs.renew(lease, 30)

    with pytest.raises(RunBusy):
        journal.runs.acquire("r", owner_name(), 30)


def test_a_jump_of_less_than_what_is_left_steals_no_renewed_lease(journal, lease, clock):
    clock.jump(10)
    journal.runs.renew(lease, 30)
    clock.jump(10 + 19.9)  # nearly due for the next renewal, and the clock jumps by 2/3 of the ttl

    with pytest.raises(RunBusy):
        journal.runs.acquire("r", owner_name(), 30)


def test_nobody_acquires_or_renews_what_is_not_there(journal, lease):
    with pytest.raises(ConfigError, match="unknown_run"):
        journal.runs.acquire("x", owner_name(), 30)
    with pytest.raises(ConfigError, match="unknown_run"):
        journal.runs.renew(replace(lease, run_id="x"), 30)
