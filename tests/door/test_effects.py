from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from plangate import effects
from plangate.journal.points import watch
from plangate.nodes.follow import Word
from plangate.plan.errors import ConfigError, Denied, EffectUnknown, RunBusy
from tests.door.holds import WORLD, desk

SEAT = {"seat": "B2", "holder": "Ann", "ticket": "T-B2"}


class Died(Exception):
    pass


@pytest.fixture
def trips(tmp_path):
    with desk(tmp_path) as made:
        yield made


@pytest.fixture
def unsure(trips):
    """A run of which nobody knows whether the second seat is held; it asks."""
    WORLD.broken, WORLD.silent = {"hold B2"}, True
    return trips.held()


@pytest.fixture
def orphan(trips):
    """A run that died between the call and its outcome; it asks nobody."""

    def die(point):
        if point == "effect.returned" and len(WORLD.done) == 2:
            raise Died

    run_id = trips.start()
    watch(die)
    try:
        with pytest.raises(Died):
            trips.go(run_id, "approve")
    finally:
        watch(None)
    return run_id


def word(state="done", **more):
    return Word(**{"state": state, "by": "ann", "evidence": "seen in the plan of seats", **more})


@pytest.mark.parametrize("which", ["unsure", "orphan"])
def test_a_settled_effect_keeps_who_and_why_and_the_run_goes_on_from_it(trips, which, request):
    run_id = request.getfixturevalue(which)

    row = effects.settle_effect(trips.runtime, "hold:B2", word(output=SEAT))
    view = trips.go(run_id)

    assert (row.state, row.by, row.note) == ("done", "ann", "seen in the plan of seats")
    assert [each.step for each in view.pending_questions] == ["S3"]
    assert WORLD.done == ["hold A1", "hold B2"]
    [moved] = [e for e in trips.events(run_id, "effect_moved") if e.by]
    assert (moved.state, moved.by, moved.evidence) == ("done", "ann", row.note)


def test_an_effect_settled_as_failed_is_done_when_the_run_goes_on(trips, orphan):
    WORLD.held.pop("B2")

    effects.settle_effect(trips.runtime, "hold:B2", word("failed"))
    trips.go(orphan)

    assert trips.states(orphan) == {"hold:A1": "done", "hold:B2": "done"}
    assert WORLD.held["B2"] == "Ann"


def test_what_is_no_settlement_changes_nothing_and_says_why(trips, orphan):
    for said, why in (
        (word(evidence=" "), "on evidence"),
        (word(output={"seat": 7}), "does not fit"),
        (word("failed", output=SEAT), "has no result"),
    ):
        with pytest.raises(ConfigError, match=why):
            effects.settle_effect(trips.runtime, "hold:B2", said)
    with pytest.raises(ConfigError, match="no effect is named"):
        effects.settle_effect(trips.runtime, "hold:Z9", word())
    with trips.runtime.hold(orphan), pytest.raises(RunBusy):
        effects.settle_effect(trips.another(), "hold:B2", word())
    with pytest.raises(Denied, match="settled already: done"):
        effects.settle_effect(trips.runtime, "hold:A1", word())

    assert trips.states(orphan)["hold:B2"] == "intended"


def test_of_two_who_settle_at_once_one_wins_and_the_other_is_told(trips, unsure):
    def settle(by):
        try:
            return effects.settle_effect(trips.runtime, "hold:B2", word(by=by, output=SEAT)).by
        except (Denied, RunBusy) as told:
            return told

    with ThreadPoolExecutor() as pool:
        got = list(pool.map(settle, ["ann", "bob"]))

    winners = [each for each in got if isinstance(each, str)]
    assert len(winners) == 1
    assert trips.runtime.journal.ledger.named("hold:B2")[0].by == winners[0]


def test_an_answer_that_was_recorded_before_counts_and_a_settlement_after_it_does_not(
    trips, unsure
):
    trips.say(unsure, "settle", by="bob", answer={"state": "failed"})

    with pytest.raises(Denied, match="decided already: settle by bob"):
        effects.settle_effect(trips.runtime, "hold:B2", word())


@pytest.mark.parametrize("which", ["unsure", "orphan"])
def test_the_outside_is_asked_and_the_run_goes_on_from_what_it_says(trips, which, request):
    run_id = request.getfixturevalue(which)
    WORLD.silent = True
    with pytest.raises(EffectUnknown):
        effects.reconcile(trips.runtime, "hold:B2", by="ann")
    unsure = trips.states(run_id)["hold:B2"]
    WORLD.silent = False

    row = effects.reconcile(trips.runtime, "hold:B2", by="ann")
    view = trips.go(run_id)

    assert (unsure, row.state) == ("unknown", "done")
    assert [each.step for each in view.pending_questions] == ["S3"]
    assert WORLD.done == ["hold A1", "hold B2"]


def test_what_the_outside_is_sure_never_happened_is_failed_and_nothing_is_done_by_asking(
    trips, orphan
):
    WORLD.held.pop("B2")

    row = effects.reconcile(trips.runtime, "hold:B2", by="ann")

    assert (row.state, row.error_code) == ("failed", "did_not_happen")
    assert WORLD.done == ["hold A1", "hold B2"]
