from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plangate.models.draft import compile_draft, task_type_of
from plangate.models.wire import PlanDraft
from plangate.plan.catalog import Catalog, Effect, ToolSpec
from plangate.plan.codes import CODES
from plangate.plan.value.frozen import parse
from plangate.plan.value.plan import Author, Budget, Plan

OBJECT = {"type": "object", "properties": {}}
READ = ToolSpec(
    name="read", version="7", summary="s", effect=Effect.READ, params=OBJECT, output=OBJECT
)
PAY = ToolSpec(
    name="pay",
    summary="s",
    effect=Effect.IRREVERSIBLE,
    key="pay:{id}",
    scope="global",
    params=OBJECT,
    output=OBJECT,
)
CATALOG = Catalog.of([READ, PAY])
NOTES = {"decision_code": "direct", "rejected": [{"option": "ask", "reason_code": "slow"}]}


def arg(name="x", source="literal", **said):
    empty = {"value_json": None, "input": None, "step": None, "path": None}
    return {**empty, "name": name, "source": source, **said}


def step(name="S1", *args, **said):
    empty = {"kind": "tool", "tool": "read", "objective": "look", "after": [], "when": None}
    rest = {"checks": [], "question": None, "output_json": None, "expected_output": ""}
    return {**empty, **rest, "id": name, "args": list(args), **said}


def draft(*steps, **said):
    empty = {"success_criteria": [], "abort_conditions": [], "assumptions": [], "notes": NOTES}
    return {"goal": "as I see it", "steps": list(steps), **empty, **said}


def compiled(data, **about):
    text = data if isinstance(data, str) else json.dumps(data)
    given = {"goal": "Refund it", "goal_id": "g1", "inputs": {"order_id": "ORD-1"}, **about}
    return compile_draft(text, CATALOG, **given)


def codes(issues):
    return [(issue.code, issue.step, issue.field) for issue in issues]


def test_a_draft_becomes_a_plan_with_the_users_own_words():
    budget = Budget(max_usd=Decimal("1.5"))
    author = Author(kind="planner", name="gpt-5-mini")

    plan = compiled(draft(step()), budget=budget, author=author, policy_hash="p")

    assert isinstance(plan, Plan)
    assert (plan.goal, plan.goal_id, plan.inputs["order_id"]) == ("Refund it", "g1", "ORD-1")
    assert (plan.budget, plan.author, plan.policy_hash) == (budget, author, "p")
    assert (plan.catalog_hash, plan.steps[0].tool_version) == (CATALOG.content_hash, "7")
    assert plan.notes[0].rejected[0].reason_code == "slow"


@pytest.mark.parametrize(
    ("said", "written"),
    [
        (arg(value_json='"EUR"'), "EUR"),
        (arg(value_json="[1, null, {}]"), (1, None, {})),
        (arg(source="input", input="order_id"), "${inputs.order_id}"),
        (arg(source="input", input="order", path="lines.0"), "${inputs.order.lines.0}"),
        (arg(source="step", step="S0", path="order.id"), "${S0.order.id}"),
        (arg(source="step", step="S0", path=""), "${S0}"),
        (arg(source="step", step="S9", value_json='"spare"'), "${S9}"),
    ],
)
def test_an_argument_has_one_source(said, written):
    assert compiled(draft(step("S1", said))).steps[0].args["x"] == written


def test_checks_criteria_and_conditions_get_names_of_their_own():
    check = {
        "claim": "c",
        "level": "L2",
        "rule": "true",
        "tool": "read",
        "args": [arg(value_json="1")],
    }
    plan = compiled(
        draft(
            step(checks=[check, check]),
            success_criteria=[check],
            abort_conditions=[{"text": "t", "rule": "run.failures > 3"}],
            assumptions=["it is new"],
        )
    )

    assert [each.id for each in plan.steps[0].success] == ["S1.c1", "S1.c2"]
    assert plan.success_criteria[0].id == "goal.c1"
    assert plan.success_criteria[0].args["x"] == 1
    assert (plan.abort_conditions[0].id, plan.assumptions[0].source) == ("abort.1", "model")


def test_a_human_step_asks_with_details():
    question = {"audience": "customer", "type": "confirm", "text": "Sure?", "options": []}
    question["details"] = [arg("amount", "step", step="S1", path="amount")]
    plan = compiled(draft(step("S2", kind="human", tool=None, question=question)))

    assert plan.steps[0].capability == "human:customer"
    assert plan.steps[0].question.details["amount"] == "${S1.amount}"


def test_what_only_the_whole_plan_can_tell_is_left_to_validation():
    twice = draft(step("S1", after=["S9"]), step("S1", tool="invented"))

    assert isinstance(compiled(twice), Plan)


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (arg(value_json="EUR"), "bad_value"),
        (arg(value_json=None), "bad_value"),
        (arg(value_json="NaN"), "bad_value"),
        (arg(value_json="9007199254740993"), "bad_value"),
        (arg(value_json="[" * 2000), "bad_value"),
        (arg(value_json='"\\ud800"'), "bad_value"),
        (arg(value_json='{"a": ["${S1.id}"]}'), "bad_value"),
        (arg(source="input"), "bad_reference_path"),
        (arg(source="input", input="a b"), "bad_reference_path"),
        (arg(source="step", path="x"), "bad_reference_path"),
        (arg(source="step", step="inputs", path="x"), "bad_reference_path"),
        (arg(source="step", step="S1", path="a..b"), "bad_reference_path"),
        (arg(source="step", step="S1", path="x}${S2"), "bad_reference_path"),
    ],
)
def test_an_argument_that_no_plan_can_hold_is_an_issue(said, code):
    assert codes(compiled(draft(step("S1", said)))) == [(code, "S1", "args.x")]


def test_an_argument_given_twice_is_an_issue():
    twice = step("S1", arg(value_json="1"), arg(value_json="2"))

    assert codes(compiled(draft(twice))) == [("duplicate_id", "S1", "args.x")]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I cannot.",
        json.dumps(draft(step()))[:-3],
        '{"goal": "x", "steps": [{"id": "S1"}',
        "\ud800",
    ],
    ids=["empty", "prose", "cut off", "cut off inside", "surrogate"],
)
def test_a_text_without_a_whole_object_is_unparsable(text):
    [issue] = compiled(text)

    assert (issue.code, issue.layer, issue.severity) == ("unparsable", 1, "error")
    assert issue.hint


@pytest.mark.parametrize(
    "around",
    ["@", "```json\n@\n```", "Here is {the} plan:\n@\nAnything else? {}", "\n\n @ "],
)
def test_what_surrounds_the_object_does_not_matter(around):
    assert isinstance(compiled(around.replace("@", json.dumps(draft(step())))), Plan)


def test_a_wrong_field_is_named_with_its_step():
    ill = draft(step(), step("2x"), step("S3", kind="agent"), spare=1)

    found = compiled(ill)

    assert set(codes(found)) == {
        ("bad_value", None, "steps[1].id"),
        ("bad_value", None, "steps[2].kind"),
        ("unknown_field", None, "spare"),
    }


def test_a_tool_name_that_is_none_is_named_with_its_step():
    assert codes(compiled(draft(step("S1", tool="rm -rf")))) == [("bad_value", "S1", "tool")]


def test_each_code_is_one_that_plans_know():
    ill = draft(step("S1", arg(), arg(source="input")), step("2x"))

    for text in ("", "{}", json.dumps(ill), json.dumps(draft(step("S1", arg(), arg())))):
        assert {issue.code for issue in compiled(text)} <= CODES.keys()


@settings(max_examples=50)
@given(st.text() | st.binary().map(lambda raw: raw.decode("utf-8", "replace")))
def test_no_text_raises(text):
    assert isinstance(compiled(text), tuple)


@settings(max_examples=50)
@given(st.text(max_size=40), st.text(max_size=40), st.text(max_size=40))
def test_no_argument_raises_and_none_becomes_another_reference(name, head, path):
    got = compiled(draft(step("S1", arg(name, "step", step=head, path=path))))

    if isinstance(got, Plan):
        [ref] = got.steps[0].refs
        assert ".".join((ref.head, *ref.path)) == ".".join(part for part in (head, path) if part)
    else:
        assert codes(got)[0][1] == "S1"


def test_the_task_type_follows_tools_and_effects_alone():
    first = compiled(draft(step("S1"), step("S2", tool="pay")))
    second = compiled(draft(step("X", tool="pay", objective="other"), step("Y")), goal="Other")

    assert first.task_type == second.task_type == task_type_of(["read", "pay"], CATALOG)
    assert first.task_type != task_type_of(["read"], CATALOG)


def test_a_read_draft_compiles_like_its_text():
    data = draft(step("S1", arg(value_json="1")))

    assert compile_draft(
        parse(PlanDraft, data),
        CATALOG,
        goal="Refund it",
        goal_id="g1",
        inputs={"order_id": "ORD-1"},
    ) == compiled(data)


MODEL_STEP = {"kind": "model", "tool": None, "output_json": '{"type": "object"}'}


def test_a_model_step_has_the_schema_that_was_written_as_text():
    plan = compiled(draft(step(), step("S2", arg("x", "step", step="S1"), **MODEL_STEP)))

    assert (plan.steps[1].kind, plan.steps[1].output) == ("model", {"type": "object"})
    assert plan.steps[1].args == {"x": "${S1}"}


def test_a_plan_that_asks_models_is_another_type_of_plan():
    with_model, without = compiled(draft(step(), step("S2", **MODEL_STEP))), compiled(draft(step()))

    assert with_model.task_type != without.task_type


@pytest.mark.parametrize("said", ["", "[]", "3", '{"a": 1, "a": 2}', '{"a": NaN}', "object"])
def test_an_output_that_is_no_schema_is_an_issue(said):
    issues = compiled(draft(step("S1", **{**MODEL_STEP, "output_json": said})))

    assert codes(issues) == [("bad_value", "S1", "output_json")]
