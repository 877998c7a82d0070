"""What an approval covers when the moment of the effect has come."""

from __future__ import annotations

import pytest
from typing_extensions import TypedDict

from plangate import Found, tool
from plangate.engine.release import Held, Ready, prepare
from plangate.engine.steps import run_step
from plangate.journal.questions import (
    DecisionTaken,
    QuestionAsked,
)
from plangate.plan.value.frozen import digest
from plangate.plan.value.step import Step
from tests.engine.conftest import plan_of

sent: list[str] = []


class Sent(TypedDict):
    to: str


def never(key, args, context) -> Found:
    return Found(False)


@tool(effect="irreversible", key="mail:{to}", scope="goal", reconcile=never)
def mail(to: str) -> Sent:
    """Send a mail."""
    sent.append(to)
    return Sent(to=to)


@pytest.fixture(autouse=True)
def empty() -> None:
    sent.clear()


def step(to: str = "a") -> Step:
    return Step(id="S1", objective="mail", tool="mail", args={"to": to}, approval="always")


def approve(session, plan, question_id: str = "q1", **more) -> None:
    session.emit(
        QuestionAsked(
            question_id=question_id,
            kind="approval",
            audience="operator",
            payload="sha256:0",
            payload_sha256="0",
            plan_version=1,
            content_hash=plan.content_hash,
        )
    )
    session.emit(
        DecisionTaken(
            question_id=question_id,
            decision="approve",
            by="ann",
            content_hash=plan.content_hash,
            **more,
        )
    )


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"args": {"S1": digest({"to": "b"})}}, "arguments_changed"),
        ({"steps": ("S2",)}, "step_not_approved"),
        ({"denied": {"S1": "denied by ann"}}, "step_not_approved"),
    ],
)
async def test_what_the_approval_does_not_cover_does_not_run(lab, more, code):
    plan, session = plan_of(step()), lab.session()
    bench = lab.bench(session, plan, [mail])
    approve(session, plan, **more)

    held = prepare(bench, plan.by_id["S1"])
    ended = await run_step(bench, plan.by_id["S1"])

    assert isinstance(held, Held)
    assert (held.outcome, held.code) == ("denied", code)
    assert (ended.code, sent) == (code, [])
    session.close()


async def test_with_the_very_arguments_it_runs(lab):
    plan, session = plan_of(step()), lab.session()
    bench = lab.bench(session, plan, [mail])
    approve(session, plan, args={"S1": digest({"to": "a"})})

    assert isinstance(prepare(bench, plan.by_id["S1"]), Ready)
    assert (await run_step(bench, plan.by_id["S1"])).status == "done"
    session.close()


async def test_one_approval_of_a_step_is_good_for_one_effect(lab):
    plan, session = plan_of(step("a")), lab.session()
    bench = lab.bench(session, plan, [mail])
    approve(session, plan)
    await run_step(bench, plan.by_id["S1"])
    await run_step(bench, plan.by_id["S1"])  # the same effect once more is no second use
    assert sent == ["a"]

    other = await run_step(bench, step("b"))

    assert (other.status, other.code, sent) == ("failed", "approval_consumed", ["a"])
    session.close()


async def test_a_fresh_approval_of_a_step_is_good_for_another_effect(lab):
    plan, session = plan_of(step("a")), lab.session()
    bench = lab.bench(session, plan, [mail])
    approve(session, plan)
    await run_step(bench, plan.by_id["S1"])
    approve(session, plan, "q2")

    await run_step(bench, step("b"))

    assert sent == ["a", "b"]
    session.close()
