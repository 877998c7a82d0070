from __future__ import annotations

import ast
import warnings
from dataclasses import astuple
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import genai_prices
import pytest
from genai_prices.data import providers
from hypothesis import given, settings
from hypothesis import strategies as st

from plangate.budget import packaged
from plangate.budget.prices import PriceBook, Usage, cost_parts, most_cost, usage_cost
from plangate.plan.errors import ConfigError

ROOT = Path(__file__).parent.parent.parent
WORKED = PriceBook({"m": {"input": 3, "output": 15}})
FULL = PriceBook(
    {
        "m": {
            "input": "3",
            "cached": "0.3",
            "cache_write": "3.75",
            "output": 15,
            "reasoning": "20",
            "tiers": [
                {"above": 1_000, "input": 4, "cached": "0.4", "cache_write": 5, "output": 20},
                {"above": 2_000, "input": 6, "cached": "0.6", "cache_write": 8, "output": 30},
            ],
        }
    }
)
MINI = Usage(input_tokens=1200, cached_tokens=1000, output_tokens=300)
NOW = datetime(2026, 12, 1, tzinfo=UTC)


def test_the_worked_example_is_exact_part_by_part():
    parts = cost_parts(Usage(input_tokens=4_000, output_tokens=3_600), "m", WORKED)

    assert (parts.input, parts.output, parts.total) == (
        Decimal("0.012"),
        Decimal("0.054"),
        Decimal("0.066"),
    )
    assert (parts.output / parts.total).quantize(Decimal("0.01")) == Decimal("0.82")


def test_six_sections_estimated_as_three_halve_the_cost_of_output():
    three, six = (
        cost_parts(Usage(input_tokens=4_000, output_tokens=n * 600), "m", WORKED) for n in (3, 6)
    )

    assert (six.output, three.output, six.input) == (
        Decimal("0.054"),
        Decimal("0.027"),
        three.input,
    )


def test_each_kind_of_token_has_its_own_rate():
    usage = Usage(
        input_tokens=1_000,
        cached_tokens=200,
        cache_write_tokens=300,
        output_tokens=100,
        reasoning_tokens=40,
    )

    assert astuple(cost_parts(usage, "m", FULL)) == tuple(
        Decimal(each) for each in ("0.0015", "0.00006", "0.001125", "0.0009", "0.0008")
    )


@pytest.mark.parametrize(
    ("tokens", "usd"),
    [(1_000, "0.003"), (1_001, "0.004004"), (2_000, "0.008"), (2_001, "0.012006")],
)
def test_beyond_a_size_the_whole_call_has_another_rate(tokens, usd):
    assert usage_cost(Usage(input_tokens=tokens, output_tokens=0), "m", FULL) == Decimal(usd)


@pytest.mark.parametrize("model", ["gpt-5-mini", "openai:gpt-5-mini"])
def test_cached_tokens_are_cheaper_in_the_packaged_table(model):
    assert usage_cost(MINI, model, PriceBook()) == Decimal("0.000675")


def test_the_table_and_an_override_of_the_same_rates_agree():
    same = PriceBook({"gpt-5-mini": {"input": "0.25", "cached": "0.025", "output": "2"}})

    assert usage_cost(MINI, "openai:gpt-5-mini", same) == Decimal("0.000675")


# Our formula over the packaged rates against the package's own; the sizes fall in each tier.
@pytest.mark.parametrize("size", [1_200, 300_000])
def test_each_packaged_price_is_what_the_package_itself_would_bill(size):
    book, seen = PriceBook(), 0
    for provider in providers:
        if provider.id not in ("openai", "azure", "anthropic", "google", "mistral"):
            continue
        for model in provider.models:
            usage = Usage(input_tokens=size, cached_tokens=1_000, output_tokens=300)
            ours = usage_cost(usage, f"{provider.id}:{model.id}", book)
            if ours is not None:
                theirs = genai_prices.Usage(
                    input_tokens=size, cache_read_tokens=1_000, output_tokens=300
                )
                billed = genai_prices.calc_price(theirs, model.id, provider_id=provider.id)
                assert (model.id, ours) == (model.id, billed.total_price)
                seen += 1
    assert seen > 200


OWN = PriceBook(
    {"gpt-4o": {"input": 1, "output": 1}, "azure:east-1": {"input": 7, "output": 7}},
)
ONE_M = Usage(input_tokens=1_000_000, output_tokens=0)


@pytest.mark.parametrize(
    ("model", "usd"),
    [
        ("gpt-4o-mini", "0.15"),
        ("openai:gpt-4o-mini", "0.15"),
        ("gpt-4o", "1"),
        ("openai:gpt-4o", "1"),
        ("azure:gpt-4o", "1"),
        ("gpt-4o-2024-08-06", "2.5"),
        ("gpt-4o-2024-05-13", "5"),
        ("azure:gpt-4o-mini", "0.15"),
        ("azure:east-1", "7"),
        ("azure:my-deployment", None),
        ("my-deployment", None),
        ("ft:gpt-4o-mini-2024-07-18:org::id", "0.3"),
        ("openai:ft:gpt-4o-mini-2024-07-18:org::id", "0.3"),
        ("ft:gpt-4o-mini:org::id", None),
        ("ft:gpt-4o:org::id", None),
        ("gpt-6", None),
        ("my-model", None),
        ("llama3:8b", None),
        ("nobody:gpt-4o-mini", None),
        ("", None),
        (":", None),
        ("text-embedding-3-small", None),
        ("azure:mai-ds-r1:free", None),
        ("perplexity:sonar", None),
    ],
)
def test_which_price_a_name_gets(model, usd):
    expected = None if usd is None else Decimal(usd)

    assert usage_cost(ONE_M, model, OWN) == expected


def test_a_price_of_zero_is_known_where_the_user_says_so():
    free = PriceBook({"local": {"input": 0, "output": 0}})

    assert usage_cost(MINI, "local", free) == 0


def test_pricing_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        usage_cost(MINI, "gpt-4o", PriceBook())


@pytest.mark.parametrize(
    "rates",
    [
        {},
        {"input": 1},
        {"input": 1, "output": 1, "thinking": 1},
        {"input": 0.1, "output": 1},
        {"input": "cheap", "output": 1},
        {"input": "NaN", "output": 1},
        {"input": Decimal("Infinity"), "output": 1},
        {"input": "1e3", "output": 1},
        {"input": " 1", "output": 1},
        {"input": -1, "output": 1},
        {"input": "-1", "output": 1},
        {"input": True, "output": 1},
        {"input": None, "output": 1},
        {"input": Decimal("1e-13"), "output": 1},
        {"input": 1_000_001, "output": 1},
        {"input": 1, "cached": 2, "output": 1},
        "3",
    ],
)
def test_an_override_that_is_not_exact_is_refused(rates):
    with pytest.raises(ConfigError, match="price of 'm'") as caught:
        PriceBook({"m": rates})

    assert caught.value.hint


@pytest.mark.parametrize(
    "tiers",
    [
        "big",
        7,
        [7],
        [{"input": 1, "output": 1}],
        [{"above": 0, "input": 1, "output": 1}],
        [{"above": True, "input": 1, "output": 1}],
        [{"above": 5, "input": 1}],
        [{"above": 5, "input": 1, "output": 1}, {"above": 5, "input": 2, "output": 2}],
        [{"above": 6, "input": 1, "output": 1}, {"above": 5, "input": 2, "output": 2}],
    ],
)
def test_tiers_that_say_no_size_or_do_not_ascend_are_refused(tiers):
    with pytest.raises(ConfigError, match="price of 'm'"):
        PriceBook({"m": {"input": 1, "output": 1, "tiers": tiers}})


FILE = """\
as_of = 2026-11-01
version = "contract-7"

[models."my-model"]
input = 0.25
cached = "0.025"
output = "2"

[[models."my-model".tiers]]
above = 200_000
input = 0.5
output = 4
"""


def test_a_price_file_is_exact_and_its_version_stands_in_the_table():
    book = PriceBook.from_toml(FILE)

    assert usage_cost(MINI, "my-model", book) == Decimal("0.000675")
    assert usage_cost(Usage(input_tokens=200_001, output_tokens=0), "my-model", book) == Decimal(
        "0.1000005"
    )
    assert " + contract-7 2026-11-01 " in book.table
    assert book.as_of == date(2026, 11, 1)


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("as_of = 2026-11-01", "as_of = ", "not TOML: .* line 1"),
        ("as_of = 2026-11-01", "", "line 1: there is no date as_of"),
        ("2026-11-01", '"2026-11-01"', "line 1: there is no date as_of"),
        ("2026-11-01", "2026-11-01T10:00:00Z", "line 1: there is no date as_of"),
        ('"contract-7"', "7", "line 2: version is no line of text"),
        ("version", "edition", "line 2: unknown key 'edition'"),
        ("0.25", "nan", "line 4: price of 'my-model': input is not an exact amount"),
        ("0.25", "-0.25", "line 4: price of 'my-model': input is not an exact amount"),
        ("0.25", '"cheap"', "line 4: price of 'my-model': input is not an exact amount"),
        ("cached", "cahced", "line 4: price of 'my-model' has cahced, input, output"),
        ("above = 200_000", "above = 0.5", "line 4: a tier of the price of 'my-model'"),
        (FILE[FILE.index("[models") :], "models = 3", "line 4: there is no table of models"),
        (FILE[FILE.index("[models") :], "", "line 1: there is no table of models"),
    ],
)
def test_a_price_file_that_is_wrong_is_refused_with_its_line(before, after, says):
    with pytest.raises(ConfigError, match=says) as caught:
        PriceBook.from_toml(FILE.replace(before, after, 1))

    assert caught.value.hint


@settings(max_examples=40)
@given(st.text(max_size=60))
def test_no_text_of_a_price_file_ends_in_another_error(text):
    with pytest.raises(ConfigError):
        PriceBook.from_toml(text)


def test_the_table_names_the_overrides_by_content():
    other = PriceBook({"m": {"input": 1, "output": 1}})

    assert PriceBook().table.startswith("genai-prices 0.")
    assert len({PriceBook().table, other.table, WORKED.table, FULL.table}) == 4
    assert PriceBook({"m": {"input": "3.0", "output": "15.00"}}).table == WORKED.table


def test_the_date_of_the_installed_table_is_known():
    assert PriceBook().as_of == packaged.packaged_date() is not None


@pytest.mark.parametrize(
    ("days", "is_old", "says"), [(180, False, ""), (181, True, "181 days ago"), (-5, False, "")]
)
def test_a_table_is_old_after_half_a_year(days, is_old, says):
    made = PriceBook().as_of
    now = datetime(made.year, made.month, made.day, tzinfo=UTC) + timedelta(days=days)

    assert (PriceBook().is_old(now), says in PriceBook().age(now)) == (is_old, True)


def test_the_older_of_two_tables_counts_and_a_table_of_unknown_date_is_not_young(monkeypatch):
    own = {"m": {"input": 1, "output": 1}}

    assert PriceBook(own, as_of=date(2026, 1, 1)).is_old(NOW)
    assert PriceBook(own, as_of=date(2026, 12, 1)).as_of == PriceBook().as_of
    monkeypatch.setattr(packaged, "version", lambda _: "99")
    assert PriceBook(own, as_of=date(2026, 12, 1)).is_old(NOW)
    assert PriceBook().age(NOW).startswith("nobody knows how old")


tokens = st.integers(0, 10**9)
rates = st.decimals(0, 1000, places=6)


@st.composite
def books(draw):
    fresh = draw(rates)
    said = {"input": fresh, "output": draw(rates), "reasoning": draw(rates)}
    said["cached"] = draw(st.decimals(0, fresh, places=6))
    return PriceBook({"m": {**said, "cache_write": draw(rates)}})


@st.composite
def usages(draw):
    fresh, cached, written, came, thought = (draw(tokens) for _ in range(5))
    return Usage(
        input_tokens=fresh + cached + written,
        cached_tokens=cached,
        cache_write_tokens=written,
        output_tokens=came + thought,
        reasoning_tokens=thought,
    )


def added(one: Usage, other: Usage) -> Usage:
    names = Usage.__dataclass_fields__
    return Usage(**{name: getattr(one, name) + getattr(other, name) for name in names})


@settings(max_examples=40)
@given(books(), usages(), usages())
def test_more_tokens_never_cost_less_and_prices_add_up_without_a_rest(book, one, other):
    first, second, both = (usage_cost(each, "m", book) for each in (one, other, added(one, other)))

    assert both == first + second
    assert both >= max(first, second)


@settings(max_examples=40)
@given(books(), usages())
def test_a_cost_is_the_sum_of_its_parts_and_a_cache_never_makes_it_dearer(book, usage):
    parts = cost_parts(usage, "m", book)
    uncached = Usage(
        input_tokens=usage.input_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        output_tokens=usage.output_tokens,
        reasoning_tokens=usage.reasoning_tokens,
    )

    assert parts.total == sum(astuple(parts)) == usage_cost(usage, "m", book)
    assert parts.total <= usage_cost(uncached, "m", book)


@settings(max_examples=40)
@given(books(), usages())
def test_no_call_costs_more_than_the_most_that_its_tokens_can_cost(book, usage):
    plain = Usage(input_tokens=usage.input_tokens, output_tokens=usage.output_tokens)

    assert usage_cost(usage, "m", book) <= most_cost(plain, "m", book)
    assert most_cost(plain, "nobody", book) is None


@settings(max_examples=40)
@given(st.text(), usages())
def test_a_name_that_nobody_lists_never_costs_nothing(name, usage):
    assert usage_cost(usage, f"nobody-has-this:{name}", PriceBook()) is None


PRICING = ("usage_cost", "cost_parts", "most_cost")
WORDS = ("of_call", "calc_price", *PRICING)


def sources():
    for room in ("plan", "journal", "budget", "models", "tools", "engine", "nodes", "plangate"):
        for file in (ROOT / room).rglob("*.py"):
            text = file.read_text(encoding="utf-8")
            if any(word in text for word in WORDS):
                yield str(file.relative_to(ROOT)), ast.parse(text)


def test_tokens_meet_rates_in_one_place_alone():
    asks_rates, imports, prices = set(), {}, set()
    for file, tree in sources():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr in ("of_call", "calc_price"):
                asks_rates.add(file)
            if isinstance(node, ast.ImportFrom):
                for name in node.names:
                    if name.name in PRICING:
                        imports[file] = node.module
            if isinstance(node, ast.FunctionDef) and node.name in PRICING:
                prices.add(file)

    assert asks_rates == {"budget/prices.py", "budget/packaged.py"}
    assert prices == {"budget/prices.py"}
    assert set(imports.values()) == {"plangate.budget.prices"}
    assert {file.partition("/")[0] for file in imports} >= {"budget", "models"}
