from __future__ import annotations

import pytest

from plangate.compensate import compensate
from plangate.journal.points import watch
from plangate.plan.errors import ConfigError, Conflict, RunBusy
from plangate.revise import proposed, revise_goal
from tests.door.holds import WORLD, desk


class Died(Exception):
    pass


@pytest.fixture
def trips(tmp_path):
    with desk(tmp_path) as made:
        yield made


def test_a_new_goal_ends_the_old_run_keeps_what_was_done_and_starts_another(trips):
    old = trips.held()
    seen = proposed(trips.runtime, old, "Hold them for Bob", {"holder": "Bob"})

    revised = revise_goal(trips.runtime, old, seen, by="ann")
    again = revise_goal(trips.runtime, old, seen, by="bob")
    new = trips.go(revised.run_id)

    said, keys = revised.record, [trips.key(old, "hold:B2"), trips.key(old, "hold:A1")]
    assert again == revised
    assert (said.previous_goal_id, said.goal_id) == (old, revised.run_id)
    assert (said.confirmed_by, said.user_message_ref[:11]) == ("ann", "artifact://")
    assert said.cancelled_step_ids == ("S3", "S4")
    assert list(said.kept_effects) == list(said.compensation_candidates) == keys
    ended = trips.runtime.view(old).ended
    assert (ended.ending, ended.verdict) == ("cancelled", "fail")
    codes = {e.step: e.error_code for e in trips.events(old, "step_ended") if e.error_code}
    assert codes == dict.fromkeys(("S3", "S4"), "cancelled_by_goal_change")
    assert (new.cause.kind, new.cause.run_id) == ("goal_revision", old)
    assert [each.run_id for each in trips.runtime.view(old).followed] == [revised.run_id]
    assert [each.kind for each in new.pending_questions] == ["approval"]
    assert WORLD.done == ["hold A1", "hold B2"], "kept effects stay kept"


def test_what_a_changed_goal_left_behind_can_be_undone(trips):
    old = trips.held()
    revise_goal(trips.runtime, old, proposed(trips.runtime, old, "Hold none"), by="ann")

    begun = compensate(trips.runtime, old, by="ann")
    trips.go(begun.run_id)
    trips.go(begun.run_id, "approve")

    assert WORLD.held == {}


def test_a_change_of_goal_that_cannot_be_is_refused_and_changes_nothing(trips):
    run_id = trips.start()
    seen = proposed(trips.runtime, run_id, "Another")
    with pytest.raises(ConfigError, match="not a parameter"):
        proposed(trips.runtime, run_id, "Another", {"colour": "red"})
    for wrong in ({"by": "ann", "goal_id": "g" * 201}, {"by": " "}):
        with pytest.raises(ConfigError):
            revise_goal(trips.runtime, run_id, seen, **wrong)
    assert trips.runtime.view(run_id).revised is None, "a typo does not cost the old run"
    with trips.runtime.hold(run_id), pytest.raises(RunBusy):
        revise_goal(trips.another(), run_id, seen, by="ann")
    trips.go(run_id, "approve")

    with pytest.raises(Conflict, match="has gone on"):
        revise_goal(trips.runtime, run_id, seen, by="ann")

    trips.go(run_id, "answer", answer={"confirmed": True})
    with pytest.raises(ConfigError, match="has ended"):
        proposed(trips.runtime, run_id, "Another")


@pytest.mark.parametrize("point", ["report.made", "run.creating"])
def test_a_change_of_goal_cut_off_by_death_releases_nothing_and_is_finished_by_saying_it_again(
    trips, point
):
    old = trips.held()
    seen = proposed(trips.runtime, old, "Hold them for Bob")

    def die(reached):
        if reached == point:
            raise Died

    watch(die)
    try:
        with pytest.raises(Died):
            revise_goal(trips.runtime, old, seen, by="ann")
    finally:
        watch(None)
    if trips.runtime.view(old).ended is None:
        trips.go(old)
    revised = revise_goal(trips.runtime, old, seen, by="ann")

    assert trips.runtime.view(old).ended.ending == "cancelled"
    assert [each.kind for each in trips.go(revised.run_id).pending_questions] == ["approval"]
    assert len(trips.events(old, "goal_revised")) == 1
    with pytest.raises(Conflict, match="changed already by ann"):
        revise_goal(trips.runtime, old, seen._replace(goal="Yet another"), by="bob")
