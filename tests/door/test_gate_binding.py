"""An approval is bound to what was shown: arguments, objects, answers, people, time."""

from __future__ import annotations

from datetime import timedelta

import pytest

from plangate.journal.decisions import Decision
from plangate.nodes.decide import Counted, Refused
from plangate.plan.value.frozen import digest
from tests.door.ledgers import POLICY, WORLD, office

ASKING = """
template: asks
goal: Ask first
parameters: [{name: cents, type: integer, min: 1, max: 5000}]
steps:
  - id: S1
    objective: Look at the rent
    tool: look
    args: {name: rent}
    success: [{id: seen, level: L1, claim: It is due, rule: result.due > 0}]
  - {id: Q1, objective: Ask which, kind: human, after: [S1],
     question: {audience: customer, type: choice, text: Which one, options: [skip, quarantine]},
     success: [{id: chosen, level: L1, claim: One was chosen, rule: "result.answer != ''"}]}
  - {id: Q2, objective: Ask how many, kind: human, after: [Q1],
     question: {audience: customer, type: number, text: How many,
                details: {cents: "${inputs.cents}"}},
     success: [{id: counted, level: L1, claim: At least one, rule: result.answer >= 0.0}]}
  - {id: Q3, objective: Ask why, kind: human, after: [Q2],
     question: {audience: customer, type: text, text: Why},
     success: [{id: said, level: L1, claim: Words, rule: "result.answer != ''"}]}
  - id: S2
    objective: Pay the rent
    tool: pay
    args: {name: rent, cents: "${inputs.cents}"}
    after: [S1, Q3]
    success: [{id: paid, level: L2, claim: It was paid once, tool: receipt, args: {id: "${S2.id}"},
               rule: observed.count == 1}]
success_criteria:
  - {id: rent_is_paid, level: L2, claim: The rent is paid, tool: receipt, args: {id: "${S2.id}"},
     rule: observed.count == 1}
abort_conditions: [{id: many, text: Many failures, rule: run.failures >= 5}]
budget: {min_level: L1}
"""


@pytest.fixture
def shop(tmp_path):
    with office(tmp_path) as made:
        yield made


@pytest.fixture
def asking(tmp_path):
    with office(tmp_path, template=ASKING) as made:
        yield made


@pytest.fixture(scope="module")
def waiting(tmp_path_factory):
    """One run for all that changes nothing."""
    with office(tmp_path_factory.mktemp("office")) as made:
        yield made, made.start()


def test_arguments_are_shown_as_they_will_run_and_the_decision_holds_their_digest(shop):
    run_id = shop.start()
    steps = {each["id"]: each for each in shop.asked(run_id)["steps"]}

    assert steps["S2"]["args"] == {"name": "rent", "cents": 100}
    assert steps["S2"]["sources"] == {"name": "plan", "cents": "inputs.cents"}
    assert (steps["S2"]["args_known"], steps["S3"]["args_known"]) == (True, False)
    assert steps["S3"]["args"] == {"to": "ann", "about": "${S2.id}"}
    shop.say(run_id)
    shop.go(run_id)
    taken = shop.events(run_id, "decision_taken")[0]
    assert set(taken.args) == {"S2", "S4", "S5"}
    assert taken.args["S2"] == digest({"name": "rent", "cents": 100})
    ran = {each.step: each.args_sha256 for each in shop.events(run_id, "attempt_started")}
    assert all(ran[step] == sha256 for step, sha256 in taken.args.items())


def answered(shop, run_id) -> None:
    """Approve, and answer the three questions."""
    answered_to_the_last(shop, run_id)
    shop.go(run_id)


def answered_to_the_last(shop, run_id) -> None:
    """Approve and answer, and leave the last answer to whoever goes on."""
    shop.say(run_id)
    shop.go(run_id)
    for value in ("skip", 2):
        shop.say(run_id, "answer", answer={"answer": value}, by="customer")
        shop.go(run_id)
    shop.say(run_id, "answer", answer={"answer": "because"}, by="customer")


TYPED = [
    ("Q1", {"answer": "delete"}, "'delete' is not one of skip, quarantine"),
    ("Q1", {"answer": 1}, "answer"),
    ("Q1", {"confirmed": True}, "answer is missing"),
    ("Q1", {}, "answer"),
    ("Q1", "skip", "no answer object"),
    ("Q2", {"answer": "two"}, "number"),
    ("Q2", {"answer": True}, "number"),
    ("Q2", {"answer": None}, "number"),
    ("Q3", {"answer": "  "}, "1 to 10000 characters"),
    ("Q3", {"answer": "x" * 10_001}, "1 to 10000 characters"),
    ("Q3", {"answer": ["a"]}, "answer"),
]


def test_an_ill_typed_answer_is_refused_at_once_and_the_question_stays(asking):
    run_id = asking.start()
    asking.say(run_id)
    view = asking.go(run_id)
    for step, value in (("Q1", "skip"), ("Q2", 2), ("Q3", "because")):
        asked = asking.runtime.question(run_id)[1]
        assert asked.step == step
        for _, bad, why in (each for each in TYPED if each[0] == step):
            got = asking.say(run_id, "answer", answer=bad)
            assert isinstance(got, Refused), (step, bad)
            assert why in got.why, (step, bad)
        assert asking.runtime.journal.decisions.get(asked.question_id) is None
        asking.say(run_id, "answer", answer={"answer": value})
        view = asking.go(run_id)
    assert view.ended.ending == "completed"
    assert not [each for each in asking.events(run_id, "step_ended") if each.status == "failed"]


def test_a_world_that_moved_between_the_yes_and_the_effect_is_asked_about_again(asking):
    run_id = asking.start()
    answered_to_the_last(asking, run_id)
    WORLD.versions["rent"] = 8

    view = asking.go(run_id)

    assert WORLD.done == []
    assert view.approved == {}
    payload = asking.asked(run_id)
    assert payload["kind"] == "approval"
    assert payload["moved"] == [{"object": "account://rent", "was": "7", "now": "8"}]
    assert "was 7, is 8 now" in payload["description"].replace("\\", "")
    asking.say(run_id)
    assert asking.go(run_id).ended.ending == "completed"
    assert WORLD.done == ["pay rent 100"]


def test_what_a_stand_in_read_before_the_yes_is_read_again_as_well(tmp_path):
    routes = ", ".join(
        f"{{on: {on}, action: fallback, step: S1b}}" for on in ("transient", "permanent")
    )
    template = ASKING.replace(
        "    args: {name: rent}\n    success:",
        f"    args: {{name: moved_out}}\n    routes: [{routes}]\n    success:",
    ).replace(
        "  - {id: Q1,",
        "  - {id: S1b, objective: Look elsewhere, tool: look, args: {name: rent},\n"
        "     success: [{id: there, level: L1, claim: It is due, rule: result.due > 0}]}\n"
        "  - {id: Q1,",
        1,
    )
    with office(tmp_path, template=template) as asking:
        run_id = asking.start()
        answered_to_the_last(asking, run_id)
        assert asking.runtime.view(run_id).steps["S1"].status == "handed_over"
        WORLD.versions["rent"] = 8

        asking.go(run_id)

        assert WORLD.done == []
        moved = [{"object": "account://rent", "was": "7", "now": "8"}]
        assert asking.asked(run_id)["moved"] == moved


def test_what_cannot_be_read_again_is_not_taken_for_unchanged(asking):
    run_id = asking.start()
    answered_to_the_last(asking, run_id)
    WORLD.blind = True
    asking.go(run_id)

    assert asking.asked(run_id)["moved"] == [{"object": "account://rent", "was": "7", "now": None}]
    asking.say(run_id)
    assert asking.go(run_id).ended.ending == "completed"


def test_a_world_that_stands_is_read_once_more_and_nobody_is_asked(asking):
    run_id = asking.start()
    answered(asking, run_id)

    assert asking.runtime.view(run_id).ended.ending == "completed"
    assert WORLD.reads == ["rent", "rent"]


def test_a_policy_can_leave_the_second_look_out(tmp_path):
    policy = POLICY.replace("schema = 1", "schema = 1\nreread = false")
    with office(tmp_path, template=ASKING, policy=policy) as made:
        run_id = made.start()
        answered(made, run_id)

        assert WORLD.reads == ["rent"]


QUORUM = POLICY + '[[quorum]]\ntool = "pay"\nn = 2\nroles = ["finance", "lead"]\n'


def test_two_different_people_have_to_approve_and_each_is_recorded(tmp_path):
    with office(tmp_path, policy=QUORUM) as made:
        run_id = made.start()
        payload = made.asked(run_id)
        assert (payload["quorum"], payload["roles"]) == (2, ["finance", "lead"])

        nobody = made.say(run_id)
        first = made.say(run_id, role="finance")
        again = made.say(run_id, role="lead", by="ANN ")
        assert (isinstance(nobody, Refused), first, again) == (
            True,
            Counted("ann", 1, 2),
            Counted("ANN", 1, 2),
        )
        assert made.go(run_id).pending_questions
        second = made.say(run_id, role="lead", by="bob")
        view = made.go(run_id)

        assert isinstance(second, Decision)
        assert view.ended.ending == "completed"
        assert view.decisions[f"{run_id}-q1"].by == "ann, bob"


def test_an_approval_by_nobody_in_particular_does_not_count_among_several(tmp_path):
    with office(tmp_path, policy=QUORUM) as made:
        got = made.say(made.start(), role="lead", by=" ")

        assert "has to say who gives it" in got.why


def test_what_one_of_two_denies_does_not_run(tmp_path):
    with office(tmp_path, policy=QUORUM) as made:
        run_id = made.start()
        made.say(run_id, role="lead", by="ann")
        steps = {"S2": "approve", "S3": "approve", "S4": "approve", "S5": "deny"}
        made.say(run_id, role="lead", by="bob", steps=steps)

        view = made.go(run_id)

        assert view.steps["S5"].why == "denied by bob"
        assert "mail bob" not in WORLD.done


def test_one_no_decides_whoever_says_it(tmp_path):
    with office(tmp_path, policy=QUORUM) as made:
        run_id = made.start()
        made.say(run_id, role="lead", by="ann")
        made.say(run_id, "reject", by="eve")

        late = made.say(run_id, role="lead", by="bob")

        assert made.go(run_id).ended.ending == "rejected"
        assert "decided already: reject by eve" in late.why


def test_a_question_handed_on_is_for_the_other_role_with_hash_and_expiry_as_they_were(shop):
    run_id = shop.start()
    before = shop.runtime.question(run_id)[1]
    shop.say(run_id, "escalate", answer={"to": "finance"}, comment="too much for me")
    shop.go(run_id)

    after = shop.runtime.question(run_id)[1]
    assert (after.audience, after.roles, after.question_id) == (
        "finance", ("finance",), f"{run_id}-q2",
    )  # fmt: skip
    assert (after.content_hash, after.expires_at) == (before.content_hash, before.expires_at)
    assert WORLD.done == []
    assert "finance" in shop.say(run_id).why
    shop.say(run_id, role="finance", by="fay")
    view = shop.go(run_id)
    assert view.ended.ending == "completed"
    assert [(each.decision, each.by) for each in view.decisions.values()] == [
        ("escalate", "ann"),
        ("approve", "fay"),
    ]


@pytest.mark.parametrize("to", [{}, {"to": ""}, {"to": "two words"}, {"to": 1}])
def test_a_question_is_handed_on_to_a_role_and_to_nothing_else(waiting, to):
    assert isinstance(waiting[0].say(waiting[1], "escalate", answer=to), Refused)


def test_more_is_read_on_request_and_the_question_is_asked_again_with_it(shop):
    run_id = shop.start()
    shop.say(run_id, "request_more_info", answer={"tool": "look", "args": {"name": "tax"}})
    shop.go(run_id)

    payload = shop.asked(run_id)
    assert payload["question_id"] == f"{run_id}-q2"
    assert payload["info"] == [
        {
            "tool": "look",
            "args": {"name": "tax"},
            "output": {"name": "tax", "version": 3, "due": 100},
            "says": "",
            "evidence": ["account://tax?version=3"],
        }
    ]
    assert (WORLD.done, WORLD.reads) == ([], ["tax"])
    shop.say(run_id)
    assert shop.go(run_id).ended.ending == "completed"


def test_a_read_that_fails_is_told(shop):
    run_id = shop.start()
    WORLD.blind = True
    shop.say(run_id, "request_more_info", answer=[{"tool": "look", "args": {"name": "tax"}}])
    shop.go(run_id)

    assert shop.asked(run_id)["info"][0]["output"] is None
    assert shop.asked(run_id)["info"][0]["says"]


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        ({"tool": "pay", "args": {"name": "tax", "cents": 1}}, "acts"),
        ({"tool": "wire"}, "no tool of this run; reads: look, receipt"),
        ({"tool": "look", "args": {"name": 1}}, "name"),
        ({"tool": "look", "args": {}}, "name"),
        ({"args": {}}, "a read is named"),
        ("look", "a read is named"),
        ([], "1 to 5"),
        ([{"tool": "look", "args": {"name": "tax"}}] * 6, "1 to 5"),
        (None, "a read is named"),
    ],
)
def test_more_info_is_only_what_reads_and_fits(waiting, wanted, why):
    got = waiting[0].say(waiting[1], "request_more_info", answer=wanted)

    assert isinstance(got, Refused)
    assert why in got.why


def test_time_is_judged_when_it_is_decided_and_again_before_the_effect(asking):
    run_id = asking.start()
    answered_to_the_last(asking, run_id)
    later = asking.another()
    at = later.kit.now() + timedelta(hours=2)
    object.__setattr__(later.kit, "now", lambda: at)

    asking.go(run_id, later)

    assert WORLD.done == []
    assert asking.runtime.question(run_id)[1].kind == "approval"
    later.close()


def test_a_customer_is_asked_anew_where_the_question_shows_something_else(asking):
    run_id = asking.start()
    answered_to_the_last(asking, run_id)
    later = asking.another()
    at = later.kit.now() + timedelta(hours=2)
    object.__setattr__(later.kit, "now", lambda: at)
    asking.go(run_id, later)  # the approval expired, so it is asked for again
    later.close()
    asking.say(run_id, "edit", edits=[{"inputs": {"cents": 300}}])
    asking.go(run_id)
    asking.say(run_id)

    asking.go(run_id)

    assert asking.runtime.question(run_id)[1].step == "Q2"
    assert asking.asked(run_id)["details"] == {"cents": 300}
    assert WORLD.done == []
