"""Files that a person, or an attacker, writes: refused in a sentence, never with a traceback."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plangate.budget.prices import PriceBook
from plangate.budget.size import size_of
from plangate.plan.errors import ConfigError
from plangate.plan.policy import Policy

ALLOW = 'schema = 1\n[[allow]]\ntool = "*"\n'
PRICED = 'as_of = 2026-11-01\n[models."m"]\noutput = "2"\n'
NUMBERS = ["-1", "nan", "inf", "1e400", '"1e999999"', "9" * 400, "9" * 5000, "true", '"x"', "[1]"]
LIMITS = (
    "limits.run.max_usd", "limits.run.max_tokens", "limits.run.max_seconds",
    "limits.run.max_replans", "limits.run.deadline", "limits.day.max_usd",
    "limits.day.max_tool_calls", "limits.step.max_seconds", "autonomy.max_usd",
    "autonomy.max_steps", "tiers.auto_usd", "tiers.history_days",
)  # fmt: skip
PARTS = st.sampled_from(
    [
        "schema = 1", "schema = true", "[limits.run]", "[[allow]]", 'tool = "*"', "max_usd = ",
        "[", "]", "{", "'''", '"', "nan", "9" * 5000, "\n", "\x00", "[models.m]", 'input = "1"',
        "as_of = 2026-11-01", "1e999999999", "= ", "[" * 2000, "é", "\ud800",
    ]
)  # fmt: skip


@pytest.mark.parametrize("number", NUMBERS, ids=lambda said: said[:12])
@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_that_makes_no_sense_is_refused_with_its_name(name, number):
    table, _, key = name.rpartition(".")

    with pytest.raises(ConfigError) as caught:
        Policy.from_toml(f"{ALLOW}[{table}]\n{key} = {number}\n")

    assert key in str(caught.value) or "number" in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize(
    "number", [*NUMBERS, '"NaN"', '"-0.5"', "-0.5"], ids=lambda said: said[:12]
)
def test_a_price_that_makes_no_sense_is_refused_with_its_model(number):
    with pytest.raises(ConfigError) as caught:
        PriceBook.from_toml(f"{PRICED}input = {number}\n")

    assert "'m'" in str(caught.value) or "number" in str(caught.value)


@pytest.mark.parametrize("read", [Policy.from_toml, PriceBook.from_toml], ids=["policy", "prices"])
def test_a_file_that_is_nested_beyond_reading_is_refused(read):
    with pytest.raises(ConfigError, match="nested too deeply"):
        read("x = " + "[" * 5000 + "]" * 5000)


def test_a_rule_that_would_demand_nothing_is_refused():
    with pytest.raises(ConfigError, match="demand nothing"):
        Policy.from_toml(f'{ALLOW}[[require]]\nbefore = "pay"\nancestors = []\n')


@pytest.mark.parametrize("schema", ["true", "1.0", '"1"', "2"])
def test_only_the_number_one_is_schema_one(schema):
    with pytest.raises(ConfigError, match="schema = 1"):
        Policy.from_toml(f'schema = {schema}\n[[allow]]\ntool = "*"\n')


@given(st.lists(PARTS, max_size=12).map("\n".join) | st.text())
def test_whatever_stands_in_a_file_it_is_read_or_refused(text):
    for read in (Policy.from_toml, PriceBook.from_toml):
        with suppress(ConfigError):
            read(text)


@pytest.mark.parametrize("bound", [float("nan"), float("inf"), 10**400, -5, "9", None, [1]])
@pytest.mark.parametrize("word", ["maxItems", "maxLength", "minItems", "maximum"])
def test_a_schema_with_an_odd_bound_has_a_size_within_the_limit_of_a_call(word, bound):
    schema = {"type": "array", "items": {"type": "string", word: bound}, word: bound}

    got = size_of(schema, 500).range

    assert 0 <= got.p50 <= got.p95 <= 500
