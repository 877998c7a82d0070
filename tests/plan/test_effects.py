from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plangate.plan.catalog import Effect, ToolSpec
from plangate.plan.effects import MOST_REFS, claims_of, effect_key, evidence_of, fill
from plangate.plan.errors import ConfigError

OBJECT = {"type": "object"}
PAY = ToolSpec(
    name="pay",
    summary="s",
    effect=Effect.IRREVERSIBLE,
    params=OBJECT,
    output=OBJECT,
    key="refund:{order_id}:{cents}",
    scope="global",
    reads=("order:{order_id}",),
    writes=("order:{order_id}", "till"),
    evidence=("order://{order_id}?version={order.version}", "line://{lines.0.id}"),
)
ARGS = {"order_id": "ORD-1", "cents": 12900, "note": "hi"}


def with_key(key: str, **more: object) -> ToolSpec:
    return ToolSpec(**{**dict(PAY), "key": key, **more})


def test_the_business_key_is_readable():
    assert effect_key(PAY, ARGS, "g").business == "refund:ORD-1:12900"


def test_only_the_values_of_the_key_count():
    same = effect_key(PAY, {"cents": 12900.0, "order_id": "ORD-1", "note": "other"}, "g2")
    less = effect_key(PAY, {**ARGS, "cents": 100}, "g")

    assert same == effect_key(PAY, ARGS, "g")
    assert less.key != same.key


@given(st.permutations(list(ARGS)))
def test_the_order_of_arguments_does_not_count(names: list[str]):
    assert effect_key(PAY, {name: ARGS[name] for name in names}, "g") == effect_key(PAY, ARGS, "g")


def test_the_scope_says_where_a_key_is_unique():
    of_goal = with_key("refund:{order_id}", scope="goal")

    assert effect_key(of_goal, ARGS, "g1").key != effect_key(of_goal, ARGS, "g2").key
    assert effect_key(PAY, ARGS, "g1").key == effect_key(PAY, ARGS, "g2").key


def test_another_tool_with_the_same_key_is_the_same_effect():
    assert effect_key(PAY, ARGS, "g") == effect_key(with_key(PAY.key or "", name="pay2"), ARGS, "g")


def test_a_key_without_a_leading_word_is_named_after_its_tool():
    mail, pay = with_key("{order_id}", name="mail"), with_key("{order_id}")

    assert effect_key(mail, ARGS, "g").business == "mail:ORD-1"
    assert effect_key(mail, ARGS, "g").key != effect_key(pay, ARGS, "g").key


def test_a_separator_inside_a_value_makes_no_two_effects_one():
    spec = with_key("move:{a}:{b}")
    first, second = {"a": "x:y", "b": "z"}, {"a": "x", "b": "y:z"}

    assert effect_key(spec, first, "g").business == effect_key(spec, second, "g").business
    assert effect_key(spec, first, "g").key != effect_key(spec, second, "g").key


@pytest.mark.parametrize("template", ["{nobody}", "{order_id.x}", "{}", "a{", "{order id}"])
def test_a_template_that_cannot_be_filled_is_a_mistake_in_the_contract(template):
    with pytest.raises(ConfigError):
        fill(template, ARGS)


def test_values_are_not_searched_again():
    assert fill("{a}", {"a": "{b}", "b": "x"}) == "{b}"


def test_a_tool_that_does_not_act_has_no_effect_key():
    look = ToolSpec(name="look", summary="s", effect=Effect.READ, params=OBJECT, output=OBJECT)

    with pytest.raises(ConfigError, match="no effect key"):
        effect_key(look, ARGS, "g")


def test_claims_name_what_a_call_touches_even_before_values_are_known():
    claims = claims_of(PAY, {"order_id": "${S1.id}"})

    assert claims == ({"order:${S1.id}"}, {"order:${S1.id}", "till"})


def test_evidence_is_made_of_what_the_result_shows():
    output = {"order": {"version": 8}, "lines": [{"id": "a b"}]}

    assert evidence_of(PAY, ARGS, output) == ("order://ORD-1?version=8", "line://a%20b")


@pytest.mark.parametrize("output", [{}, {"order": {"version": None}}, {"lines": []}])
def test_a_result_that_shows_nothing_is_no_evidence(output):
    assert evidence_of(PAY, ARGS, output) == ()


def test_a_list_is_evidence_of_each_of_its_elements_up_to_a_bound():
    spec = PAY.model_copy(update={"evidence": ("line://{ids}", "pair://{ids}/{more}")})
    output = {"ids": ["a", "b", None], "more": ["x"]}

    assert evidence_of(spec, ARGS, output)[:2] == ("line://a", "line://b")
    assert evidence_of(spec, ARGS, {"ids": []}) == ()
    assert len(evidence_of(spec, ARGS, {"ids": [str(n) for n in range(5_000)]})) == MOST_REFS
