from __future__ import annotations

from decimal import Decimal

from plangate.budget.estimate import P95_FACTOR, estimate
from plangate.budget.prices import PriceBook
from plangate.plan.catalog import Catalog, Effect, ToolSpec
from plangate.plan.value.plan import Author, Plan
from plangate.plan.value.step import Check, Question, Step

OBJECT = {"type": "object", "properties": {}}
BOOK = PriceBook({"judge": {"input": 1, "output": 10}})


def spec(name: str, seconds: float, usd: str | None = "0", **said) -> ToolSpec:
    price = None if usd is None else Decimal(usd)
    return ToolSpec(
        name=name,
        summary="s",
        effect=Effect.READ,
        params=OBJECT,
        output=OBJECT,
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
    ]
)


def step(name: str, tool: str | None = "quick", *, after=(), success=(), **said) -> Step:
    return Step(id=name, objective="o", tool=tool, after=after, success=success, **said)


def plan(*steps: Step, criteria=()) -> Plan:
    return Plan(
        goal_id="g",
        goal="g",
        task_type="t",
        steps=steps,
        success_criteria=criteria,
        author=Author(kind="human"),
    )


def looks(name: str) -> Check:
    return Check(id=name, level="L2", claim="c", tool="look", rule="true")


def judged(name: str) -> Check:
    return Check(id=name, level="L3", claim="c")


def test_money_adds_up_and_time_follows_the_longest_path():
    made = plan(step("a"), step("b", "slow"), step("c", after=("a", "b")))

    got = estimate(made, CATALOG, book=BOOK)

    assert (got.usd_p50, got.usd_p95, got.calls) == (Decimal("0.04"), Decimal("0.04"), 3)
    assert (got.seconds.p50, got.seconds.p95) == (5.0, 5.0 * P95_FACTOR)
    assert [each.source for each in got.steps] == ["contract"] * 3
    assert got.price_table == BOOK.table


def test_checks_that_look_at_the_world_are_calls_too():
    made = plan(step("a", success=(looks("a.1"),)), criteria=(looks("g.1"),))

    got = estimate(made, CATALOG, book=BOOK)

    assert (got.steps[0].usd_p50, got.steps[0].seconds.p50) == (Decimal("0.015"), 1.5)
    assert (got.usd_p50, got.calls, got.seconds.p50) == (Decimal("0.020"), 3, 2.0)


def test_one_unknown_price_makes_the_sum_unknown_and_nothing_else():
    got = estimate(plan(step("a"), step("b", "priceless")), CATALOG, book=BOOK)

    assert (got.usd_p50, got.usd_p95) == (None, None)
    assert [each.usd_p50 for each in got.steps] == [Decimal("0.01"), None]


def test_a_tool_that_nobody_knows_has_an_unknown_price():
    [only] = estimate(plan(step("a", "invented")), CATALOG, book=BOOK).steps

    assert (only.usd_p95, only.source) == (None, "default")


def test_waiting_for_a_person_is_not_counted():
    asked = Question(audience="customer", type="confirm", text="Sure?")
    made = plan(step("a"), step("h", None, kind="human", question=asked, after=("a",)))

    got = estimate(made, CATALOG, book=BOOK)

    assert (got.seconds.p50, got.calls, got.usd_p50) == (1.0, 1, Decimal("0.01"))


def test_a_tool_that_runs_one_at_a_time_is_the_tighter_limit():
    made = plan(*(step(f"s{n}", "narrow") for n in range(5)))

    assert estimate(made, CATALOG, book=BOOK).seconds.p50 == 10.0


def test_what_is_spent_stands_beside_what_is_to_come():
    got = estimate(plan(step("a")), CATALOG, book=BOOK, spent_usd=Decimal("0.5"), spent_tokens=70)

    assert (got.usd_p50, got.spent_usd) == (Decimal("0.01"), Decimal("0.5"))
    assert (got.tokens.p95, got.spent_tokens) == (0, 70)


def test_an_unknown_cost_of_planning_stays_unknown():
    assert estimate(plan(step("a")), CATALOG, book=BOOK, spent_usd=None).spent_usd is None


def test_a_judge_costs_tokens_where_there_is_one():
    made = plan(step("a", success=(judged("a.1"),)))

    without = estimate(made, CATALOG, book=BOOK)
    with_judge = estimate(made, CATALOG, book=BOOK, model="judge")

    assert (without.calls, without.tokens.p50) == (1, 0)
    assert (with_judge.calls, with_judge.tokens.p50) == (2, 1400)
    assert with_judge.usd_p50 == Decimal("0.01") + Decimal("0.0012") + Decimal("0.002")
    assert with_judge.usd_p95 == Decimal("0.01") + 2 * Decimal("0.0032")
    assert estimate(made, CATALOG, book=BOOK, model="nobody").usd_p50 is None


def test_a_cycle_and_a_doubled_id_are_estimated_all_the_same():
    made = plan(step("a", after=("b",)), step("b", after=("a",)), step("c"), step("c"))

    got = estimate(made, CATALOG, book=BOOK)

    assert len(got.steps) == 4


def test_a_thousand_steps_are_estimated_at_once():
    made = plan(*(step(f"s{n}", after=(f"s{n - 1}",) if n else ()) for n in range(1000)))

    assert estimate(made, CATALOG, book=BOOK).seconds.p50 == 1000.0


def test_a_step_over_a_list_is_estimated_at_its_bound():
    over = step("a", "narrow", for_each="${inputs.all}", max_items=4, success=(looks("c"),))

    made = estimate(plan(over), CATALOG, book=BOOK)

    assert made.calls == 8
    assert made.usd_p95 == made.steps[0].usd_p95 == Decimal("0.02")
    assert made.seconds.p50 == 10.0
