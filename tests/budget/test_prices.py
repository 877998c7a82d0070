from __future__ import annotations

import warnings
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plangate.budget.prices import PriceBook, Usage, usage_cost
from plangate.plan.errors import ConfigError

WORKED = PriceBook({"m": {"input": 3, "output": 15}})
MINI = Usage(input_tokens=1200, cached_tokens=1000, output_tokens=300)


def test_the_worked_example_is_exact():
    read = usage_cost(Usage(input_tokens=4_000, output_tokens=0), "m", WORKED)
    written = usage_cost(Usage(input_tokens=0, output_tokens=3_600), "m", WORKED)
    whole = usage_cost(Usage(input_tokens=4_000, output_tokens=3_600), "m", WORKED)

    assert (read, written, whole) == (Decimal("0.012"), Decimal("0.054"), Decimal("0.066"))


def test_most_of_the_worked_example_is_output():
    assert (Decimal("0.054") / Decimal("0.066")).quantize(Decimal("0.01")) == Decimal("0.82")


@pytest.mark.parametrize("model", ["gpt-5-mini", "openai:gpt-5-mini"])
def test_cached_tokens_are_cheaper_in_the_packaged_table(model):
    assert usage_cost(MINI, model, PriceBook()) == Decimal("0.000675")


def test_the_table_and_an_override_of_the_same_rates_agree():
    same = PriceBook({"gpt-5-mini": {"input": "0.25", "cached": "0.025", "output": "2"}})

    assert usage_cost(MINI, "openai:gpt-5-mini", same) == Decimal("0.000675")


def test_a_call_beyond_a_tier_is_priced_by_that_tier():
    below = usage_cost(Usage(input_tokens=271_999, output_tokens=1000), "gpt-5.5", PriceBook())
    above = usage_cost(Usage(input_tokens=272_001, output_tokens=1000), "gpt-5.5", PriceBook())

    assert above > below * Decimal("1.9")


@pytest.mark.parametrize(
    "model",
    [
        "gpt-6",
        "my-model",
        "llama3:8b",
        "nobody:gpt-4o",
        "",
        ":",
        "text-embedding-3-small",
        "azure:mai-ds-r1:free",
    ],
)
def test_an_unknown_price_is_none_and_never_zero(model):
    assert usage_cost(MINI, model, PriceBook()) is None


def test_a_price_of_zero_is_known_where_the_user_says_so():
    free = PriceBook({"local": {"input": 0, "output": 0}})

    assert usage_cost(MINI, "local", free) == 0


def test_reasoning_is_billed_as_output():
    thought = Usage(input_tokens=0, output_tokens=1000, reasoning_tokens=900)

    assert usage_cost(thought, "m", WORKED) == Decimal("0.015")


def test_pricing_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        usage_cost(MINI, "gpt-4o", PriceBook())


@pytest.mark.parametrize(
    "rates",
    [
        {},
        {"input": 1},
        {"input": 1, "output": 1, "reasoning": 1},
        {"input": 0.1, "output": 1},
        {"input": "cheap", "output": 1},
        {"input": "NaN", "output": 1},
        {"input": -1, "output": 1},
        {"input": True, "output": 1},
        {"input": None, "output": 1},
    ],
)
def test_an_override_that_is_not_exact_is_refused(rates):
    with pytest.raises(ConfigError, match="price of 'm'") as caught:
        PriceBook({"m": rates})

    assert caught.value.hint


def test_the_table_names_the_overrides_by_content():
    one, other = PriceBook({"m": {"input": 1, "output": 1}}), WORKED

    assert PriceBook().table.startswith("genai-prices 0.")
    assert len({PriceBook().table, one.table, other.table}) == 3


tokens = st.integers(0, 10**7)


@given(tokens, tokens, tokens, tokens)
def test_prices_add_up_without_a_rest(a, b, c, d):
    first, second = Usage(input_tokens=a, output_tokens=b), Usage(input_tokens=c, output_tokens=d)
    both = Usage(input_tokens=a + c, output_tokens=b + d)

    assert usage_cost(first, "m", WORKED) + usage_cost(second, "m", WORKED) == usage_cost(
        both, "m", WORKED
    )
