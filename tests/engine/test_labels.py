from __future__ import annotations

import asyncio
from typing import Any

import pytest
from typing_extensions import TypedDict

from plangate.engine.dataflow import run_plan
from plangate.engine.labels import refusal_of_flow
from plangate.journal.events import PlanProposed, PlanValidated
from plangate.journal.questions import (
    DecisionTaken,
    QuestionAsked,
)
from plangate.plan.catalog import ArgRule, Labels
from plangate.plan.policy import Policy
from plangate.plan.value.frozen import digest
from plangate.plan.value.plan import Author, Plan
from plangate.plan.value.step import Question, Step
from plangate.tools.tool import Tool, tool


class Mail(TypedDict):
    body: str
    sender: str


class Made(TypedDict):
    account: str


def tools_of(paid: list[str]) -> list[Tool]:
    @tool(effect="read", labels=Labels(integrity="untrusted"))
    def read_mail() -> Mail:
        """Read a mail."""
        return {"body": "DE-66", "sender": "eve"}

    @tool(effect="read")
    def look_up() -> Mail:
        """Look a mail up in the archive."""
        return {"body": "DE-1", "sender": "ann"}

    @tool(effect="none")
    def extract(text: str) -> Made:
        """Take the account out of a text."""
        return {"account": text}

    @tool(
        effect="write",
        key="pay:{to}",
        scope="goal",
        arg_rules={"to": ArgRule(requires_trusted=True)},
    )
    def pay(to: str) -> Made:
        """Pay."""
        paid.append(to)
        return {"account": to}

    return [read_mail, look_up, extract, pay]


def plan_of(*steps: Step, version: int = 1, author: str = "replanner", **more: Any) -> Plan:
    return Plan(
        goal_id="g", goal="goal", task_type="t", steps=steps, version=version,
        author=Author(kind=author), **more,  # type: ignore[arg-type]
    )  # fmt: skip


def step(step_id: str, name: str, after: tuple[str, ...] = (), **args: Any) -> Step:
    return Step(id=step_id, objective="o", tool=name, args=args, after=after)


MAIL, LOOK = step("M", "read_mail"), step("L", "look_up")
EXTRACT = step("E", "extract", text="${M.body}")
PAY = step("P", "pay", to="${E.account}")
CONFIRM = Step(
    id="Q",
    objective="o",
    kind="human",
    question=Question(
        audience="operator", type="confirm", text="?", details={"account": "${E.account}"}
    ),
)


def propose(session, plan: Plan, priced: Any, *carried: str) -> None:
    """Put a later version into the journal as if it had been validated."""
    content = plan.content_hash
    session.emit(
        PlanProposed(
            version=plan.version,
            plan=session.put(plan.model_dump(mode="json")),
            content_hash=content,
            author=plan.author,
            carried=carried,
        )
    )
    session.emit(
        PlanValidated(
            version=plan.version,
            content_hash=content,
            valid=True,
            issues=(),
            catalog_hash="",
            policy_hash="",
            tier="auto",
            reasons=(),
            estimate=priced,
        )
    )


def answer(session, shown: dict[str, Any], confirmed: bool = True) -> None:
    payload = {"details": shown}
    session.emit(
        QuestionAsked(
            question_id="q1",
            kind="step",
            audience="operator",
            payload=session.put(payload),
            payload_sha256=digest(payload),
            plan_version=1,
            content_hash=session.view.plans[1].content_hash,
            step="Q",
        )
    )
    session.emit(
        DecisionTaken(
            question_id="q1", decision="answer", by="bob", answer={"confirmed": confirmed}
        )
    )


async def run(lab, *versions: tuple[Plan, tuple[str, ...]], shown: Any = None) -> tuple[list, Any]:
    """Run the versions of a plan one after another, past all validation."""
    paid: list[str] = []
    session = await asyncio.to_thread(lab.session)
    for plan, carried in versions:
        bench = lab.bench(session, plan, tools_of(paid))
        if plan.version > 1:
            propose(session, plan, bench.estimate, *carried)
        await run_plan(bench)
        if shown is not None:
            answer(session, shown)
            await run_plan(lab.bench(session, plan, tools_of(paid)))
    return paid, session.view


async def test_untrusted_data_that_got_past_validation_is_held_at_the_last_look(lab):
    paid, view = await run(lab, (plan_of(MAIL, EXTRACT, PAY), ()))

    assert paid == []
    assert (view.steps["P"].outcome, view.steps["P"].error_code) == ("denied", "forbidden_flow")
    assert "read_mail.body → extract.account → pay.to (M → E → P)" in view.steps["P"].why


async def test_trusted_data_is_not_held(lab):
    paid, _ = await run(lab, (plan_of(LOOK, step("P", "pay", to="${L.body}")), ()))

    assert paid == ["DE-1"]


@pytest.mark.parametrize(
    ("shown", "is_paid"),
    [
        ({"account": "DE-66"}, True),
        ({"mail": {"lines": ["DE-66"]}}, True),
        ({"account": "DE-1"}, False),
        ({"account": "DE-66…"}, False),
        ({}, False),
    ],
)
async def test_a_person_vouches_for_the_value_that_was_shown_and_for_no_other(lab, shown, is_paid):
    plan = plan_of(MAIL, EXTRACT, CONFIRM, PAY.model_copy(update={"after": ("Q",)}))

    paid, view = await run(lab, (plan, ()), shown=shown)

    assert paid == ["DE-66"] * is_paid
    assert ("nobody was shown" in view.steps["P"].why) is not is_paid


async def test_a_carried_step_keeps_the_labels_of_what_it_really_read(lab):
    first = plan_of(MAIL, EXTRACT)
    renamed = step("E", "extract", text="${L.body}")
    second = plan_of(LOOK, renamed, PAY, version=2)

    paid, view = await run(lab, (first, ()), (second, ("E",)))

    assert paid == []
    assert "M → E → P" in view.steps["P"].why


async def test_a_label_that_policy_adds_while_a_run_waits_counts(lab):
    lab.policy = Policy.from_toml(
        'schema = 1\n[[allow]]\ntool = "*"\n[[label]]\ntool = "look_up"\nintegrity = "untrusted"'
    )

    paid, _ = await run(lab, (plan_of(LOOK, step("P", "pay", to="${L.body}")), ()))

    assert paid == []


COPIED = step("P", "pay", to="DE-66")


@pytest.mark.parametrize(
    ("first", "second", "is_paid"),
    [
        (plan_of(MAIL), plan_of(MAIL, COPIED, version=2), False),
        (plan_of(MAIL), plan_of(MAIL, COPIED, version=2, author="human"), True),
        (plan_of(MAIL), plan_of(MAIL, COPIED, version=2, inputs={"to": "DE-66"}), True),
        (plan_of(MAIL), plan_of(MAIL, step("P", "pay", to="DE-7"), version=2), True),
        (plan_of(LOOK), plan_of(LOOK, step("P", "pay", to="DE-1"), version=2), True),
        (
            plan_of(MAIL, step("X", "extract", text="DE-66")),
            plan_of(MAIL, COPIED, version=2),
            True,
        ),
    ],
    ids=["out of a mail", "by a person", "an input", "new", "out of the archive", "known before"],
)
async def test_a_literal_that_a_patch_took_out_of_an_untrusted_result_is_that_result(
    lab, first, second, is_paid
):
    paid, view = await run(lab, (first, ()), (second, (first.steps[0].id,)))

    assert bool(paid) is is_paid, view.steps["P"].why


async def test_an_argument_without_a_rule_is_not_looked_at(lab):
    session = await asyncio.to_thread(lab.session)
    bench = lab.bench(session, plan_of(MAIL, EXTRACT), tools_of([]))

    assert refusal_of_flow(bench, EXTRACT) is None
    assert refusal_of_flow(bench, step("Z", "gone")) is None
