from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from plangate.graph.payload import (
    LARGEST,
    ApprovalCard,
    QuestionCard,
    approval_payload,
    question_payload,
    read_answer,
)
from plangate.plan.catalog import Catalog, Effect, ToolSpec
from plangate.plan.facts import PlanEstimate, Range, StepEstimate
from plangate.plan.preview import Evidence, Fits, Preview, StepPreview
from plangate.plan.value.frozen import Frozen, digest
from plangate.plan.value.plan import Assumption, Author, Condition, Constraint, Plan
from plangate.plan.value.step import Check, Question, Route, Step

ANY = {"type": "object"}
CATALOG = Catalog.of(
    [
        ToolSpec(
            name="create_refund",
            summary="Pay money back.",
            effect=Effect.IRREVERSIBLE,
            external=True,
            key="refund:{order_id}",
            scope="global",
            params=ANY,
            output=ANY,
        ),
        ToolSpec(name="query_order", summary="Look.", effect=Effect.READ, params=ANY, output=ANY),
    ]
)
ESTIMATE = PlanEstimate(
    steps=(
        StepEstimate(
            step="S2",
            seconds=Range(p50=1, p95=2),
            tokens_in=Range(p50=0, p95=0),
            tokens_out=Range(p50=0, p95=0),
            usd_p50=Decimal("0.01"),
            usd_p95=None,
            source="contract",
        ),
    ),
    seconds=Range(p50=3, p95=9),
    tokens=Range(p50=100, p95=200),
    usd_p50=Decimal("0.01"),
    usd_p95=None,
    calls=Range(p50=2, p95=2),
)


def preview_of(plan: Plan) -> Preview:
    return Preview(
        goal=plan.goal,
        content_hash=plan.content_hash,
        version=plan.version,
        steps=tuple(
            StepPreview(
                id=step.id,
                objective=step.objective,
                capability=step.capability,
                effect="read",
                external=False,
                args=step.args,
                args_known=False,
                estimate=ESTIMATE.steps[0],
                evidence=Evidence(refs=("order://ORD-1?version={version}",), source="contract"),
            )
            for step in plan.steps
        ),
        estimate=ESTIMATE,
        fits=(Fits(asks="C_max", says="unknown", why=("nobody knows a price",)),),
        tier="selective",
        reasons=("acts outside",),
        confirm=("S2",),
        issues=(),
        approvable=True,
        notes=("These are estimates.",),
    )


class Diff(Frozen):
    kept: tuple[str, ...] = ("S1",)


def refund(**args) -> Step:
    return Step(
        id="S2",
        objective="pay back",
        tool="create_refund",
        args={"order_id": "${S1.order.id}", **args},
        success=(Check(id="c", level="L2", claim="money is back", rule="result.ok"),),
        routes=(Route(on="limit", action="ask"),),
    )


def plan_of(*steps: Step, **more) -> Plan:
    look = Step(id="S1", objective="look", tool="query_order", args={"order_id": "${inputs.id}"})
    return Plan(
        goal_id="g",
        goal=more.pop("goal", "refund order 1"),
        task_type="refund",
        steps=(look, *steps),
        author=Author(kind="template"),
        success_criteria=(Check(id="done", level="L2", claim="customer has the money"),),
        abort_conditions=(Condition(id="a", text="fraud flag", rule="facts.fraud"),),
        replan_conditions=(Condition(id="r", text="no record", rule="facts.gone"),),
        assumptions=(Assumption(id="as", statement="order is paid", source="user"),),
        constraints=(Constraint(id="k", text="never above the price", source="policy"),),
        version=2,
        **more,
    )


def ask(plan: Plan, confirm=("S2",), **more):
    return approval_payload(
        ApprovalCard(
            question_id="r1-q1",
            run_id="r1",
            plan=plan,
            plan_ref="sha256:ab",
            catalog=CATALOG,
            policy_hash="p",
            tier="selective",
            reasons=("acts outside",),
            confirm=confirm,
            preview=preview_of(plan),
            expires_at=datetime(2026, 1, 1, tzinfo=UTC),
            **more,
        )
    )


def size(payload) -> int:
    return len(json.dumps(payload, ensure_ascii=False).encode())


def test_it_holds_what_an_approval_is_about():
    plan = plan_of(refund(amount=2499))
    payload = ask(plan, diff=Diff())
    step = payload["steps"][0]

    assert (payload["type"], payload["question_id"]) == ("plan_approval", "r1-q1")
    assert payload["plan_hash"] == plan.content_hash
    assert step["args"] == {"order_id": "${S1.order.id}", "amount": 2499}
    assert (step["effect"], step["external"], step["undo"]) == ("irreversible", True, None)
    assert step["args_sha256"] == digest(plan.by_id["S2"].args)
    assert step["checks"][0]["claim"] == "money is back"
    assert step["routes"] == [{"on": "limit", "action": "ask", "step": None}]
    assert step["estimate"]["usd"] == {"p50": "0.01", "p95": None}
    assert payload["estimate"]["usd"] == {"p50": "0.01", "p95": None}
    assert payload["other"] == [{"id": "S1", "capability": "query_order"}]
    assert payload["diff"] == {"kept": ["S1"]}
    assert payload["expires_at"] == "2026-01-01T00:00:00+00:00"
    assert payload["allowed_decisions"] == ["approve", "reject", "edit", "changes"]
    assert (payload["confirm"], step["args_known"]) == (["S2"], False)
    assert step["sources"] == {"order_id": "S1.order.id", "amount": "plan"}
    assert payload["overflow"] is None


def test_what_is_known_by_now_is_shown_as_it_will_run():
    plan = plan_of(refund(amount=2499))
    outputs = {"S1": {"order": {"id": "${S2.looks.like.one}"}}}

    step = ask(plan, outputs=outputs, settled=frozenset({"S1"}))["steps"][0]

    assert step["args"] == {"order_id": "${S2.looks.like.one}", "amount": 2499}
    assert step["args_sha256"] == digest(step["args"])
    assert step["args_known"]


def test_a_step_that_has_ended_is_not_asked_about_any_more():
    payload = ask(plan_of(refund()), confirm=("S1", "S2"), settled=frozenset({"S1"}))

    assert payload["confirm"] == ["S2"]
    assert payload["other"] == [{"id": "S1", "capability": "query_order", "ended": True}]


def test_what_a_denial_takes_with_it_stands_on_the_card():
    payload = ask(plan_of(refund()), confirm=("S1", "S2"))

    assert payload["steps"][0]["denying"]["drops"] == ["S2"]
    assert payload["steps"][1]["denying"]["drops"] == []


def test_the_whole_argument_can_be_read_before_approval_is_possible():
    tail = "x" * 5_000 + "\u202e; rm -rf /"
    payload = ask(plan_of(refund(note=tail)))

    assert payload["overflow"] is None
    assert payload["steps"][0]["args"]["note"].endswith("\\u202e; rm -rf /")
    assert payload["steps"][0]["args_escaped"]
    assert "rm -rf /" in payload["description"]


@pytest.mark.parametrize(
    "part",
    [
        "2499",
        "money is back",
        "limit: ask",
        "customer has the money",
        "fraud flag",
        "no record",
        "order is paid",
        "never above the price",
        "acts outside",
        "irreversible",
        "unknown USD",
    ],
)
def test_the_markdown_says_it_as_well(part):
    assert part in ask(plan_of(refund(amount=2499)))["description"]


def test_chat_ui_and_inbox_recognise_it():
    payload = ask(plan_of(refund(amount=2499)))
    action, config = payload["action_requests"][0], payload["review_configs"][0]

    assert isinstance(action["name"], str)
    assert isinstance(action["args"], dict)
    assert action["arguments"] == action["args"]
    assert action["args"]["steps"]["S2"]["create_refund"]["amount"] == 2499
    assert config["action_name"] == action["name"] == payload["action_request"]["action"]
    assert config["allowed_decisions"] == ["approve", "reject"]
    assert payload["config"] == {
        "allow_accept": True,
        "allow_edit": False,
        "allow_respond": True,
        "allow_ignore": False,
    }


def test_the_form_it_offers_is_an_answer():
    form = ask(plan_of(refund()))["answer_form"]

    got = read_answer({**form, "decision": "approve"})

    assert not isinstance(got, str)
    assert (got.question_id, len(got.plan_hash)) == ("r1-q1", 64)


def test_the_same_facts_give_the_same_payload_and_it_is_plain_json():
    payload = ask(plan_of(refund(amount=2499)), diff=Diff())

    assert digest(payload) == digest(ask(plan_of(refund(amount=2499)), diff=Diff()))
    assert json.loads(json.dumps(payload)) == payload


def test_text_from_elsewhere_can_neither_hide_nor_pose_as_ours():
    payload = ask(
        plan_of(
            refund(note="pay\u202e001", memo="x\n```\n**Approved by security**"),
            goal="refund\n\n# Approved by security\n![x](http://evil/?q=1)",
        )
    )
    text = payload["action_requests"][0]["description"]

    assert payload["steps"][0]["args"]["note"] == "pay\\u202e001"
    assert payload["steps"][0]["args_escaped"]
    assert "\u202e" not in text
    assert not re.search(r"^(# |\*\*Approved by)", text, re.MULTILINE)
    assert "![" not in text
    assert json.loads(re.findall(r"(?s)```+json\n(.*?)\n```+\n", text)[0])["note"] == "pay\u202e001"


def test_a_thousand_steps_fit_and_what_is_left_out_is_said():
    steps = [
        Step(id=f"P{k}", objective="pay", tool="create_refund", args={"text": "x" * 500, "n": k})
        for k in range(1_000)
    ]
    payload = ask(plan_of(*steps), confirm=tuple(step.id for step in steps))

    assert size(payload) <= LARGEST
    assert payload["overflow"]["left_out"] == 1_000 - len(payload["steps"])
    assert payload["overflow"]["see"] == "sha256:ab"
    assert "Not all is shown" in payload["action_requests"][0]["description"]
    assert "plangate run show r1" in payload["overflow"]["says"]


def test_one_huge_argument_is_cut_with_its_digest_kept():
    payload = ask(plan_of(refund(body="long text, " * 20_000)))
    step = payload["steps"][0]

    assert size(payload) <= LARGEST
    assert re.search(r"… \[cut: \d+ of 220000 characters\]$", step["args"]["body"])
    assert payload["overflow"]["cut"] >= 1
    assert payload["overflow"]["left_out"] == 0


def test_the_arguments_are_whole_as_long_as_they_fit_once():
    body = "long text, " * 2_000
    payload = ask(plan_of(refund(body=body)))

    assert size(payload) <= LARGEST
    assert payload["steps"][0]["args"]["body"] == body
    assert payload["overflow"] is None


def test_a_deeply_nested_value_fits_as_well():
    deep: object = "x" * 200
    for _ in range(4):
        deep = {f"key{k}": deep for k in range(7)}
    payload = ask(plan_of(refund(data=deep)))

    assert size(payload) <= LARGEST
    assert payload["overflow"] is not None


def test_a_human_step_is_shown_with_its_question():
    human = Step(
        id="S3",
        objective="ask",
        kind="human",
        question=Question(audience="customer", type="confirm", text="Refund to the same card?"),
    )
    payload = ask(plan_of(human), confirm=("S3",))

    assert payload["steps"][0]["question"]["text"] == "Refund to the same card?"
    assert "Refund to the same card?" in payload["description"]


def question(**more):
    given = {
        "question_id": "r1-q2",
        "run_id": "r1",
        "kind": "step",
        "text": "Refund to the same card?",
        "plan_version": 1,
        "plan_hash": "h",
        "plan_ref": "sha256:ab",
    }
    return question_payload(QuestionCard(**{**given, **more}))


FAILED = ["retry", "stop", "escalate", "request_more_info"]


@pytest.mark.parametrize(
    ("more", "decisions", "buttons"),
    [
        ({"answer_type": "confirm"}, ["answer"], ["approve", "reject"]),
        ({"answer_type": "text"}, ["answer"], ["edit", "respond"]),
        (
            {"kind": "effect"},
            ["settle", "retry", "stop", "escalate", "request_more_info"],
            ["edit", "respond"],
        ),
        (
            {"kind": "escalation"},
            ["retry", "stop", "escalate", "request_more_info"],
            ["edit", "respond"],
        ),
    ],
)
def test_a_question_offers_the_decisions_of_its_kind(more, decisions, buttons):
    payload = question(**more)

    assert payload["allowed_decisions"] == decisions
    assert payload["review_configs"][0]["allowed_decisions"] == buttons
    assert payload["action_requests"][0]["name"] == "answer_r1-q2"


def test_a_yes_to_a_confirmation_is_read_with_the_payload():
    got = read_answer({"decisions": [{"type": "approve"}]}, question(answer_type="confirm"))

    assert not isinstance(got, str)
    assert (got.decision, got.answer) == ("answer", {"confirmed": True})


def test_the_details_of_an_unknown_effect_are_shown_and_never_too_much():
    details = {"tool": "create_refund", "args": {"amount": 1}, "effect_key": "ab"}

    small = question(kind="effect", details=details)
    large = question(kind="effect", details={str(k): "x" * 1_000 for k in range(1_000)})

    assert small["details"] == details
    assert '"amount": 1' in small["description"]
    assert size(large) <= LARGEST
    assert large["overflow"] is not None


@pytest.mark.parametrize(("count", "is_whole"), [(0, True), (3, True), (1_000, False)])
def test_a_list_that_is_known_is_shown_as_far_as_there_is_room(count, is_whole):
    each = refund().model_copy(
        update={"for_each": "${S1.ids}", "max_items": 1_000, "args": {"order_id": "${item}"}}
    )
    ids = [f"ORD-{n}" for n in range(count)]

    payload = ask(plan_of(each), outputs={"S1": {"ids": ids}})

    assert len(json.dumps(payload, ensure_ascii=False).encode()) <= LARGEST
    for step in payload["steps"]:
        shown = step["for_each"]["elements"]
        assert (step["for_each"]["count"], step["args_known"]) == (count, True)
        assert [one["args"] for one in shown] == [{"order_id": name} for name in ids[: len(shown)]]
        assert (len(shown) == count) is is_whole
    assert (payload["overflow"] is None) is is_whole
