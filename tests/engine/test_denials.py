from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from typing_extensions import TypedDict

from plangate.engine.authorizer import rights_now
from plangate.engine.dataflow import run_plan
from plangate.engine.denials import Denials
from plangate.journal.questions import (
    DecisionTaken,
    QuestionAsked,
)
from plangate.plan.catalog import ArgRule
from plangate.plan.errors import Denied
from plangate.plan.facts import Facts, Rights
from plangate.plan.layers.run import validate
from plangate.plan.policy import Policy
from plangate.plan.value.plan import Author, Plan
from plangate.plan.value.step import Route, Step
from plangate.tools.answers import ToolFailed
from plangate.tools.context import ToolContext
from plangate.tools.registry import Registry
from plangate.tools.tool import Tool, tool
from tests.engine.conftest import ME, POLICY
from tests.engine.test_labels import propose


class Done(TypedDict):
    ok: bool


class Case(TypedDict):
    order: str


def tools_of(called: list[str]) -> list[Tool]:
    def act(name: str, key: str, **more: Any) -> Tool:
        def body(order: str, to: str = "shop") -> Done:
            """Pay."""
            called.append(name)
            if name == "card":
                raise ToolFailed("over_limit", "the bank says no")
            return {"ok": True}

        body.__name__ = name
        errors = {"over_limit": "denied"}
        return tool(effect="irreversible", key=key, scope="goal", errors=errors, **more)(body)

    @tool(effect="read")
    def find() -> Case:
        """Find the order."""
        return {"order": "O-1"}

    guarded = {"to": ArgRule(max_confidentiality=("pii",))}
    return [
        find,
        act("card", "refund:{order}", writes=("order:{order}",), arg_rules=guarded),
        act("wire", "refund:{order}"),
        act("credit", "credit:{order}", writes=("order:{order}",)),
        act("gift", "gift:{order}", arg_rules=guarded),
        act("post", "post:{order}"),
    ]


def plan_of(*steps: Step, version: int = 1) -> Plan:
    author = Author(kind="planner" if version == 1 else "replanner")
    return Plan(
        goal_id="g", goal="goal", task_type="t", inputs={"order": "O-1", "to": "eve"},
        steps=steps, version=version, author=author,
    )  # fmt: skip


def step(step_id: str, name: str, **args: Any) -> Step:
    return Step(id=step_id, objective="o", tool=name, args=args)


FIND = step("F", "find")
CARD = step("C", "card", order="${inputs.order}", to="eve")
OTHERS = {
    "the same key": (step("W", "wire", order="${inputs.order}"), True),
    "the same key, known only now": (step("W", "wire", order="${F.order}"), True),
    "the same resource": (step("W", "credit", order="O-1"), True),
    "the same recipient": (step("W", "gift", order="O-2", to="eve"), True),
    "another order": (step("W", "wire", order="O-2"), False),
    "another thing": (step("W", "post", order="O-1"), False),
    "another recipient": (step("W", "gift", order="O-2", to="ann"), False),
}


@pytest.mark.parametrize(("other", "is_held"), OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize("card", [CARD, CARD.model_copy(update={"routes": (
    Route(on="denied", action="skip"),)})], ids=["failed", "skipped"])  # fmt: skip
async def test_what_a_tool_was_denied_no_other_tool_reaches_in_this_run(lab, card, other, is_held):
    called: list[str] = []
    session = await asyncio.to_thread(lab.session)
    await run_plan(lab.bench(session, plan_of(FIND, card), tools_of(called)))
    second = plan_of(FIND, other, version=2)
    bench = lab.bench(session, second, tools_of(called))

    propose(session, second, bench.estimate, "F")
    await run_plan(bench)

    assert called == ["card"] + [other.tool] * (not is_held)
    assert (session.view.steps["W"].error_code == "denied_before") is is_held


@pytest.mark.parametrize("name", [name for name, (_, held) in OTHERS.items() if held])
async def test_a_later_version_is_refused_for_it_before_it_runs(lab, name):
    session = await asyncio.to_thread(lab.session)
    await run_plan(lab.bench(session, plan_of(FIND, CARD), tools_of([])))
    registry = Registry(tools_of([]))
    facts = Facts(
        catalog=registry.catalog(()),
        rights=ME,
        policy=POLICY,
        denied=Denials(session, registry).now(),
        now=datetime(2026, 1, 1, tzinfo=UTC),
    )

    report = validate(plan_of(FIND, OTHERS[name][0], version=2), facts)

    found = [each for each in report.issues if each.code == "denied_before"]
    # What only a run can know is caught by the last look, in the test above.
    assert bool(found) is ("only now" not in name)
    assert all("which 'card' was denied: the bank says no" in each.says for each in found)


async def test_a_person_who_rejects_a_payment_rejects_it_for_the_same_tool_as_well(lab):
    called: list[str] = []
    session = await asyncio.to_thread(lab.session)
    first = plan_of(step("P", "wire", order="O-1"))
    bench = lab.bench(session, first, tools_of(called))
    said = {"content_hash": first.content_hash, "payload": session.put({}), "payload_sha256": ""}
    session.emit(
        QuestionAsked(
            question_id="q1", kind="approval", audience="operator", plan_version=1, **said
        )
    )
    session.emit(DecisionTaken(question_id="q1", decision="reject", by="bob"))
    second = plan_of(step("AGAIN", "wire", order="O-1"), version=2)
    propose(session, second, bench.estimate)

    await run_plan(lab.bench(session, second, tools_of(called)))

    assert called == []
    assert "bob rejected it" in session.view.steps["AGAIN"].why


class Keys:
    """An authorizer whose answers are handed out one by one; the last one stays."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def rights(self, principal: str, run: object) -> Rights:
        self.asked += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.mark.parametrize(
    "answer", [Rights(principal="eve"), OSError("no network"), None], ids=["other", "error", "none"]
)
async def test_an_authorizer_that_cannot_answer_grants_nothing(lab, answer):
    session = await asyncio.to_thread(lab.session)

    with pytest.raises(Denied) as caught:
        await rights_now(Keys(answer), session)

    assert caught.value.hint


@pytest.mark.parametrize(
    ("rights", "code"),
    [
        (ME.model_copy(update={"scopes": ()}), "tool_gone"),
        (ME.model_copy(update={"scopes": ("vault",), "tenant": "us"}), "policy_denied"),
        (OSError("no network"), "rights_unknown"),
        (ME.model_copy(update={"scopes": ("vault",), "tenant": "eu"}), ""),
    ],
    ids=["scope gone", "other tenant", "unknown", "all there"],
)
async def test_rights_are_those_of_the_moment_of_the_call(lab, rights, code):
    called: list[tuple[str, ...]] = []
    rights = rights.model_copy(update={"scopes": (*rights.scopes, "all")}) if code == "" else rights

    @tool(effect="write", key="open:{id}", scope="goal", scopes=("vault",), tenants=("eu",))
    def open_vault(id: str, context: ToolContext) -> Done:
        """Open it."""
        called.append(context.scopes)
        return {"ok": True}

    lab.policy = Policy.from_toml('schema = 1\n[[allow]]\ntool = "*"\n')
    session = await asyncio.to_thread(lab.session)
    bench = lab.bench(session, plan_of(step("V", "open_vault", id="1")), [open_vault])
    object.__setattr__(bench, "authorizer", Keys(rights))

    await run_plan(bench)

    assert session.view.steps["V"].error_code == code
    assert called == [("vault",)] * (code == "")  # of all rights, those of its contract
