from __future__ import annotations

import pytest

from plangate.journal.decisions import Decision
from plangate.journal.questions import (
    DecisionTaken,
)
from plangate.journal.session import Session
from plangate.nodes.decide import Refused
from plangate.plan.value.frozen import parse
from plangate.plan.value.plan import Plan
from tests.door.ledgers import WORLD, office


@pytest.fixture
def shop(tmp_path):
    with office(tmp_path) as made:
        yield made


LESS = {"step": "S2", "args": {"cents": 60}}


def test_an_edit_is_a_version_by_that_person_which_is_checked_and_asked_about_again(shop):
    run_id = shop.start()

    got = shop.say(run_id, "edit", edits=(LESS,))
    view = shop.go(run_id)

    assert isinstance(got, Decision)
    assert (view.plans[2].author.kind, view.plans[2].author.name) == ("human", "ann")
    assert view.plans[2].trigger == f"edit:{run_id}-q1"
    assert view.validated[2].valid
    assert WORLD.done == []
    payload = shop.asked(run_id)
    assert (payload["question_id"], payload["plan_version"]) == (f"{run_id}-q2", 2)
    assert payload["diff"]["changed_args"] == ["S2.cents"]
    assert next(s for s in payload["steps"] if s["id"] == "S2")["args"]["cents"] == 60


def test_what_runs_is_what_was_edited_and_approved(shop):
    run_id = shop.start()
    shop.say(run_id, "edit", edits=(LESS,))
    shop.go(run_id)
    shop.say(run_id)

    view = shop.go(run_id)

    assert view.ended.ending == "completed"
    assert "pay rent 60" in WORLD.done
    assert "pay rent 100" not in WORLD.done


FORMS = [
    [{"op": "add", "path": "/steps/S2/args/cents", "value": 60}],
    [{"op": "replace", "path": "/steps/S2/args/cents", "value": 60}],
    [{"op": "replace", "path": "/steps/1/args/cents", "value": 60}],
    [{"op": "test", "path": "/steps/S2/tool", "value": "pay"}, LESS],
    [{"op": "remove", "path": "/steps/S5"}],
    [{"op": "add", "path": "/steps/S4/after/-", "value": "S2"}],
    [{"op": "replace", "path": "/budget/max_tool_calls", "value": 30}],
]


@pytest.mark.parametrize("edits", FORMS)
def test_each_form_of_an_edit_is_taken(shop, edits):
    run_id = shop.start()

    got = shop.say(run_id, "edit", edits=edits)

    assert isinstance(got, Decision), got
    assert shop.go(run_id).version == 2


BAD = [
    ([], "without a change"),
    ([{"op": "replace", "path": "/steps/S9/args/cents", "value": 1}], "there is no '/steps/S9"),
    ([{"op": "replace", "path": "/steps/S2/args/euros", "value": 1}], "euros"),
    ([{"op": "replace", "path": "/steps/S2/args/cents", "value": "60"}], "wrong_type S2"),
    ([{"op": "add", "path": "/steps/S2/colour", "value": 1}], "malformed at steps.1.colour"),
    ([{"op": "replace", "path": "/steps/S2/tool", "value": "wire"}], "unknown_tool S2"),
    ([{"op": "add", "path": "/steps/S1/after/-", "value": "S5"}], "cycle"),
    ([{"op": "replace", "path": "/goal_id", "value": "other"}], "cannot be edited"),
    ([{"op": "replace", "path": "/inputs/cents", "value": 1}], "cannot be edited"),
    ([{"op": "replace", "path": "/author/name", "value": "eve"}], "cannot be edited"),
    ([{"op": "remove", "path": "/steps"}], "too much at once"),
    ([{"op": "move", "from": "/steps/0", "path": "/steps/1"}], "an operation is one of"),
    ([{"op": "test", "path": "/steps/S2/tool", "value": "mail"}, LESS], "edit 1"),
    ([{"op": "replace", "path": "steps/S2", "value": 1}], "cannot be edited"),
    ([{"op": "add", "path": "/steps/S2/args/cents"}], "takes op, path and value"),
    ([{"step": "S9", "args": {"cents": 1}}], "no step 'S9'"),
    ([{"step": "S2", "args": {"cents": 100.5}}], "S2"),
    ([{"step": "S2", "args": {"cents": "${inputs.cents}"}}], "changes nothing"),
    ([{"action": "approve_plan_v1", "args": {"cents": "60"}}], "are texts and are not taken"),
    (["S2: 60"], "str is no edit"),
    ([LESS] * 201, "at most 200"),
    ([{"step": "S2", "args": {"name": "x" * 70_000}}], "kB"),
    ([{"inputs": {"cents": 60}}, LESS], "stand alone"),
    ([{"op": "remove", "path": "/success_criteria/0"}] * 2, "not valid"),
]  # fmt: skip


@pytest.fixture(scope="module")
def waiting(tmp_path_factory):
    """One run for all that changes nothing."""
    with office(tmp_path_factory.mktemp("office")) as made:
        yield made, made.start()


@pytest.mark.parametrize(("edits", "why"), BAD, ids=[f"{n} {e[1]}" for n, e in enumerate(BAD)])
def test_a_bad_edit_is_refused_with_the_reason_and_changes_nothing(waiting, edits, why):
    shop, run_id = waiting
    before = shop.runtime.view(run_id).seq

    got = shop.say(run_id, "edit", edits=edits)

    assert isinstance(got, Refused)
    assert why in got.why
    assert shop.runtime.journal.decisions.of_run(run_id) == []
    assert shop.runtime.view(run_id).seq == before


def test_two_edits_leave_three_versions_and_every_event_names_its_own(shop):
    run_id = shop.start()
    shop.say(run_id, "edit", edits=(LESS,))
    shop.go(run_id)
    shop.say(run_id, "edit", edits=({"op": "remove", "path": "/steps/S5"},), by="bob")
    shop.go(run_id)
    shop.say(run_id)

    view = shop.go(run_id)

    assert [each.author.name for each in view.plans.values()][1:] == ["ann", "bob"]
    started = shop.events(run_id, "attempt_started")
    assert {each.plan_version for each in started} == {3}
    first = parse(Plan, shop.runtime.journal.artifacts.get(view.plans[1].plan))
    assert len(first.steps) == 5


def test_an_edit_survives_a_crash_before_its_version_was_written(shop):
    run_id = shop.start()
    shop.say(run_id, "edit", edits=(LESS,))
    _take_in_and_die(shop, run_id)

    view = shop.go(run_id, shop.another())

    assert (view.version, view.plans[2].author.kind) == (2, "human")


def _take_in_and_die(shop, run_id) -> None:
    """Leave what an owner leaves that died right after it had taken the decision in."""
    stored = shop.runtime.journal.decisions.of_run(run_id)[0]
    session = Session.open(shop.runtime.journal, run_id, "gone:1:1:x", 5)
    session.emit(
        DecisionTaken(
            question_id=stored.question_id,
            decision=stored.decision,
            by=stored.by,
            answer=stored.answer,
            content_hash=stored.content_hash,
        )
    )
    session.close()


def test_changed_inputs_give_a_fresh_plan_of_the_template_and_keep_the_old_version(shop):
    run_id = shop.start()

    got = shop.say(run_id, "edit", edits=({"inputs": {"cents": 250}},))
    view = shop.go(run_id)

    assert isinstance(got, Decision)
    assert (view.plans[2].author.kind, view.model_calls) == ("template", 0)
    assert shop.asked(run_id)["diff"]["to_version"] == 2
    assert next(s for s in shop.asked(run_id)["steps"] if s["id"] == "S2")["args"]["cents"] == 250
    shop.say(run_id)
    shop.go(run_id)
    assert "pay rent 250" in WORLD.done


@pytest.mark.parametrize(
    ("inputs", "why"),
    [
        ({"cents": 9999}, "cents"),
        ({"cents": "100"}, "cents"),
        ({"euros": 1}, "euros"),
        ({"cents": 100}, "changes nothing"),
        ({}, "stand alone"),
    ],
)
def test_inputs_that_the_template_does_not_take_are_refused(waiting, inputs, why):
    shop, run_id = waiting

    got = shop.say(run_id, "edit", edits=({"inputs": inputs},))

    assert isinstance(got, Refused)
    assert why in got.why


def test_the_template_alone_cannot_use_comments_and_says_what_can(waiting):
    shop, run_id = waiting

    got = shop.say(run_id, "changes", comment="cheaper")

    assert got == Refused("the template planner cannot use comments; edit or change inputs")
    payload = shop.asked(run_id)
    assert "changes" not in payload["allowed_decisions"]
    assert payload["config"]["allow_respond"] is False


def test_an_edited_plan_can_be_rejected(shop):
    run_id = shop.start()
    shop.say(run_id, "edit", edits=(LESS,))
    shop.go(run_id)
    shop.say(run_id, "reject")

    view = shop.go(run_id)

    assert view.ended.ending == "rejected"
    assert WORLD.done == []
