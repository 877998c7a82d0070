from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plangate.plan.catalog import ArgRule, Catalog, Effect, Labels, ToolSpec
from plangate.plan.facts import Facts, Rights
from plangate.plan.layers import flow
from plangate.plan.layers.ground import Ground
from plangate.plan.policy import Policy
from plangate.plan.value.plan import Author, Plan
from plangate.plan.value.step import Question, Route, Step
from tests.plan.workshop import found, sound

OBJECT = {"type": "object"}
UNTRUSTED = Labels(integrity="untrusted")
PII = Labels(confidentiality=("pii",))


def spec(name: str, effect: str = "read", **more: Any) -> ToolSpec:
    key = {"key": f"{name}:{{to}}", "scope": "goal"} if Effect(effect).acts else {}
    said = {"name": name, "summary": "s", "effect": Effect(effect), "params": OBJECT}
    return ToolSpec(**{**said, "output": OBJECT, **key, **more})


SPECS = (
    spec("search", field_labels={"memo": UNTRUSTED, "rows.owner": PII}),
    spec("read_mail", labels=UNTRUSTED),
    spec("person", labels=PII),
    spec("look"),
    spec("tidy", "none"),
    spec("register", sanitises=("untrusted",)),
    spec("mask", "none", sanitises=("pii",)),
    spec(
        "pay",
        "irreversible",
        arg_rules={
            "to": ArgRule(requires_trusted=True),
            "note": ArgRule(max_confidentiality=("tenant",)),
        },
    ),
)
ALLOW = 'schema = 1\n[[allow]]\ntool = "*"\n'
FACTS = Facts(
    catalog=Catalog.of(SPECS),
    rights=Rights(principal="ann"),
    policy=Policy.from_toml(ALLOW),
    now=datetime(2026, 1, 1, tzinfo=UTC),
)


def step(step_id: str, tool: str | None, **args: Any) -> Step:
    more = {
        name: args.pop(name) for name in ("after", "when", "for_each", "routes") if name in args
    }
    kind = "model" if tool is None else "tool"
    return Step(id=step_id, objective="o", kind=kind, tool=tool, args=args, **more)


def asks(step_id: str, kind: str = "confirm", details: dict[str, Any] | None = None, **more: Any):
    question = Question(audience="operator", type=kind, text="?", details=details or {})  # type: ignore[arg-type]
    return Step(id=step_id, objective="o", kind="human", question=question, **more)


def told(*steps: Step, policy: str = "", specs: tuple[ToolSpec, ...] = SPECS) -> list[str]:
    plan = Plan(
        goal_id="g", goal="g", task_type="t", inputs={"to": "ann"}, steps=steps,
        author=Author(kind="planner"),
    )  # fmt: skip
    facts = replace(FACTS, catalog=Catalog.of(specs), policy=Policy.from_toml(ALLOW + policy))
    ground = Ground(plan, facts)
    return [
        each.says
        for check in flow.CHECKS
        for each in check(ground)
        if each.code != "untrusted_condition"
    ]


PAY = step("P", "pay", to="${E.account}")

REFUSED = {
    "through a model": (
        (step("S", "search"), step("E", None, text="${S.memo}"), PAY),
        "search.memo → E.account → pay.to (S → E → P)",
    ),
    "through a lookup that an outsider steers": (
        (step("S", "read_mail"), step("E", "look", id="${S.body}"), PAY),
        "read_mail.body → look.account → pay.to (S → E → P)",
    ),
    "the whole of what one field taints": (
        (step("S", "search"), step("E", None, text="${S}"), PAY),
        "search → E.account → pay.to",
    ),
    "deep below a field": (
        (step("S", "search"), step("P", "pay", to="${S.memo.0.account}")),
        "search.memo.0.account → pay.to (S → P)",
    ),
    "inside a structure": (
        (step("S", "read_mail"), step("P", "pay", to={"account": ["${S.body}"]})),
        "read_mail.body → pay.to",
    ),
    "an element of a list": (
        (
            step("S", "search"),
            step("E", "look", id="${item.text}", for_each="${S.memo}"),
            step("P", "pay", to="${item.account}", for_each="${E}"),
        ),
        "search.memo.text → look.account → pay.to",
    ),
    "a recorded fact": ((step("P", "pay", to="${memory.account}"),), "memory.account → pay.to"),
    "personal data in a note": (
        (step("S", "search"), step("P", "pay", to="ann", note="${S.rows.3.owner}")),
        "pii data reaches pay.note, which is not cleared for it: search.rows.3.owner → pay.note",
    ),
    "a sanitiser of something else": (
        (step("S", "read_mail"), step("E", "mask", text="${S.body}"), PAY),
        "read_mail.body → mask.account → pay.to",
    ),
}


@pytest.mark.parametrize(("steps", "says"), REFUSED.values(), ids=REFUSED)
def test_a_forbidden_flow_is_refused_with_its_way(steps, says):
    [said] = told(*steps)

    assert says in said


SOUND = {
    "an input": (step("P", "pay", to="${inputs.to}"),),
    "another field of the same result": (step("S", "search"), step("P", "pay", to="${S.account}")),
    "a declared sanitiser": (
        step("S", "search"), step("E", "register", text="${S.memo}"), PAY,
    ),
    "masked data in a note": (
        step("S", "person"), step("E", "mask", text="${S.name}"),
        step("P", "pay", to="ann", note="${E.text}"),
    ),
    "a person's own answer": (
        step("S", "read_mail"),
        asks("E", "text", {"mail": "${S.body}"}), step("P", "pay", to="${E.text}"),
    ),
    "what a person was shown": (
        step("S", "search"), step("E", None, text="${S.memo}"),
        asks("Q", details={"account": "${E.account}"}),
        step("P", "pay", to="${E.account}", after=("Q",)),
    ),
    "a part of what a person was shown": (
        step("E", "read_mail"), asks("Q", details={"all": "${E}"}),
        step("P", "pay", to="${E.account}", after=("Q",)),
    ),
    "what was made of a value after a person confirmed it": (
        step("S", "read_mail"), asks("Q", details={"body": "${S.body}"}),
        step("E", "tidy", text="${S.body}", after=("Q",)), PAY,
    ),
    "an order that only waits": (step("S", "read_mail"), step("P", "pay", to="ann", after=("S",))),
}  # fmt: skip


@pytest.mark.parametrize("steps", SOUND.values(), ids=SOUND)
def test_a_value_that_nobody_outside_chose_may_flow(steps):
    assert told(*steps) == []


LOOK = step("L", "look")
SKIP = (Route(on="permanent", action="skip"),)
NOT_VOUCHED = {
    "another value": asks("Q", details={"name": "${E.name}"}),
    "nothing": asks("Q", after=("E",)),
    "the input of the model, not what it made of it": asks("Q", details={"memo": "${S.memo}"}),
    "a choice, not a confirmation": asks("Q", "choice", {"account": "${E.account}"}),
    "a question that may be left out": asks(
        "Q", details={"account": "${E.account}"}, when="steps.E.output.big"
    ),
    "a question whose failure is skipped": asks(
        "Q", details={"account": "${E.account}"}, routes=SKIP
    ),
    "a question that is skipped with what it reads": asks(
        "Q", details={"account": "${E.account}", "more": "${M.x}"}
    ),
}


@pytest.mark.parametrize("question", NOT_VOUCHED.values(), ids=NOT_VOUCHED)
def test_a_person_vouches_only_for_the_value_shown_and_only_if_surely_asked(question):
    said = told(
        step("S", "search"),
        step("M", "look", when="inputs.to == 'bob'"),
        step("E", None, text="${S.memo}"),
        question,
        step("P", "pay", to="${E.account}", after=("Q",)),
    )

    assert len(said) == 1


def test_a_step_in_between_that_is_skipped_at_once_does_not_make_anybody_wait():
    question = asks("Q", details={"account": "${E.account}"})
    between = step("B", "look", x="${M.x}", after=("Q",))

    said = told(
        step("E", "read_mail"),
        step("M", "look", when="inputs.to == 'bob'"),
        question,
        between,
        step("P", "pay", to="${E.account}", after=("B",)),
    )

    assert len(said) == 1


def test_a_question_beside_the_payment_comes_too_late():
    question = asks("Q", details={"account": "${E.account}"})

    assert len(told(step("E", "read_mail"), question, PAY)) == 1


def test_a_person_makes_nothing_less_confidential():
    said = told(
        step("E", "person"),
        asks("Q", details={"name": "${E.name}"}),
        step("P", "pay", to="ann", note="${E.name}", after=("Q",)),
    )

    assert len(said) == 1


def test_policy_raises_the_labels_of_a_tool_and_of_one_field_and_lowers_none():
    plan = (step("L", "look"), step("P", "pay", to="${L.id}", note="${L.name}"))
    field = '[[label]]\ntool = "look"\nfield = "name"\nconfidentiality = ["pii"]\n'
    whole = '[[label]]\ntool = "look"\nintegrity = "untrusted"\n'
    lower = '[[label]]\ntool = "read_mail"\nintegrity = "trusted"\n'

    assert told(*plan) == []
    assert [said.split(":")[0] for said in told(*plan, policy=field + whole)] == [
        "untrusted data reaches pay.to",
        "pii data reaches pay.note, which is not cleared for it",
    ]
    assert told(step("E", "read_mail"), PAY, policy=lower) != []


def test_a_long_way_is_cut_in_the_middle_and_names_its_beginning():
    chain = [step("C0", "read_mail")]
    chain += [step(f"C{n}", "tidy", text=f"${{C{n - 1}.text}}") for n in range(1, 40)]

    [said] = told(*chain, step("P", "pay", to="${C39.text}"))

    assert "read_mail.text → … → " in said
    assert said.endswith("C38 → C39 → P)")


def test_a_demanded_guard_that_is_skipped_with_what_it_reads_protects_nothing():
    data = sound()
    data["steps"][0]["when"] = "inputs.cents > 900"
    data["steps"][2]["args"]["id"] = "${inputs.order}"
    data["steps"][2]["success"][0]["args"]["id"] = "${inputs.order}"

    guards = {each[:2] for each in found(data) if each[0] == "skippable_guard"}

    # S2 asks the customer about S1, so it goes when S1 goes, and S3 would pay unasked.
    assert guards == {("skippable_guard", "S3")}


@pytest.mark.slow
def test_ten_thousand_steps_in_one_chain_are_traced_in_linear_time():
    def seconds(count: int) -> float:
        chain = [step("C0", "read_mail")]
        chain += [step(f"C{n}", "tidy", text=f"${{C{n - 1}.text}}") for n in range(1, count)]
        start = time.process_time()
        assert len(told(*chain, step("P", "pay", to=f"${{C{count - 1}.text}}"))) >= 1
        return time.process_time() - start

    few, many = seconds(1_000), seconds(10_000)

    assert many < 30 * few + 0.5


TOOLS = ("search", "read_mail", "person", "look", "tidy", "register", "mask", "pay", None)


@st.composite
def plans(draw: st.DrawFn) -> list[Step]:
    """Steps that each read any of the earlier ones; without people, who may lower a label."""
    made: list[Step] = []
    for n in range(draw(st.integers(2, 8))):
        refs = st.sampled_from(["${inputs.to}"] + [f"${{S{m}.memo}}" for m in range(n)])
        args = draw(st.dictionaries(st.sampled_from(["to", "note", "x"]), refs, max_size=3))
        made.append(step(f"S{n}", draw(st.sampled_from(TOOLS)), **args))
    return made


def issues(steps: list[Step], specs: tuple[ToolSpec, ...] = SPECS, policy: str = "") -> set[str]:
    """By place and label, without the way: another edge may be another way."""
    return {
        f"{said.split(':')[0]} {said.rpartition(' ')[2]}"
        for said in told(*steps, specs=specs, policy=policy)
    }


@pytest.mark.slow
@given(steps=plans(), data=st.data())
@settings(max_examples=60, deadline=None)
def test_one_more_edge_never_removes_a_finding(steps, data):
    at = data.draw(st.integers(1, len(steps) - 1))
    source = data.draw(st.integers(0, at - 1))
    name = data.draw(st.sampled_from(["more", "y"]))
    changed = [*steps]
    changed[at] = steps[at].model_copy(
        update={"args": {**steps[at].args, name: f"${{S{source}.memo}}"}}
    )

    assert issues(steps) <= issues(changed)


@pytest.mark.slow
@given(steps=plans(), tool=st.sampled_from([each.name for each in SPECS]), field=st.booleans())
@settings(max_examples=60, deadline=None)
def test_one_more_label_never_removes_a_finding(steps, tool, field):
    where = 'field = "memo"\n' if field else ""
    more = f'[[label]]\ntool = "{tool}"\n{where}integrity = "untrusted"\nconfidentiality = ["x"]\n'

    assert issues(steps) <= issues(steps, policy=more)


@given(steps=plans(), cleared=st.sampled_from(["untrusted", "pii", "x"]))
@settings(max_examples=60, deadline=None)
def test_a_sanitiser_removes_exactly_what_it_declares(steps, cleared):
    def with_tidy(*sanitises: str) -> tuple[ToolSpec, ...]:
        others = tuple(each for each in SPECS if each.name not in ("tidy", "look"))
        return (*others, spec("tidy", "none", sanitises=sanitises), spec("look"))

    before, after = issues(steps, with_tidy()), issues(steps, with_tidy(cleared))

    assert after <= before
    assert all(said.startswith(cleared) for said in before - after)
