from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from plangate import effects
from plangate.journal.points import watch
from plangate.journal.schema import EFFECTS
from plangate.nodes.decide import Refused
from plangate.nodes.follow import Word
from plangate.plan.errors import ConfigError, Denied, EffectUnknown, RunBusy
from tests.door.holds import WORLD, desk
from tests.owners import beside

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


@pytest.fixture
def frozen(trips):
    """Says of all effects of unknown outcome that a process which stands still has them in hand."""
    with beside() as other:

        def of(run_id):
            with trips.runtime.journal.store.write() as tx:
                mine = EFFECTS.c.run_id == run_id
                tx.execute(sa.update(EFFECTS).where(mine).values(owner=other.name))
            return other

        yield of


@pytest.mark.parametrize("which", ["unsure", "orphan"])
def test_nobody_settles_as_failed_what_a_frozen_process_may_still_do(trips, which, frozen, request):
    run_id = request.getfixturevalue(which)
    WORLD.held.pop("B2")
    other = frozen(run_id)

    with pytest.raises(Denied, match="has it in hand, and may still make the call"):
        effects.settle_effect(trips.runtime, "hold:B2", word("failed"))
    other.end()
    row = effects.settle_effect(trips.runtime, "hold:B2", word("failed"))

    assert (row.state, WORLD.done.count("hold B2")) == ("failed", 1)


def test_a_person_who_has_it_tried_again_or_says_that_it_failed_is_told_of_the_frozen_process(
    trips, unsure, frozen
):
    WORLD.held.pop("B2")
    WORLD.silent = False
    other = frozen(unsure)

    told = trips.say(unsure, "settle", answer={"state": "failed"})
    with pytest.raises(EffectUnknown, match="may still make the call"):
        effects.reconcile(trips.runtime, "hold:B2", by="ann")
    again = trips.go(unsure, "retry")
    before = WORLD.done.count("hold B2")
    other.end()
    trips.go(unsure, "retry")

    assert isinstance(told, Refused)
    assert "may still make the call" in told.why
    assert [each.kind for each in again.pending_questions] == ["effect"]
    assert (before, WORLD.done.count("hold B2")) == (1, 2)


def test_a_step_that_met_anothers_effect_is_answered_about_that_effect(trips):
    WORLD.broken, WORLD.silent = {"hold B2"}, True
    first, second = trips.start(goal_id="G"), trips.start(goal_id="G")
    trips.go(first, "approve")
    trips.go(second, "approve")

    trips.say(second, "settle", answer={"state": "done", "output": SEAT})
    view = trips.go(second)

    assert trips.states(first)["hold:B2"] == "done"
    assert [each.step for each in view.pending_questions] == ["S3"]
    [moved] = [e for e in trips.events(second, "effect_moved") if e.by]
    assert (moved.step, moved.state) == ("S2", "done")
    assert WORLD.done == ["hold A1", "hold B2"]
