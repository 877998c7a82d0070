from __future__ import annotations

import pytest

from plangate.engine.bench import Bench
from plangate.engine.release import Held, prepare
from plangate.graph.payload import Answer
from plangate.journal.decisions import Decision
from plangate.journal.session import Session
from plangate.nodes.decide import Refused
from plangate.plan.value.frozen import parse
from tests.door.conftest import Shop
from tests.door.ledgers import WORLD, office


@pytest.fixture
def shop(tmp_path):
    with office(tmp_path) as made:
        yield made


ALL = {"S2": "approve", "S3": "approve", "S4": "approve", "S5": "approve"}


def test_it_is_shown_beforehand_what_denying_a_step_takes_with_it(shop):
    payload = shop.asked(shop.start())
    steps = {each["id"]: each for each in payload["steps"]}

    assert payload["confirm"] == ["S2", "S3", "S4", "S5"]
    assert steps["S2"]["denying"] == {
        "drops": ["S3", "S5"],
        "more": 0,
        "cannot_pass": ["rent_is_paid"],
        "may_not_pass": [],
    }
    assert steps["S5"]["denying"]["drops"] == []
    assert "Denying S2 also drops S3, S5" in payload["description"].replace("\\", "")


def test_a_denied_step_and_its_dependants_end_with_why_and_the_rest_runs(shop):
    run_id = shop.start()
    shop.say(run_id, steps={"S2": "deny", "S3": "deny", "S4": "approve", "S5": "deny"})

    view = shop.go(run_id)

    assert WORLD.done == ["pay tax 50"]
    assert {step: (seen.status, seen.why) for step, seen in view.steps.items()} == {
        "S1": ("done", ""),
        "S2": ("cancelled", "denied by ann"),
        "S3": ("cancelled", "denied by ann"),
        "S4": ("done", ""),
        "S5": ("cancelled", "denied by ann"),
    }
    taken = shop.events(run_id, "decision_taken")[0]
    assert (taken.steps, set(taken.denied)) == (("S1", "S4"), {"S2", "S3", "S5"})


def test_the_end_names_who_denied_what_and_which_criteria_that_cost(shop):
    run_id = shop.start()
    shop.say(run_id, steps={**ALL, "S2": "deny", "S3": "deny", "S5": "deny"})

    ended = shop.go(run_id).ended

    assert (ended.ending, ended.verdict) == ("declined", "fail")
    assert "S2 denied by ann" in ended.why
    assert "rent_is_paid" in ended.why


def test_denying_what_no_criterion_needs_still_reaches_the_goal(shop):
    run_id = shop.start()
    shop.say(run_id, steps={**ALL, "S5": "deny"})

    view = shop.go(run_id)

    assert (view.ended.ending, view.ended.verdict) == ("completed", "pass")
    assert "mail bob" not in WORLD.done
    assert view.steps["S5"].status == "cancelled"


REFUSED = [
    ({"S2": "approve"}, "missing: S3, S4, S5"),
    ({**ALL, "S9": "deny"}, "no step S9"),
    ({**ALL, "S2": "deny"}, "S3 cannot be approved: it needs S2"),
    (dict.fromkeys(ALL, "deny"), "reject"),
    ({**ALL, "S1": "deny"}, "S2 cannot be approved: it needs S1"),
]


@pytest.fixture(scope="module")
def waiting(tmp_path_factory):
    """One run for all that changes nothing."""
    with office(tmp_path_factory.mktemp("office")) as made:
        yield made, made.start()


@pytest.mark.parametrize(("steps", "why"), REFUSED, ids=[each[1] for each in REFUSED])
def test_a_review_that_is_not_whole_or_contradicts_itself_changes_nothing(waiting, steps, why):
    shop, run_id = waiting

    got = shop.say(run_id, steps=steps)

    assert isinstance(got, Refused)
    assert why in got.why
    assert shop.runtime.journal.decisions.of_run(run_id) == []


def test_single_steps_go_with_an_approval_only(waiting):
    shop, run_id = waiting

    got = shop.say(run_id, "reject", steps={"S2": "deny"})

    assert "takes no single steps" in got.why


def test_all_approved_step_by_step_is_an_approval_of_all(shop):
    run_id = shop.start()
    shop.say(run_id, steps=ALL)

    assert shop.go(run_id).ended.ending == "completed"
    assert shop.events(run_id, "decision_taken")[0].steps == ()


def test_a_denied_step_never_runs_even_if_something_sends_it_to_the_executor_again(shop):
    run_id = shop.start()
    shop.say(run_id, steps={**ALL, "S5": "deny"})
    shop.go(run_id)
    session = Session.open(shop.runtime.journal, run_id, "test:1:1:x", 5)
    session.view.steps.pop("S5")
    plan = shop.runtime.kit.plan(session)
    bench = _bench(shop, session, plan)

    held = prepare(bench, plan.by_id["S5"])

    session.close()
    assert isinstance(held, Held)
    assert (held.outcome, held.code) == ("denied", "step_not_approved")


def _bench(shop, session, plan):
    kit = shop.runtime.kit
    return Bench(
        plan=plan,
        catalog=kit.catalog(session),
        tools=kit.registry,
        policy=kit.policy,
        rights=kit.rights(session),
        estimate=kit.estimate(session, plan),
        session=session,
        world=kit.world,
        meter=kit.meter(session, plan.budget),
        now=kit.now,
        jitter=kit.jitter,
    )


def test_a_repaired_version_keeps_the_denials_of_the_approval_it_goes_on_under(tmp_path):
    shop = Shop(tmp_path)
    run_id = shop.start("no-logistics-record")
    said = {"decision": "approve", "steps": {"S6": "approve", "S7": "deny"}, "by": "ann"}
    shop.runtime.answer(run_id, parse(Answer, said))

    view = shop.finish(run_id)

    assert (view.version, len(shop.world.payments())) == (2, 1)
    assert (view.steps["S7"].status, view.steps["S7"].why) == ("cancelled", "denied by ann")
    assert (view.ended.ending, view.ended.verdict) == ("completed", "pass")
    shop.close()


def test_an_unknown_effect_can_be_handed_on_and_is_still_asked_about(shop):
    run_id = shop.start()
    WORLD.silent = True
    shop.say(run_id)
    shop.go(run_id)
    assert shop.runtime.question(run_id)[1].kind == "effect"
    shop.say(run_id, "escalate", answer={"to": "finance"})
    shop.go(run_id)

    asked = shop.runtime.question(run_id)[1]
    assert (asked.kind, asked.audience) == ("effect", "finance")
    assert "for finance to decide" in shop.say(run_id, "settle", answer={"state": "done"}).why
    assert isinstance(
        shop.say(run_id, "settle", answer={"state": "done"}, role="finance"), Decision
    )
