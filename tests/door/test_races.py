"""Two things at once, by name; those of one step are in tests/engine/test_overtaken.py."""

from __future__ import annotations

import pytest

from plangate.journal.events import PlanProposed
from plangate.journal.points import watch
from plangate.nodes.decide import Refused
from plangate.plan.revise.operations import Patch, Update
from plangate.plan.revise.patch import apply
from plangate.plan.value.frozen import parse
from plangate.plan.value.plan import Author, Plan
from tests.door.holds import WORLD, desk

READ_FIRST = """
template: trip
goal: Hold a seat for {holder}
parameters: [{name: holder, type: string}]
steps:
  - {id: S1, objective: Look, tool: look, args: {seat: A1},
     success: [{id: free, level: L1, claim: It is free, rule: "result.holder == ''"}]}
  - {id: S2, objective: Hold it, tool: hold, args: {seat: "${S1.seat}", holder: "${inputs.holder}"},
     success: [{id: one, level: L2, claim: It is held, tool: look, args: {seat: "${S2.seat}"},
                rule: observed.holder == inputs.holder}]}
  - {id: S3, objective: Note it, tool: note, args: {text: "${S2.seat}"},
     success: [{id: noted, level: L1, claim: It is noted, rule: result.text != ''}]}
success_criteria:
  - {id: held, level: L2, claim: The seat is held, tool: look, args: {seat: "${S2.seat}"},
     rule: observed.holder == inputs.holder}
abort_conditions: [{id: many, text: Many failures, rule: run.failures >= 5}]
"""
OTHER_SEAT = """
repairs:
  - code: refused
    tool: note
    category: wrong_seat
    updates: [{capability: look, args: {seat: C3}}]
"""


class Died(Exception):
    pass


@pytest.fixture
def trips(tmp_path):
    with desk(tmp_path) as made:
        yield made


@pytest.fixture
def repairing(tmp_path):
    with desk(tmp_path, templates=(READ_FIRST,), repairs=OTHER_SEAT) as made:
        yield made


def patch(trips, run_id):
    """The next version of the plan, as the owner of the run saves it."""
    with trips.runtime.hold(run_id) as session:
        old = parse(Plan, session.load(session.view.plans[1].plan))
        change = Patch(operations=(Update(step="S1", args={"seat": "C3"}),))
        author = Author(kind="replanner", name="rule:test")
        made = apply(old, change, author, done=frozenset())
        session.emit(
            PlanProposed(
                version=2,
                plan=session.put(made.plan.model_dump(mode="json")),
                content_hash=made.plan.content_hash,
                parent_hash=old.content_hash,
                author=author,
            )
        )


@pytest.mark.parametrize("first", ["approval", "patch"])
def test_approval_at_the_same_moment_as_a_patch_approves_no_more_than_was_shown(trips, first):
    run_id = trips.start()
    question = trips.runtime.question(run_id)[1]

    if first == "approval":
        trips.say(question.question_id)
        patch(trips, run_id)
    else:
        patch(trips, run_id)
        late = trips.say(question.question_id)
        assert isinstance(late, Refused)
        assert "plan version 1; the plan is at 2 now" in late.why
    view = trips.go(run_id)

    [asked] = view.pending_questions
    assert (asked.kind, asked.plan_version, view.approved) == ("approval", 2, {})
    assert WORLD.done == []
    assert trips.go(run_id, "approve").version == 2
    assert WORLD.done == ["hold C3", "hold B2"]


def test_death_before_the_reflection_is_saved_leaves_one_reflection(repairing):
    run_id = repairing.start()
    WORLD.refused = {"note A1"}

    def die(point):
        if point == "reflection.made":
            raise Died

    watch(die)
    try:
        with pytest.raises(Died):
            repairing.go(run_id, "approve")
    finally:
        watch(None)
    assert repairing.events(run_id, "reflected") == []
    repairing.go(run_id)

    assert len(repairing.events(run_id, "reflected")) == 1
    assert len(repairing.events(run_id, "trigger_fired")) == 2, "the failure and the repair's own"


def test_a_done_effect_on_an_invalidated_result_is_escalated_never_silently_kept_never_rerun(
    repairing,
):
    run_id = repairing.start()
    WORLD.refused = {"note A1"}

    view = repairing.go(run_id, "approve")
    [asked] = view.pending_questions
    fired = view.triggers[-1]
    packet = repairing.runtime.journal.artifacts.get(asked.payload)
    view = repairing.go(run_id, "stop")
    report = repairing.runtime.journal.artifacts.get(view.ended.report)

    assert (asked.kind, fired.kind) == ("escalation", "repair_failed")
    assert "done effects would lose their ground: S2" in fired.says
    assert "S2" in str(packet)
    assert (list(view.plans), WORLD.done) == ([1], ["hold A1"])
    assert [each["step"] for each in report["compensation_candidates"]] == ["S2"]
