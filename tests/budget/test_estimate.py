from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from plangate.budget.estimate import Known, Spent, estimate
from plangate.budget.granularity import alternatives
from plangate.budget.prices import PriceBook
from plangate.budget.roles import Role, Roles
from plangate.plan.catalog import Catalog, Effect, ToolSpec
from plangate.plan.cuts import cuts, dearest
from plangate.plan.forecast import PlanEstimate, Range
from plangate.plan.value.plan import Author, Plan
from plangate.plan.value.step import Check, Question, Route, Step

OBJECT = {"type": "object", "properties": {}}
PRICES = {"input": 3, "output": 15}
BOOK = PriceBook({"judge": {"input": 1, "output": 10}, "writer": PRICES, "critic": PRICES})
STEP = Role(model="writer", prompt="Do it.", sha256="ab" * 32)
CRITIC = Role(model="critic", prompt="Judge it.", sha256="cd" * 32, schema=OBJECT)
ROLES = Roles(step=STEP, critic=CRITIC, planner=Role(model="writer", prompt="Plan it."))
JUDGE = Roles(judge=Role(model="judge", prompt=""))


def spec(name: str, seconds: float, usd: str | None = "0", effect=Effect.READ, **said) -> ToolSpec:
    price = None if usd is None else Decimal(usd)
    return ToolSpec(
        name=name,
        summary="s",
        effect=effect,
        params=OBJECT,
        output=said.pop("output", OBJECT),
        seconds=seconds,
        usd=price,
        **said,
    )


CATALOG = Catalog.of(
    [
        spec("quick", 1.0, "0.01"),
        spec("slow", 4.0, "0.02"),
        spec("look", 0.5, "0.005"),
        spec("priceless", 1.0, None),
        spec("narrow", 2.0, concurrency=1),
        spec("evidence", 1.0, output_tokens=4_000 - 46),
        spec("order", 1.0, "0.01", evidence=("order://{id}?version={version}",)),
        spec("pay", 1.0, effect=Effect.IRREVERSIBLE, key="pay", scope="goal"),
    ]
)


def step(name: str, tool: str | None = "quick", *, after=(), success=(), **said) -> Step:
    return Step(id=name, objective="o", tool=tool, after=after, success=success, **said)


def asks_model(name: str, **said) -> Step:
    said = {"objective": "Write it", "output": OBJECT, **said}
    return Step(id=name, kind="model", **said)


def sections(count: int, letters: int = 4_776) -> dict:
    """So many sections of 600 tokens each: 4,776 letters at most, half of that in the middle."""
    text = {"type": "string", "maxLength": letters}
    return {
        "type": "object",
        "properties": {
            "sections": {"type": "array", "items": text, "minItems": count, "maxItems": count}
        },
        "required": ["sections"],
    }


def plan(*steps: Step, criteria=(), **said) -> Plan:
    return Plan(
        goal_id="g",
        goal="g",
        task_type="t",
        steps=steps,
        success_criteria=criteria,
        author=Author(kind="human"),
        **said,
    )


def estimated(made: Plan, spent: Spent | None = None, **known) -> PlanEstimate:
    return estimate(made, Known(catalog=CATALOG, book=BOOK, **known), spent or Spent())


def beside(got: PlanEstimate, role: str):
    return next(each for each in got.overhead if each.role == role)


def asks(name: str, **said) -> Step:
    asked = Question(audience="customer", type="confirm", text="Sure?")
    return step(name, None, kind="human", question=asked, **said)


def looks(name: str) -> Check:
    return Check(id=name, level="L2", claim="c", tool="look", rule="true")


def judged(name: str) -> Check:
    return Check(id=name, level="L3", claim="c")


def test_money_adds_up_and_time_follows_the_longest_path():
    got = estimated(plan(step("a"), step("b", "slow"), step("c", after=("a", "b"))))

    assert (got.usd_p50, got.calls.p50) == (Decimal("0.04"), 3)
    assert got.seconds.p50 == 5.0
    assert [each.seconds.p95 for each in got.steps] == [2.0, 8.0, 2.0]
    assert [each.source for each in got.steps] == ["contract"] * 3
    assert got.price_table == BOOK.table


def test_checks_that_look_at_the_world_are_calls_too():
    got = estimated(plan(step("a", success=(looks("a.1"),)), criteria=(looks("g.1"),)))

    assert (got.steps[0].usd_p50, got.steps[0].seconds.p50) == (Decimal("0.015"), 1.5)
    assert (got.usd_p50, got.calls.p50, got.seconds.p50) == (Decimal("0.020"), 3, 2.0)
    assert beside(got, "goal checks").calls == Range(p50=1, p95=1)


def test_one_unknown_price_makes_the_sum_unknown_and_nothing_else():
    got = estimated(plan(step("a"), step("b", "priceless")))

    assert (got.usd_p50, got.usd_p95) == (None, None)
    assert [each.usd_p50 for each in got.steps] == [Decimal("0.01"), None]
    assert got.unknown == ("b: 'priceless' declares no price",)


def test_a_tool_that_nobody_knows_has_an_unknown_price_and_it_is_said_why():
    [only] = estimated(plan(step("a", "invented"))).steps

    assert (only.usd_p95, only.source) == (None, "default")
    assert only.unknown == ("there is no contract for 'invented'",)


def test_waiting_for_a_person_is_not_counted():
    got = estimated(plan(step("a"), asks("h", after=("a",))))

    assert (got.seconds.p50, got.calls.p50, got.usd_p50) == (1.0, 1, Decimal("0.01"))
    assert got.steps[1].source == "person"


def test_a_tool_that_runs_one_at_a_time_is_the_tighter_limit():
    assert estimated(plan(*(step(f"s{n}", "narrow") for n in range(5)))).seconds.p50 == 10.0


def test_what_is_spent_stands_beside_what_is_to_come():
    got = estimated(plan(step("a"), step("b")), Spent(Decimal("0.5"), 70, frozenset({"a"})))

    assert (got.usd_p50, got.spent_usd) == (Decimal("0.01"), Decimal("0.5"))
    assert (got.tokens.p95, got.spent_tokens) == (0, 70)
    assert [each.source for each in got.steps] == ["done", "contract"]


def test_an_unknown_cost_of_planning_stays_unknown():
    assert estimated(plan(step("a")), Spent(None)).spent_usd is None


def test_a_judge_costs_tokens_where_there_is_one():
    made = plan(step("a", success=(judged("a.1"),)))

    without, with_judge = estimated(made).steps[0], estimated(made, roles=JUDGE).steps[0]

    assert (without.calls.p50, without.tokens_in.p50) == (1, 0)
    assert (with_judge.calls.p50, with_judge.model_calls.p50) == (2, 1)
    assert (with_judge.tokens_in, with_judge.tokens_out) == (
        Range(p50=400, p95=600),
        Range(p50=200, p95=400),
    )
    assert with_judge.usd_p50 == Decimal("0.01") + Decimal("0.0004") + Decimal("0.002")
    nobody = Roles(judge=Role(model="nobody-1", prompt=""))
    assert estimated(made, roles=nobody).usd_p50 is None


def test_a_model_step_costs_its_prompt_what_it_is_sent_and_what_its_form_allows():
    made = plan(step("a", "evidence"), asks_model("m", args={"all": "${a}"}, output=sections(6)))

    step_m = estimated(made, roles=ROLES).steps[1]

    assert step_m.tokens_out.p50 == pytest.approx(3_600, rel=0.02)
    assert step_m.tokens_in.p50 == pytest.approx(4_000 + 40, abs=60)
    assert (step_m.calls.p50, step_m.model_calls.p50, step_m.source) == (1, 1, "schema")
    assert "o200k_base" in step_m.token_source
    assert step_m.unknown == ()


def test_output_is_82_percent_of_the_worked_examples_cost():
    made = plan(step("a", "evidence"), asks_model("m", args={"all": "${a}"}, output=sections(6)))

    got = estimated(made, roles=ROLES).steps[1]

    output = Decimal(round(got.tokens_out.p50)) * 15 / 1_000_000
    assert got.usd_p50 == pytest.approx(Decimal("0.066"), rel=Decimal("0.03"))
    assert float(output / got.usd_p50) == pytest.approx(0.82, abs=0.005)


def test_six_sections_estimated_as_three_halve_the_cost_of_the_output():
    six, three = (
        estimated(plan(asks_model("m", output=sections(n))), roles=ROLES).steps[0] for n in (6, 3)
    )

    assert three.tokens_out.p50 / six.tokens_out.p50 == pytest.approx(0.5, abs=0.005)
    assert three.tokens_in.p50 == pytest.approx(six.tokens_in.p50, abs=2)


def test_a_form_without_a_bound_costs_up_to_the_limit_of_a_call_and_says_so():
    free = {"type": "object", "properties": {"text": {"type": "string"}}}

    [only] = estimated(plan(asks_model("m", output=free)), roles=ROLES).steps

    assert only.tokens_out.p95 == STEP.limit
    assert only.unknown == ("no bound for text; at most the limit of the call",)


def test_a_model_step_without_a_model_has_an_unknown_price():
    [only] = estimated(plan(asks_model("m"))).steps

    assert only.usd_p50 is None
    assert only.unknown[0] == "no model is set for model steps"


def test_what_a_model_is_sent_is_counted_where_it_is_known():
    small = plan(asks_model("m", args={"a": "${inputs.a}", "b": "x"}), inputs={"a": "y"})
    large = plan(asks_model("m", args={"a": "${inputs.a}", "b": "x"}), inputs={"a": "word " * 500})

    sent = [estimated(each, roles=ROLES).steps[0].tokens_in for each in (small, large)]

    assert sent[1].p50 - sent[0].p50 == pytest.approx(500, abs=2)
    assert sent[1].p50 == sent[1].p95


def test_an_earlier_answer_is_as_large_as_its_form():
    made = plan(
        asks_model("first", output=sections(2)),
        asks_model("second", args={"text": "${first.sections}"}),
    )

    first, second = estimated(made, roles=ROLES).steps

    assert second.tokens_in.p95 - second.tokens_in.p50 == pytest.approx(
        first.tokens_out.p95 - first.tokens_out.p50, rel=0.02
    )


@pytest.mark.parametrize(
    ("said", "inputs", "count"),
    [
        ({"for_each": "${inputs.ids}", "max_items": 50}, {"ids": ["a", "b", "c"]}, (3, 3)),
        ({"for_each": "${inputs.ids}", "max_items": 2}, {"ids": ["a", "b", "c"]}, (2, 2)),
        ({"for_each": "${s.ids}", "max_items": 9}, {}, (5, 9)),
        ({"for_each": "${s.ids}", "max_items": 1}, {}, (1, 1)),
    ],
)
def test_a_step_for_each_element_is_taken_so_many_times(said, inputs, count):
    got = estimated(plan(step("a", **said), inputs=inputs)).steps[0]

    assert (got.calls.p50, got.calls.p95) == count
    assert got.usd_p95 == Decimal("0.01") * count[1]
    assert got.seconds.p50 == 1.0, "side by side"


def test_elements_of_a_narrow_tool_wait_for_each_other():
    got = estimated(plan(step("a", "narrow", for_each="${s.ids}", max_items=8)))

    assert (got.seconds.p50, got.steps[0].seconds.p95) == (8.0, 32.0)


def test_a_stand_in_is_expected_at_the_high_end_alone():
    route = Route(on="permanent", action="fallback", step="b")

    got = estimated(plan(step("a", routes=(route,)), step("b", "slow"))).steps[1]

    assert (got.calls, got.usd_p50, got.usd_p95) == (Range(p50=0, p95=1), 0, Decimal("0.02"))
    assert got.seconds == Range(p50=0, p95=8)


def test_a_critic_a_second_draft_and_repairs_are_overhead():
    got = estimated(plan(step("a"), step("b"), step("c")), roles=ROLES)

    assert [each.role for each in got.overhead] == ["critic", "planner", "repair"]
    assert [each.calls for each in got.overhead] == [
        Range(p50=1, p95=2),
        Range(p50=0, p95=1),
        Range(p50=0, p95=1),
    ]
    assert got.model_calls == Range(p50=1, p95=3)
    assert got.seconds.p50 == 1.0, "planning is not execution"


def test_reads_are_made_again_before_an_irreversible_act():
    made = plan(step("a", "order"), asks("h", after=("a",)), step("p", "pay", after=("h",)))

    assert beside(estimated(made), "reread").calls == Range(p50=1, p95=1)
    assert beside(estimated(made), "reread").usd_p95 == Decimal("0.01")
    assert [each.role for each in estimated(made, rereads=False).overhead] == ["repair"]
    late = plan(step("a", "order"), step("p", "pay", after=("a",)))
    assert beside(estimated(late), "reread").calls == Range(p50=0, p95=1)


def test_the_dearest_steps_are_named_first_and_an_unknown_price_is_dearest():
    got = estimated(plan(step("a"), step("b", "slow"), step("c", "priceless")))

    assert [each.step for each in dearest(got)] == ["c", "b", "a"]
    assert cuts(got)[0] == (
        "Cut: the dearest steps are c (price unknown), b (0.02 USD), a (0.01 USD)."
    )
    assert [each.partition(" ")[0] for each in cuts(got)] == ["Cut:", "Split:", "Run"]


def found(made: Plan) -> list[tuple]:
    known = Known(catalog=CATALOG, book=BOOK, roles=ROLES)
    return [
        (each.says.partition(":")[0], each.calls.p95, each.usd_p95)
        for each in alternatives(made, known, estimate(made, known))
    ]


def test_batches_of_a_paid_tool_cost_half_or_twice_the_calls():
    assert found(plan(step("a", for_each="${s.ids}", max_items=8))) == [
        ("coarser", 4, Decimal("0.04")),
        ("finer", 16, Decimal("0.16")),
    ]


def test_a_finer_cut_of_an_answer_sends_the_prompt_more_often():
    made = plan(step("a", "evidence"), asks_model("m", args={"all": "${a}"}, output=sections(6)))
    whole = estimated(made, roles=ROLES).steps[1].usd_p95

    half, one = found(made)

    assert (half[:2], one[:2]) == (("finer", 2), ("finest", 6))
    assert whole < half[2] < one[2]


def test_a_cycle_and_a_doubled_id_are_estimated_all_the_same():
    made = plan(step("a", after=("b",)), step("b", after=("a",)), step("c"), step("c"))

    assert len(estimated(made).steps) == 4


@pytest.mark.slow
def test_ten_thousand_steps_are_estimated_at_once():
    made = plan(*(step(f"s{n}", "pay", after=(f"s{n - 1}",) if n else ()) for n in range(10_000)))

    assert estimated(made).seconds.p50 == 10_000.0


def test_a_step_over_a_list_has_checks_for_each_element():
    over = step("a", "narrow", for_each="${inputs.all}", max_items=4, success=(looks("c"),))

    only = estimated(plan(over)).steps[0]

    assert only.calls == Range(p50=4, p95=8)
    assert only.usd_p95 == Decimal("0.02")
    assert only.seconds.p95 == 20.0


def of_any_kind(at: int) -> st.SearchStrategy[Step]:
    name = f"s{at}"
    after = (f"s{at - 1}",) if at % 2 else ()
    tools = st.sampled_from(["quick", "slow", "priceless", "narrow", "order", "pay", "invented"])
    return st.one_of(
        tools.map(lambda tool: step(name, tool, after=after)),
        tools.map(lambda tool: step(name, tool, for_each="${x.y}", max_items=3)),
        st.integers(1, 4).map(lambda n: asks_model(name, output=sections(n), after=after)),
        st.just(asks(name, after=after)),
        st.just(step(name, success=(looks(f"{name}.1"), judged(f"{name}.2")))),
    )


FEW = settings(max_examples=15)
STEPS = st.integers(1, 6).flatmap(lambda count: st.tuples(*map(of_any_kind, range(count))))


@FEW
@given(STEPS, st.booleans())
def test_an_estimate_is_the_sum_over_steps_and_overhead(steps, models):
    got = estimated(plan(*steps), roles=ROLES if models else Roles())
    parts = [*got.steps, *got.overhead]

    for name in ("tokens_in", "tokens_out", "calls", "model_calls"):
        for end in ("p50", "p95"):
            whole = getattr(getattr(got, name), end)
            assert whole == pytest.approx(sum(getattr(getattr(e, name), end) for e in parts))
    for end in ("usd_p50", "usd_p95"):
        costs = [getattr(each, end) for each in parts]
        assert getattr(got, end) == (None if None in costs else sum(costs))


@FEW
@given(STEPS)
def test_the_middle_is_never_above_the_high_end(steps):
    got = estimated(plan(*steps), roles=ROLES)

    for each in (got, *got.steps, *got.overhead):
        for span in (each.seconds, each.tokens_in, each.tokens_out, each.calls):
            assert span.p50 <= span.p95
        assert each.usd_p50 is None or each.usd_p50 <= each.usd_p95


@FEW
@given(STEPS)
def test_one_more_step_never_lowers_an_estimate(steps):
    assume(len(steps) > 1)  # of no step at all there is no plan
    less, more = (estimated(plan(*each), roles=ROLES) for each in (steps[:-1], steps))

    for name in ("seconds", "tokens_in", "tokens_out", "calls"):
        for end in ("p50", "p95"):
            small, large = (getattr(getattr(each, name), end) for each in (less, more))
            assert small <= large + 1e-9
    assert more.usd_p95 is None or (less.usd_p95 is not None and less.usd_p95 <= more.usd_p95)


@FEW
@given(STEPS)
def test_what_is_not_known_is_contagious_and_never_zero(steps):
    got = estimated(plan(*steps), roles=ROLES)
    tools = {each.tool for each in steps}

    assert (got.usd_p95 is None) == bool(tools & {"priceless", "invented"})
