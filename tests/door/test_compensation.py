from __future__ import annotations

import pytest

from plangate.compensate import compensate, standing
from plangate.journal.causes import RunFollowed
from plangate.journal.points import watch
from plangate.plan.errors import ConfigError, PlanRejected
from tests.door.holds import WORLD, desk


class Died(Exception):
    pass


@pytest.fixture
def trips(tmp_path):
    with desk(tmp_path) as made:
        yield made


def test_what_a_given_up_run_did_is_undone_newest_first_by_a_plan_that_a_person_confirms(trips):
    run_id = trips.stopped()

    begun = compensate(trips.runtime, run_id, by="ann")
    view = trips.go(begun.run_id)
    waits = [each.kind for each in view.pending_questions]
    view = trips.go(begun.run_id, "approve")

    assert waits == ["approval"]
    assert (view.ended.ending, view.ended.verdict) == ("completed", "pass")
    assert WORLD.done == ["hold A1", "hold B2", "release B2", "release A1"]
    assert trips.states(run_id) == {"hold:A1": "compensated", "hold:B2": "compensated"}
    assert trips.states(begun.run_id) == {"release:T-B2": "done", "release:T-A1": "done"}


def test_the_report_of_a_run_that_was_given_up_names_what_stands_and_how_it_could_be_undone(trips):
    run_id = trips.stopped()

    view = trips.runtime.view(run_id)
    report = trips.runtime.journal.artifacts.get(view.ended.report)
    found = [(each["business_key"], each["undo"]) for each in report["compensation_candidates"]]
    assert report["done_effects"] == ["hold:A1", "hold:B2"]
    assert found == [("hold:B2", "release"), ("hold:A1", "release")]


def test_only_the_named_effects_are_undone(trips):
    run_id = trips.stopped()

    begun = compensate(trips.runtime, run_id, [trips.key(run_id, "hold:A1")], by="ann")
    trips.go(begun.run_id)
    trips.go(begun.run_id, "approve")

    assert trips.states(run_id) == {"hold:A1": "compensated", "hold:B2": "done"}
    assert [each.row.business_key for each in begun.left] == ["hold:B2"]


def test_both_runs_name_each_other_and_the_log_says_when_an_effect_was_gone(trips):
    run_id = trips.stopped()
    begun = compensate(trips.runtime, run_id, by="bob")
    trips.go(begun.run_id)
    trips.go(begun.run_id, "approve")

    [link] = trips.events(run_id, "run_followed")
    [started] = trips.events(begun.run_id, "run_started")
    moved = [e for e in trips.events(begun.run_id, "effect_moved") if e.state == "compensated"]
    assert (link.kind, link.run_id, link.by) == ("compensation", begun.run_id, "bob")
    assert (started.cause.run_id, started.cause.effects) == (run_id, link.effects)
    assert [each.effect_key for each in moved] == list(link.effects)


def test_an_effect_without_an_undo_is_left_and_said_and_named_alone_it_is_refused(trips):
    run_id = trips.held()
    trips.go(run_id, "answer", answer={"confirmed": True})
    begun = compensate(trips.runtime, run_id, by="ann")

    assert [(each.row.business_key, each.undoing.code) for each in begun.left] == [
        ("note:B2", "no_undo")
    ]


def test_an_effect_that_cannot_be_undone_is_an_issue_and_nothing_is_begun(trips):
    run_id = trips.held()
    trips.go(run_id, "answer", answer={"confirmed": True})

    with pytest.raises(PlanRejected) as caught:
        compensate(trips.runtime, run_id, [trips.key(run_id, "note:B2")], by="ann")

    assert [each.code for each in caught.value.issues] == ["no_undo"]
    assert trips.events(run_id, "run_followed") == []


def test_a_run_that_goes_on_is_not_compensated_under_its_feet(trips):
    run_id = trips.held()

    with pytest.raises(ConfigError, match="has not ended"):
        compensate(trips.runtime, run_id, by="ann")


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


def test_an_undo_that_the_outside_refuses_goes_to_a_person_and_the_effect_stays_done(trips):
    run_id = trips.stopped()
    begun = compensate(trips.runtime, run_id, by="ann")
    trips.go(begun.run_id)
    WORLD.refused = {"release B2"}

    view = trips.go(begun.run_id, "approve")

    assert [each.kind for each in view.pending_questions] == ["escalation"]
    assert trips.states(run_id)["hold:B2"] == "done"


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


def test_compensating_twice_is_one_undo(trips):
    run_id = trips.stopped()
    first = compensate(trips.runtime, run_id, by="ann")
    again = compensate(trips.runtime, run_id, by="bob")
    trips.go(first.run_id)
    trips.go(first.run_id, "approve")

    assert again.run_id == first.run_id
    assert WORLD.done.count("release A1") == WORLD.done.count("release B2") == 1
    with pytest.raises(ConfigError, match="did stands"):
        compensate(trips.runtime, run_id, by="ann")


def test_a_second_compensation_meets_the_undo_that_the_first_one_made(trips):
    run_id = trips.stopped()
    first = compensate(trips.runtime, run_id, by="ann")
    trips.go(first.run_id)
    WORLD.refused = {"release A1"}
    trips.go(first.run_id, "approve")
    trips.go(first.run_id, "stop")
    WORLD.refused = set()

    second = compensate(trips.runtime, run_id, by="ann")
    trips.go(second.run_id)
    view = trips.go(second.run_id, "approve")

    assert (first.run_id, second.run_id) == (f"{run_id}-undo1", f"{run_id}-undo2")
    assert view.ended.verdict == "pass"
    assert [each for each in WORLD.done if each.startswith("release")] == [
        "release B2",
        "release A1",
    ]


def test_a_rejected_compensation_undoes_nothing(trips):
    run_id = trips.stopped()
    begun = compensate(trips.runtime, run_id, by="ann")
    trips.go(begun.run_id)

    view = trips.go(begun.run_id, "reject")

    assert view.ended.ending == "rejected"
    assert WORLD.done == ["hold A1", "hold B2"]


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


def test_an_undo_that_a_person_edited_into_another_call_does_not_count_as_the_undo(trips):
    run_id = trips.stopped()
    begun = compensate(trips.runtime, run_id, [trips.key(run_id, "hold:A1")], by="ann")
    trips.go(begun.run_id)
    WORLD.held["C3"] = "Bob"
    trips.go(begun.run_id, "edit", edits=[{"step": "U1", "args": {"ticket": "T-C3"}}])
    view = trips.go(begun.run_id, "approve")

    assert view.ended is None or view.ended.verdict != "pass"
    assert trips.states(run_id)["hold:A1"] == "done"


def test_the_inputs_of_an_undo_are_what_was_recorded_and_cannot_be_changed(trips):
    run_id = trips.stopped()
    begun = compensate(trips.runtime, run_id, by="ann")
    trips.go(begun.run_id)

    got = trips.say(begun.run_id, "edit", edits=[{"inputs": {"E1": {}}}])

    assert "cannot be changed" in got.why
