from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plangate.plan.shape.cel import MAX_LENGTH, MAX_NODES, Compiled, compile_rule
from plangate.plan.shape.scope import RuleScope, rule_scope
from plangate.plan.shape.tokens import steps_in
from tests.plan.workshop import CATALOG, WHOLE, read, record, sound, spec

LEVELS = record(
    status={"enum": ["ok", "bad"]},
    n=WHOLE,
    x={"type": "number"},
    ok={"type": "boolean"},
    note={"type": ["string", "null"]},
    opt={"type": "string", "default": ""},
    items={"type": "array", "items": record(price=WHOLE)},
    tags={"type": "array", "items": {"type": "string"}},
    free={},
)


def scope(**rest: Any) -> RuleScope:
    catalog = CATALOG.of([*CATALOG.tools.values(), spec("levels", output=LEVELS)])
    data = sound()
    data["steps"][3].update(tool="levels")
    given = {"step": "S4", "observed": "check_order", **rest}
    return rule_scope(read(data), catalog, **given)


RESULT = {
    "status": "ok",
    "n": 3,
    "x": 1,
    "ok": True,
    "note": None,
    "items": ({"price": 2}, {"price": 5}),
    "tags": ["a", "b"],
    "free": {"deep": [1]},
}
VALUES: dict[str, Any] = {
    "result": RESULT,
    "observed": {"ok": True},
    "inputs": {"order": "ORD-1", "cents": 500},
    "steps": {"S1": {"output": {"cents": 5, "status": "paid"}, "status": "done"}},
    "run": {"spent_usd": 0.5, "elapsed_s": 2.0, "failures": 1, "replans": 0},
    "facts": {"found": True},
}


def compiled(rule: str, **rest: Any) -> Compiled:
    made = compile_rule(rule, scope(**rest))
    assert isinstance(made, Compiled), made
    return made


def faults(rule: str, **rest: Any) -> str:
    made = compile_rule(rule, scope(**rest))
    assert isinstance(made, tuple), made
    return "\n".join(f"{fault.says} | {fault.hint}" for fault in made)


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ("result.status == 'ok' && result.n > 2", True),
        ("result['status'] == 'ok'", True),
        ("result.x < 2.5 && double(result.n) > result.x", True),
        ("result.ok", True),
        ("result.note == null", True),
        ("null != result.note", False),
        ("result.note != null && result.note.startsWith('x')", False),
        ("result.note == 'x'", None),
        ("has(result.opt)", False),
        ("!has(result.opt) || result.opt == 'x'", True),
        ("result.opt == 'x'", None),
        ("true || result.opt == 'x'", True),
        ("result.items.all(i, i.price > 1)", True),
        ("result.items[1].price == 5", True),
        ("result.items[7].price == 5", None),
        ("'b' in result.tags && size(result.items) == 2", True),
        ("result.free.deep[0] == 1", True),
        ("steps.S1.status == 'done' && steps.S1.output.cents == 5", True),
        ("observed.ok && inputs.cents == 500", True),
        ("run.spent_usd < 1.0 && run.failures < 3", True),
        ("facts.found == true", True),
        ("facts.gone == true", None),
        ("result.n / 0 == 1", None),
        ("'result.n is text' == 'steps.S9.output.x'", False),
        ("result.status.matches(r'^o.$') // result.gone", True),
    ],
)
def test_a_rule_is_true_false_or_unknown(rule: str, says: bool | None):
    assert compiled(rule).evaluate(VALUES) is says


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ("result.statsu == 'ok'", "Did you mean status"),
        ("result.status == 'okay'", "'result.status' is never 'okay'"),
        ("result.status in ['ok', 'okay']", "is never 'okay'"),
        ("result.n > 2.0", "Write 1.0"),
        ("result.n == 'x'", "does not take (int, string)"),
        ("result.n == null", "is never null"),
        ("result.items.all(i, i.prise > 1)", "i has no 'prise'"),
        ("result.n", "gives int, not true or false"),
        ("facts.found", "gives dyn"),
        ("result.ok &&", "Syntax error"),
        ("count(result.items) == 1", "undeclared reference to 'count'"),
        ("resutl.ok", "Did you mean result?"),
        ("steps.S9.output.ok", "there is no step 'S9'"),
        ("steps.S1.cents == 1", "Write steps.S1.output.<field>"),
        ("steps == 1", "names no value of a step"),
        ("result.items.map(i, i.price) == [2]", "without bound"),
        ("[1].all(a, [1].all(b, [1].all(c, true)))", "more than 2"),
        ("result.tags.exists(result, true)", "is a name of ours"),
        ("result.ok || " * 50 + "true", f"more than {MAX_LENGTH}"),
    ],
)
def test_what_is_wrong_with_a_rule_is_said_before_it_runs(rule: str, says: str):
    assert says in faults(rule)


def test_names_are_those_that_can_be_seen_at_the_place():
    assert "need not have settled" in faults("steps.S4.output.ok", step="S1", observed=None)
    assert "has not run yet" in faults("steps.S4.output.ok", before=True)
    assert "only in the checks of a step" in faults("result.ok", before=True)
    assert "the check names no tool" in faults("observed.ok", observed=None)
    assert compiled("steps.S4.output.ok", step=None).names == ("steps.S4.output.ok",)


def test_names_of_unknown_type_are_told():
    assert compiled("result.free == 1 && result.n == 1").unchecked == ("result.free",)


def test_steps_are_found_in_any_rule():
    assert steps_in("steps.S1.output.x == 1 && (steps . S2.status == 'done' ||") == {"S1", "S2"}
    assert steps_in("steps['S3'].output.x == 'steps.S4.x' // steps.S5") == {"S3"}


@pytest.mark.parametrize(
    "tags", [["a"] * (MAX_NODES + 1), ["\ud800"], [1], None, "a", [None], ["x" * 10**6]]
)
def test_data_that_is_too_large_or_not_as_declared_is_unknown(tags: Any):
    rule = compiled("result.tags.all(t, t != 'q')")

    assert rule.evaluate({**VALUES, "result": {**RESULT, "tags": tags}}) in (None, True)


ATOMS = ("result.ok", "result.n > 2", "result.status == 'ok'", "observed.ok", "result.opt == 'x'")
RULES = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: st.one_of(
        st.builds("({} && {})".format, inner, inner),
        st.builds("({} || {})".format, inner, inner),
        st.builds("!({})".format, inner),
        st.builds("({} ? {} : {})".format, inner, inner, inner),
    ),
    max_leaves=5,
)
FULL = {"result": {**RESULT, "opt": "x"}, "observed": {"ok": False}}
SCOPE = scope()


@given(RULES, st.sets(st.sampled_from(["ok", "n", "status", "opt", "observed"])))
def test_missing_data_makes_a_rule_unknown_and_never_another_answer(rule: str, gone: set[str]):
    made = compile_rule(rule, SCOPE)
    if not isinstance(made, Compiled):
        return  # longer than a rule may be
    partial = {
        "result": {name: value for name, value in FULL["result"].items() if name not in gone},
        **({} if "observed" in gone else {"observed": FULL["observed"]}),
    }

    assert made.evaluate(partial) in (None, made.evaluate(FULL))
    assert made.evaluate({}) is None


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["ok", "n", "tags", "note", "price"]), inner, max_size=4),
    ),
    max_leaves=10,
)


JUDGED = (
    "result.n > 2",
    "result.tags.all(t, t.size() > 0)",
    "result.note == null",
    "result.ok",
    "has(result.opt)",
    "result.items.exists(i, i.price == 2)",
    "result.free.a == 1",
    "result.x > 0.0",
)


@given(st.sampled_from(JUDGED), JSON)
def test_judging_a_rule_never_raises(rule: str, value: Any):
    made = compile_rule(rule, SCOPE)
    assert isinstance(made, Compiled)

    assert made.evaluate({"result": value}) in (True, False, None)
    assert made.evaluate({"result": dict.fromkeys(RESULT, value)}) in (True, False, None)


SIGNS = "result . ok tags ( ) [ ] == null 'a' && has ! in exists t , 1 1.0 steps S1 ? : { }"
WORDS = (*SIGNS.split(), '"', "//", "é", "\n")


@given(st.lists(st.sampled_from(WORDS), max_size=12), st.sampled_from(["", " "]))
def test_any_text_can_stand_where_a_rule_should(words: list[str], between: str):
    made = compile_rule(between.join(words) or " ", SCOPE)

    assert isinstance(made, Compiled) or all(fault.says for fault in made)
