"""A list from the gate to the report: what is approved is a bound, or the very elements."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest

from plangate import Found, tool
from plangate.cli.snapshot import snapshot
from plangate.plan.value.frozen import digest
from plangate.replay.drive import replay
from tests.door.ledgers import WORLD, look, mail, office, pay, receipt
from tests.replay.test_replay import Killed, killed_at


@dataclass
class Bill:
    name: str
    cents: int


@dataclass
class Bills:
    version: int
    bills: list[Bill]


@tool(effect="read", evidence=("bills://all?version={version}",))
def bills() -> Bills:
    """Read what is to be paid."""
    return Bills(WORLD.versions["rent"], [Bill(name, 10) for name in DUE])


def was_paid(_key: str, args: Any, _context: object) -> Found:
    told = f"pay {args['name']} {args['cents']}"
    return Found(told in WORLD.done, output={"id": told, "count": 1})


honest = tool(
    effect="irreversible", key="pay:{name}:{cents}", scope="goal", writes=("account:{name}",),
    reconcile=was_paid,
)(pay.body)  # fmt: skip
DUE = ["rent", "tax", "gas"]
TEMPLATE = """
template: bills
goal: Pay all bills
parameters: [{name: cents, type: integer}]
steps:
  - id: S1
    objective: Read the bills
    tool: bills
    success: [{id: read, level: L1, claim: There is a list, rule: result.version > 0}]
  - {id: Q1, objective: Ask, kind: human,
     question: {audience: customer, type: confirm, text: All of them,
                details: {bills: "${S1.bills}"}}}
  - id: S2
    objective: Pay each bill
    tool: pay
    for_each: "${S1.bills}"
    max_items: 3
    args: {name: "${item.name}", cents: "${item.cents}"}
    after: [Q1]
    success: [{id: paid, level: L2, claim: It was paid once, tool: receipt, args: {id: "${S2.id}"},
               rule: observed.count == 1}]
success_criteria:
  - {id: all_paid, level: L2, claim: The first is paid, tool: receipt, args: {id: "${S2.0.id}"},
     rule: observed.count == 1}
abort_conditions: [{id: many, text: Many failures, rule: run.failures >= 5}]
budget: {min_level: L1}
"""
PAID = ["pay rent 10", "pay tax 10", "pay gas 10"]


@pytest.fixture
def desk(tmp_path):
    with office(tmp_path, template=TEMPLATE, tools=(bills, look, receipt, pay, mail)) as made:
        yield made


@pytest.fixture
def honest_desk(tmp_path):
    """The same with an outside that knows what was paid."""
    with office(tmp_path, template=TEMPLATE, tools=(bills, look, receipt, honest, mail)) as made:
        yield made


def asked_for_the_customer(desk) -> str:
    run_id = desk.start()
    desk.say(run_id)
    desk.go(run_id)
    return run_id


def confirmed(desk, run_id):
    desk.say(run_id, "answer", answer={"confirmed": True}, by="customer")
    return desk.go(run_id)


def test_a_list_that_is_not_known_yet_is_approved_by_its_bound(desk):
    run_id = desk.start()

    payload = desk.asked(run_id)

    loop = next(each for each in payload["steps"] if each["id"] == "S2")["for_each"]
    assert loop == {"over": "${S1.bills}", "max_items": 3, "count": None, "elements": None}
    assert "at most 3; which ones is not known yet, and any of them" in payload["description"]
    assert desk.events(run_id, "question_asked")[0].args == {}


def test_a_run_over_a_list_ends_well_is_told_sensibly_and_replays_alike(desk):
    run_id = asked_for_the_customer(desk)

    view = confirmed(desk, run_id)

    assert (view.ended.ending, view.ended.verdict) == ("completed", "pass")
    assert sorted(WORLD.done) == sorted(PAID)
    report = desk.runtime.journal.artifacts.get(view.ended.report)
    assert report["claims"] == [
        {"says": "S2 pay is done for 3 elements", "holds": True, "record": "3 of 3 done"}
    ]
    shown = snapshot(desk.runtime.journal, desk.runtime.journal.runs.get(run_id), view)
    step = next(each for each in shown["steps"] if each["step"] == "S2")
    assert (step["elements"], step["attempts"], len(step["checks"])) == (3, 3, 3)
    replayed = replay(desk.runtime.journal, run_id, desk.runtime.agent)
    assert [each.line for each in replayed.differences] == []
    assert sorted(WORLD.done) == sorted(PAID)


def test_a_list_that_is_known_is_approved_element_by_element(desk):
    run_id = asked_for_the_customer(desk)
    WORLD.versions["rent"] += 1  # so that the first yes is void, and the gate asks once more
    confirmed(desk, run_id)

    payload = desk.asked(run_id)

    loop = next(each for each in payload["steps"] if each["id"] == "S2")["for_each"]
    args = [{"name": name, "cents": 10} for name in DUE]
    assert loop["count"] == 3
    assert loop["elements"] == [{"args": each, "args_sha256": digest(each)} for each in args]
    assert "there are 3, and no others would run" in payload["description"]
    bound = desk.events(run_id, "question_asked")[-1].args
    assert [bound[f"S2.{n}"] for n in (1, 2, 3)] == [digest(each) for each in args]
    assert WORLD.done == []
    desk.say(run_id)
    assert desk.go(run_id).ended.verdict == "pass"
    assert desk.events(run_id, "decision_taken")[-1].args == bound
    assert sorted(WORLD.done) == sorted(PAID)


def test_a_run_that_a_person_stops_names_each_element_that_may_stand(desk):
    WORLD.silent = True
    run_id = asked_for_the_customer(desk)
    confirmed(desk, run_id)
    question = desk.runtime.question(run_id)[1]

    desk.say(run_id, "stop")
    report = desk.runtime.journal.artifacts.get(desk.go(run_id).ended.report)

    assert (question.kind, question.step) == ("effect", "S2")
    assert {each["business_key"] for each in report["compensation_candidates"]} == {
        f"pay:{name}:10" for name in DUE
    }


@pytest.mark.slow
@pytest.mark.parametrize("point", ["attempt.started", "effect.dispatching", "effect.returned"])
def test_a_list_cut_by_a_kill_pays_nothing_twice_and_replays_alike(honest_desk, point):
    desk = honest_desk
    run_id = asked_for_the_customer(desk)
    desk.say(run_id, "answer", answer={"confirmed": True}, by="customer")
    with pytest.raises(Killed):
        killed_at(point, desk, run_id)
    cut = replay(desk.runtime.journal, run_id, desk.runtime.agent)

    view = desk.go(run_id)

    replayed = replay(desk.runtime.journal, run_id, desk.runtime.agent)
    assert (view.ended.verdict, Counter(WORLD.done)) == ("pass", Counter(PAID))
    assert [each.line for each in replayed.differences] == []
    # Elements that went on beside it may not have been on the disk yet when their owner died.
    beyond = [each.line for each in cut.differences]
    assert [each for each in beyond if ": was nothing, would be " not in each] == []
