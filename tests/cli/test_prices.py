from __future__ import annotations

import json

import pytest

from plangate import Agent, Options, PriceBook, create_plan_agent
from plangate.plan.errors import ConfigError
from tests.cli.conftest import INPUTS

FILE = """as_of = 2026-11-01
version = "contract-7"
[models.m]
input = "1"
output = "2"
"""
START = ("run", "start", "--agent", "refund", "--goal", "Refund it", *INPUTS)


@pytest.fixture
def file(here):
    (here / "prices.toml").write_text(FILE, encoding="utf-8")
    return "prices.toml"


def doctor(call, *args, code=0):
    found = json.loads(call("doctor", "--json", *args, code=code).stdout)["findings"]
    [prices] = [each for each in found if each["what"] == "prices"]
    return prices["state"], prices["says"]


def tables(call, run_id):
    logged = call("run", "events", run_id, "--json", "--type", "plan_validated").stdout
    return [json.loads(line)["event"]["estimate"]["price_table"] for line in logged.splitlines()]


def test_doctor_names_the_tables_and_their_date(call, file):
    state, says = doctor(call)
    own_state, own_says = doctor(call, "--prices", file)

    assert (state, own_state) == ("ok", "ok")
    assert says.startswith("genai-prices ")
    assert "contract-7 2026-11-01" in own_says
    assert own_says.endswith("of 2026-11-01")


def test_doctor_says_that_prices_are_old(call, here, file):
    (here / file).write_text(FILE.replace("2026-11-01", "2020-01-01"), encoding="utf-8")

    state, says = doctor(call, "--prices", file)

    assert state == "note"
    assert says.startswith("prices are of 2020-01-01, ")


def test_the_prices_of_the_environment_that_are_not_there_are_broken(call, monkeypatch):
    monkeypatch.setenv("PLANGATE_PRICES", "nope.toml")

    state, says = doctor(call, code=2)

    assert state == "broken"
    assert "'nope.toml' cannot be read" in says


@pytest.mark.parametrize("how", ["option", "environment"])
def test_the_table_of_a_run_is_the_one_that_was_given(call, file, monkeypatch, how):
    given = ("--prices", file) if how == "option" else ()
    if how == "environment":
        monkeypatch.setenv("PLANGATE_PRICES", file)

    done = call(*START, *given, "--json", code=11)

    [table] = tables(call, json.loads(done.stdout)["run_id"])
    assert "contract-7 2026-11-01" in table
    assert ("--prices prices.toml" in done.stderr) == (how == "option")


def test_a_price_file_that_is_wrong_is_one_line_with_exit_2(call, here, file):
    (here / file).write_text(FILE.replace('"2"', "-2"), encoding="utf-8")

    said = call(*START, "--prices", file, code=2)

    assert "price file line 3: price of 'm': output is not an exact amount" in said.stderr + repr(
        said.exception
    )


def test_prices_in_python_are_a_price_book(here):
    book = PriceBook.from_toml(FILE)

    assert Agent(name="a", tools=(), policy="schema = 1\n", prices=book).prices is book
    assert Options(prices=book).prices is book
    with pytest.raises(ConfigError, match="of type dict, not a PriceBook"):
        create_plan_agent(policy="schema = 1\n", prices={"m": {"input": 1, "output": 2}})
