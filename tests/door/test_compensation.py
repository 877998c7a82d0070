from __future__ import annotations

import pytest

from plangate.cancel import cancel
from plangate.compensate import compensate, standing
from plangate.journal.causes import RunFollowed
from plangate.journal.points import watch
from plangate.plan.errors import ConfigError, PlanRejected
from plangate.retention import Records
from plangate.revise import proposed
from tests.door.holds import WORLD, desk


class Died(Exception):
    pass


@pytest.fixture
def trips(tmp_path):
    with desk(tmp_path) as made:
        yield made


def test_what_a_given_up_run_did_is_undone_newest_first_by_a_plan_that_a_person_confirms(trips):
    run_id = trips.stopped()
    ended = trips.runtime.view(run_id).ended
    report = trips.runtime.journal.artifacts.get(ended.report)

    begun = compensate(trips.runtime, run_id, by="bob")
    waits = [each.kind for each in trips.go(begun.run_id).pending_questions]
    view = trips.go(begun.run_id, "approve")

    offered = [(each["business_key"], each["undo"]) for each in report["compensation_candidates"]]
    assert offered == [("hold:B2", "release"), ("hold:A1", "release")]
    assert waits == ["approval"]
    assert (view.ended.ending, view.ended.verdict) == ("completed", "pass")
    assert WORLD.done == ["hold A1", "hold B2", "release B2", "release A1"]
    assert trips.states(run_id) == {"hold:A1": "compensated", "hold:B2": "compensated"}
    assert trips.states(begun.run_id) == {"release:T-B2": "done", "release:T-A1": "done"}
    [link] = trips.events(run_id, "run_followed")
    moved = [e for e in trips.events(begun.run_id, "effect_moved") if e.state == "compensated"]
    assert (link.kind, link.run_id, link.by) == ("compensation", begun.run_id, "bob")
    assert (view.cause.run_id, view.cause.effects) == (run_id, link.effects)
    assert [each.effect_key for each in moved] == list(link.effects)


def test_only_what_is_named_is_undone_and_what_cannot_be_is_left_and_said(trips):
    run_id = trips.held()
    with pytest.raises(ConfigError, match="has not ended"):
        compensate(trips.runtime, run_id, by="ann")
    trips.go(run_id, "answer", answer={"confirmed": True})
    with pytest.raises(PlanRejected) as caught:
        compensate(trips.runtime, run_id, [trips.key(run_id, "note:B2")], by="ann")
    assert [each.code for each in caught.value.issues] == ["no_undo"]
    assert trips.events(run_id, "run_followed") == []

    begun = compensate(trips.runtime, run_id, [trips.key(run_id, "hold:A1")], by="ann")
    trips.go(begun.run_id)
    trips.go(begun.run_id, "approve")

    assert [each.row.business_key for each in begun.left] == ["note:B2", "hold:B2"]
    assert trips.states(run_id) == {"hold:A1": "compensated", "hold:B2": "done", "note:B2": "done"}


def test_compensation_fails_and_what_is_not_known_of_an_undo_is_asked_never_silent(trips):
    run_id = trips.stopped()
    begun = compensate(trips.runtime, run_id, by="ann")
    trips.go(begun.run_id)
    WORLD.broken, WORLD.silent = {"release B2"}, True

    view = trips.go(begun.run_id, "approve")

    assert [(each.kind, each.step) for each in view.pending_questions] == [("effect", "U1")]
    assert trips.states(begun.run_id) == {"release:T-B2": "unknown"}
    assert trips.states(run_id) == {"hold:A1": "done", "hold:B2": "done"}
    assert "release A1" not in WORLD.done, "an undo waits for the one before it"


def test_an_undo_that_only_says_that_it_worked_is_seen_through(trips):
    run_id = trips.stopped()
    begun = compensate(trips.runtime, run_id, by="ann")
    trips.go(begun.run_id)
    WORLD.lying = True

    view = trips.go(begun.run_id, "approve")

    assert [each.kind for each in view.pending_questions] == ["escalation"]
    assert trips.states(run_id)["hold:B2"] == "done"


def test_an_effect_that_is_not_as_its_undo_needs_it_is_not_undone(trips):
    run_id = trips.stopped()
    begun = compensate(trips.runtime, run_id, by="ann")
    trips.go(begun.run_id)
    WORLD.held.pop("B2")

    view = trips.go(begun.run_id, "approve")

    assert [each.step for each in view.pending_questions] == ["L1"]
    assert not [each for each in WORLD.done if each.startswith("release")]


def test_an_undo_that_was_deleted_is_not_begun_anew(trips):
    run_id = trips.stopped()
    begun = compensate(trips.runtime, run_id, by="ann")
    trips.go(begun.run_id)
    trips.go(begun.run_id, "approve")
    Records(trips.runtime.journal, None).delete(begun.run_id)

    with pytest.raises(ConfigError, match=r"nothing that run .* did stands"):
        compensate(trips.runtime, run_id, by="ann")

    assert [run.run_id for run in trips.runtime.journal.runs.list()] == [run_id]


def test_compensating_twice_is_one_undo_and_a_second_attempt_does_only_what_is_left(trips):
    run_id = trips.stopped()
    first = compensate(trips.runtime, run_id, by="ann")
    again = compensate(trips.runtime, run_id, by="bob")
    trips.go(first.run_id)
    WORLD.refused = {"release A1"}
    refused = trips.go(first.run_id, "approve")
    trips.go(first.run_id, "stop")
    WORLD.refused = set()

    second = compensate(trips.runtime, run_id, by="ann")
    trips.go(second.run_id)
    view = trips.go(second.run_id, "approve")

    assert again.run_id == first.run_id == f"{run_id}-undo1"
    assert [each.kind for each in refused.pending_questions] == ["escalation"]
    assert (second.run_id, view.ended.verdict) == (f"{run_id}-undo2", "pass")
    assert WORLD.done[2:] == ["release B2", "release A1"]
    with pytest.raises(ConfigError, match="did stands"):
        compensate(trips.runtime, run_id, by="ann")


def test_death_between_the_link_and_the_new_run_leaves_one_compensation(trips):
    run_id = trips.stopped()
    keys = tuple(each.row.effect_key for each in standing(trips.runtime, run_id))
    link = RunFollowed(kind="compensation", run_id=f"{run_id}-undo1", effects=keys, by="ann")
    with trips.runtime.hold(run_id) as session:
        session.emit(link)

    begun = compensate(trips.runtime, run_id, by="ann")
    trips.go(begun.run_id)
    trips.go(begun.run_id, "approve")

    assert begun.run_id == link.run_id
    assert set(trips.states(run_id).values()) == {"compensated"}


def test_death_after_the_undo_and_before_the_ledger_is_told_loses_nothing(trips):
    run_id = trips.stopped()
    begun = compensate(trips.runtime, run_id, by="ann")
    trips.go(begun.run_id)

    def die(point: str) -> None:
        if point == "plan.halted":
            raise Died

    watch(die)
    with pytest.raises(Died):
        trips.go(begun.run_id, "approve")
    watch(None)
    before = trips.states(run_id)
    view = trips.go(begun.run_id)

    assert set(before.values()) == {"done"}
    assert view.ended.verdict == "pass"
    assert set(trips.states(run_id).values()) == {"compensated"}
    assert len(WORLD.done) == 4


def test_what_was_undone_before_a_compensation_was_stopped_is_not_said_to_stand(trips):
    run_id = trips.stopped()
    begun = compensate(trips.runtime, run_id, by="ann")
    trips.go(begun.run_id)
    WORLD.meanwhile["release B2"] = trips.runtime.drain

    trips.go(begun.run_id, "approve")
    drained = trips.states(run_id)
    ended = cancel(trips.another(), begun.run_id, by="eve").ended

    assert drained == {"hold:A1": "done", "hold:B2": "compensated"}
    assert ended.ending == "cancelled"
    assert trips.states(run_id) == drained
    assert WORLD.done[2:] == ["release B2"]


def test_what_was_undone_before_its_owner_died_is_told_when_the_run_is_cancelled(trips):
    run_id = trips.stopped()
    begun = compensate(trips.runtime, run_id, by="ann")
    trips.go(begun.run_id)

    def die(point: str) -> None:
        if point == "plan.halted":
            raise Died

    watch(die)
    with pytest.raises(Died):
        trips.go(begun.run_id, "approve")
    watch(None)
    ended = cancel(trips.runtime, begun.run_id, by="eve").ended

    assert ended.ending == "cancelled"
    assert set(trips.states(run_id).values()) == {"compensated"}


def test_an_undo_that_a_person_edited_into_another_call_does_not_count_as_the_undo(trips):
    run_id = trips.stopped()
    begun = compensate(trips.runtime, run_id, [trips.key(run_id, "hold:A1")], by="ann")
    trips.go(begun.run_id)
    WORLD.held["C3"] = "Bob"

    with pytest.raises(ConfigError, match="no goal of its own"):
        proposed(trips.runtime, begun.run_id, "Another")
    changed = trips.say(begun.run_id, "edit", edits=[{"inputs": {"E1": {}}}])
    trips.go(begun.run_id, "edit", edits=[{"step": "U1", "args": {"ticket": "T-C3"}}])
    WORLD.held.pop("A1")  # so that whoever looks sees nothing of it
    trips.go(begun.run_id, "approve")

    assert "cannot be changed" in changed.why
    assert trips.states(run_id)["hold:A1"] == "done"
