from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plangate.plan.catalog import Catalog, Effect, Labels, ToolSpec
from plangate.plan.facts import Facts, Rights
from plangate.plan.flow.authority import authority_of, grown
from plangate.plan.policy import Policy
from plangate.plan.value.frozen import parse
from plangate.plan.value.plan import Plan

OBJECT = {"type": "object"}


def spec(name: str, effect: Effect, **more: object) -> ToolSpec:
    key = {"key": f"{name}:{{to}}", "scope": "goal"} if effect.acts else {}
    said = {"name": name, "summary": "s", "effect": effect, "params": OBJECT, "output": OBJECT}
    return ToolSpec(**{**said, **key, **more})


CATALOG = Catalog.of(
    [
        spec("look", Effect.READ),
        spec("decide", Effect.READ),
        spec("prove", Effect.READ),
        spec("peek", Effect.READ, labels=Labels(confidentiality=("pii",))),
        spec("ask_out", Effect.READ, external=True),
        spec("pay", Effect.IRREVERSIBLE),
        spec("mail", Effect.WRITE),
    ]
)


def base() -> dict[str, Any]:
    """A plan as plain data: look, decide, ask, pay, prove."""
    check = {"level": "L1", "claim": "c", "rule": "result.ok"}
    return {
        "goal_id": "g",
        "goal": "Pay",
        "task_type": "t",
        "inputs": {"to": "ann", "cents": 500},
        "author": {"kind": "template"},
        "steps": [
            {"id": "S1", "objective": "o", "tool": "look", "args": {"to": "${inputs.to}"},
             "success": [{"id": "seen", **check}]},
            {"id": "S2", "objective": "o", "tool": "decide",
             "args": {"found": "${S1.found}", "limit": 900},
             "success": [{"id": "due", **check}]},
            {"id": "S3", "objective": "o", "kind": "human", "after": ["S2"],
             "question": {"audience": "customer", "type": "confirm", "text": "Pay?",
                          "details": {"cents": "${S2.cents}"}}},
            {"id": "S4", "objective": "o", "tool": "pay", "after": ["S3"],
             "args": {"to": "${inputs.to}", "cents": 500, "fee": "${S2.fee}"},
             "when": "steps.S2.output.due", "preconditions": ["steps.S3.output.confirmed"],
             "approval": "always", "compensation": None,
             "success": [{"id": "paid", "level": "L2", "claim": "c", "tool": "prove",
                          "rule": "observed.paid"}],
             "routes": [{"on": "unknown", "action": "ask"}]},
            {"id": "S5", "objective": "o", "tool": "prove", "after": ["S4"]},
        ],
        "success_criteria": [{"id": "goal_met", **check, "rule": "steps.S5.output.ok"}],
        "constraints": [{"id": "once", "text": "Only once", "source": "user"}],
        "abort_conditions": [{"id": "many", "text": "t", "rule": "run.failures > 3"}],
        "replan_conditions": [{"id": "odd", "text": "t", "rule": "run.failures > 1"}],
        "budget": {"max_usd": "1.00", "max_tokens": 100, "max_replans": 2},
    }  # fmt: skip


def change(**paths: Any) -> Plan:
    """Return the base plan with values set by `steps__3__args__cents=...`; `...` deletes."""
    said = base()
    for path, value in paths.items():
        here: Any = said
        *way, last = [int(part) if part.isdecimal() else part for part in path.split("__")]
        for part in way:
            here = here[part]
        if value is ...:
            del here[last]
        else:
            here[last] = value
    return parse(Plan, said)


OLD = change()
LOOK_MORE = {"id": "S6", "objective": "o", "tool": "look", "args": {"to": "bob"}}
MAIL = {"id": "S6", "objective": "o", "tool": "mail", "args": {"to": "bob"}}


def with_step(step: dict[str, Any]) -> Plan:
    return change(steps=[*base()["steps"], step])


GREW = {
    "a new effect": (with_step(MAIL), "S6 is a new effect: mail (write)"),
    "a second payment": (
        with_step({**base()["steps"][3], "id": "S6", "success": []}),
        "S6 is a new effect: pay (irreversible)",
    ),
    "an unknown tool": (with_step({**MAIL, "tool": "new"}), "new effect: new (unknown"),
    "a read that sends outside": (with_step({**MAIL, "tool": "ask_out"}), "new effect: ask_out"),
    "wider data": (with_step({**LOOK_MORE, "tool": "peek"}), "data labelled pii"),
    "a larger amount": (change(steps__3__args__cents=501), "cents is larger (501, was 500)"),
    "another receiver": (change(steps__3__args__to="bob"), "S4 pay: to is another value"),
    "a receiver from a result": (change(steps__3__args__to="${S1.to}"), "S4 pay: to is another"),
    "another input": (change(inputs__to="bob"), "S4 pay: to is another value"),
    "an amount known later": (change(steps__3__args__cents="${S2.cents}"), "cents is another"),
    "a fee from elsewhere": (change(steps__3__args__fee="${S1.fee}"), "S4 pay: fee is another"),
    "a new argument": (change(steps__3__args__bonus=1), "S4 pay: bonus is another value"),
    "another limit upstream": (change(steps__1__args__limit=9000), "S4 pay: fee is another"),
    "another thing decided on": (change(steps__1__args__found=True), "S2 decide: found is another"),
    "a proof of another thing": (change(steps__4__args={"to": "bob"}), "S5 prove: to is another"),
    "more claims": (change(steps__3__claims=["till:1"]), "writes till:1 as well"),
    "a dropped check of a step": (change(steps__1__success=[]), "check due of S2 is dropped"),
    "a dropped criterion": (change(success_criteria=[]), "check goal_met of the goal is dropped"),
    "a weaker check": (change(steps__3__success__0__level="L1"), "paid of S4 is weaker (L1, was"),
    "another rule": (change(steps__1__success__0__rule="true"), "due of S2 has another rule"),
    "a check of another step": (
        change(steps__1__success=[], steps__0__success__0__id="due"),
        "check due of S2 is another check now",
    ),
    "a dropped constraint": (change(constraints=[]), "constraint once is dropped"),
    "a changed constraint": (change(constraints__0__text="Twice"), "constraint once is changed"),
    "a dropped abort condition": (change(abort_conditions=[]), "abort condition many is dropped"),
    "a later abort": (
        change(abort_conditions__0__rule="run.failures > 9"),
        "abort condition many stops less than it did (run.failures > 9, was run.failures > 3)",
    ),
    "a later replan": (change(replan_conditions__0__rule="run.failures > 2"), "odd stops less"),
    "a criterion that asks for less": (
        change(success_criteria__0__rule="steps.S5.output.ok || true"),
        "check goal_met of the goal is looser",
    ),
    "another criterion": (
        change(success_criteria__0__rule="steps.S4.output.ok"),
        "check goal_met of the goal has another rule",
    ),
    "other words for a check": (change(success_criteria__0__claim="d"), "is another check now"),
    "a dropped replan condition": (change(replan_conditions=[]), "replan condition odd is dropped"),
    "a dropped question": (
        change(steps__2={**LOOK_MORE, "id": "S3", "after": ["S2"]}),
        "the question S3 to customer is dropped",
    ),
    "another question": (
        change(steps__2__question__text="Ok?"),
        "the question to customer changed",
    ),
    "another person": (change(steps__2__question__audience="bot"), "S3 to customer is dropped"),
    "other values shown": (
        change(steps__2__question__details={"cents": "${S1.cents}"}),
        "or shows other values",
    ),
    "no waiting for the person": (change(steps__3__after=["S2"]), "S4 no longer waits for S3"),
    "no waiting for the payment": (change(steps__4__after=["S3"]), "S5 no longer waits for S4"),
    "a proof that is gone": (
        change(steps__4=..., success_criteria=[]),
        "prove (S5), which came after S4, is gone",
    ),
    "a look that is gone": (
        change(
            steps=[
                {**base()["steps"][1], "args": {"found": True, "limit": 900}},
                *base()["steps"][2:],
            ]
        ),
        "S4 no longer waits for look (S1); nothing took its place",
    ),
    "a dropped condition": (change(steps__3__when=None), "its condition `when` changed"),
    "another condition": (change(steps__3__when="true"), "its condition `when` changed"),
    "a dropped precondition": (change(steps__3__preconditions=[]), "a precondition is dropped"),
    "a dropped approval": (change(steps__3__approval="inherit"), "its approval is dropped"),
    "a looser join": (change(steps__3__join={"mode": "any"}), "its join changed"),
    "a loop": (change(steps__3__for_each="${S1.all}"), "it runs over another list"),
    "a retry": (
        change(steps__3__routes=[{"on": "unknown", "action": "retry"}]),
        "a new route for unknown (retry)",
    ),
    "a dropped route": (change(steps__3__routes=[]), "the route for unknown (ask) is dropped"),
    "more money": (change(budget__max_usd="1.01"), "max_usd is larger (1.01, was 1.00)"),
    "no limit": (change(budget__max_tokens=...), "max_tokens is larger (no limit, was 100)"),
    "more replans": (change(budget__max_replans=3), "max_replans is larger"),
    "another goal": (change(goal="Pay twice"), "the goal is another one"),
}


@pytest.mark.parametrize(("new", "says"), GREW.values(), ids=GREW.keys())
def test_the_boundary_grows_with(new, says):
    assert any(says in each for each in grown(OLD, new, CATALOG)), grown(OLD, new, CATALOG)


INSIDE = {
    "a smaller amount": change(steps__3__args__cents=499),
    "one more look": with_step(LOOK_MORE),
    "an earlier abort": change(abort_conditions__0__rule="run.failures > 2"),
    "an abort for more reasons": change(
        abort_conditions__0__rule="run.failures > 3 || run.replans > 1"
    ),
    "a criterion that asks for more": change(
        success_criteria__0__rule="steps.S5.output.ok && steps.S4.output.ok"
    ),
    "a stricter precondition": change(
        steps__3__preconditions=["steps.S3.output.confirmed && steps.S2.output.due"]
    ),
    "a stronger check": change(steps__1__success__0__level="L2"),
    "one more check": change(
        steps__0__success=[
            *base()["steps"][0]["success"],
            {**base()["success_criteria"][0], "id": "x"},
        ]
    ),
    "one more constraint": change(
        constraints=[*base()["constraints"], {"id": "c2", "text": "t", "source": "user"}]
    ),
    "less money": change(budget__max_usd="0.99"),
    "other words": change(steps__3__objective="Pay her"),
    "other facts": change(steps__1__required_facts=["order"]),
    "one more question": change(
        steps=[*base()["steps"], {**base()["steps"][2], "id": "S7", "after": ["S5"]}]
    ),
    "one more route to a person": change(
        steps__3__routes=[*base()["steps"][3]["routes"], {"on": "denied", "action": "abort"}]
    ),
    "a later write": change(steps__3__after=["S3", "S1"]),
}


@pytest.mark.parametrize("new", INSIDE.values(), ids=INSIDE.keys())
def test_the_boundary_does_not_grow_with(new):
    assert grown(OLD, new, CATALOG) == ()


def test_a_replaced_read_is_inside_if_its_check_goes_along():
    steps = base()["steps"]
    steps[0] = {**steps[0], "id": "S1b", "tool": "peek"}
    steps[1]["args"]["found"] = "${S1b.found}"
    clear = Catalog.of(
        [each.model_copy(update={"labels": Labels()}) for each in CATALOG.tools.values()]
    )

    assert grown(OLD, change(steps=steps), clear) == ()
    steps[0]["success"] = []
    assert grown(OLD, change(steps=steps), clear) == ("check seen of S1 is dropped (c)",)


def test_a_renamed_effect_is_the_same_effect_but_its_check_must_follow_it():
    steps = base()["steps"]
    steps[3]["id"], steps[4]["after"] = "S4x", ["S4x"]
    moved = [dict(each) for each in steps]
    moved[4]["success"], moved[3]["success"] = moved[3]["success"], []

    assert grown(OLD, change(steps=steps), CATALOG) == ()
    assert grown(OLD, change(steps=moved), CATALOG) == ("check paid of S4 is another check now",)


def test_two_writes_that_were_serial_may_not_become_parallel():
    mail = {**MAIL, "after": ["S4"]}

    found = grown(with_step(mail), with_step({**mail, "after": ["S3"]}), CATALOG)

    assert found == ("S6 no longer waits for S4",)


def test_without_contracts_every_tool_may_be_an_effect():
    assert "S6 is a new effect: look (unknown, outside)" in grown(OLD, with_step(LOOK_MORE), None)


def test_an_authority_names_effects_people_checks_and_limits():
    facts = Facts(
        catalog=CATALOG,
        rights=Rights(principal="ann"),
        policy=Policy(),
        now=datetime(2026, 1, 1, tzinfo=UTC),
    )

    found = authority_of(OLD, facts)

    assert [(each.step, each.tool, each.effect) for each in found.grants] == [
        ("S4", "pay", "irreversible")
    ]
    assert dict(found.grants[0].limits) == {"cents": 500}
    assert found.confirmations == ("S3: human:customer",)
    assert found.checks["paid"] == "L2"
    assert found.obligations == ("once", "many", "odd")
    assert found.budget.max_usd == Decimal("1.00")


plans = st.sampled_from([OLD, *(new for new, _ in GREW.values()), *INSIDE.values()])


@given(plans)
def test_a_plan_never_outgrows_itself(plan: Plan):
    again = parse(Plan, {**plan.model_dump(mode="json"), "version": 2})

    assert grown(plan, again, CATALOG) == ()
    assert grown(plan, again, None) == ()


@settings(max_examples=40)
@given(plans, st.data())
def test_a_removed_check_always_grows_the_boundary(plan: Plan, data: st.DataObject):
    said = plan.model_dump(mode="json")
    places = [said["success_criteria"], *(step["success"] for step in said["steps"])]
    checks = data.draw(st.sampled_from([place for place in places if place] or [[]]))
    if checks:
        dropped = checks.pop()

        found = grown(plan, parse(Plan, said), CATALOG)

        assert any(f"check {dropped['id']}" in each for each in found)


@pytest.mark.parametrize(
    ("was", "now", "has_grown"),
    [(5, 6, True), (5, None, True), (5, 5, False), (5, 4, False)],
)
def test_a_wider_bound_of_a_list_or_none_is_growth(was, now, has_grown):
    old = change(steps__3__for_each="${S1.all}", steps__3__max_items=was)
    new = change(steps__3__for_each="${S1.all}", steps__3__max_items=now)

    found = grown(old, new, CATALOG)

    assert found == (("S4: it may run more often",) if has_grown else ())


def test_a_check_that_no_longer_doubts_contradictions_is_another_check():
    doubts = OLD.success_criteria[0].model_copy(update={"conflict": "run.failures > 0"})
    old = OLD.model_copy(update={"success_criteria": (doubts, *OLD.success_criteria[1:])})

    assert any("is another check now" in each for each in grown(old, OLD, CATALOG))
