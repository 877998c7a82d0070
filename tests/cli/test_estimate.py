from __future__ import annotations

import json

import pytest


@pytest.fixture
def file(here, plan):
    def write(**budget):
        path = here / "plan.json"
        path.write_text(json.dumps({**plan, "budget": {**plan["budget"], **budget}}))
        return str(path)

    return write


def priced(call, file, *more, code=0):
    said = call("plan", "estimate", file, "--agent", "refund", *more, "--json", code=code)
    return json.loads(said.stdout)


def test_an_estimate_says_each_part_its_source_and_what_is_not_known(call, file):
    said = priced(call, file())

    assert said["kind"] == "estimate"
    assert [each["step"] for each in said["steps"]] == [f"S{n}" for n in range(1, 8)]
    assert {each["source"] for each in said["steps"]} == {"contract", "person"}
    assert [each["role"] for each in said["overhead"]] == ["goal checks", "reread", "repair"]
    assert said["total"]["calls"] == {"p50": 12.0, "p95": 15.0}
    assert [each["says"] for each in said["fits"]] == ["yes", "yes", "yes"]
    assert said["price_table"].startswith("genai-prices")


def test_a_named_model_is_priced_and_not_called(call, file):
    said = priced(call, file(), "--model", "openai:gpt-5-mini", "--critic", "gpt-5-mini")

    critic = next(each for each in said["overhead"] if each["role"] == "critic")
    assert float(critic["usd"]["p50"]) > 0
    assert said["token_source"] == "o200k_base"


def test_a_model_that_nobody_prices_makes_the_plan_unaffordable_under_a_limit(call, file):
    said = priced(call, file(), "--critic", "acme-1", code=10)

    assert said["fits"][0]["says"] == "unknown"
    assert said["total"]["usd"] == {"p50": None, "p95": None}


@pytest.mark.parametrize(
    ("budget", "asks", "says"),
    [({"max_seconds": 1.0}, 1, "no"), ({"max_tool_calls": 5}, 0, "no"), ({}, 0, "yes")],
)
def test_over_budget_it_says_what_to_do_and_exits_10(call, file, budget, asks, says):
    over = says == "no"

    said = priced(call, file(**budget), code=10 if over else 0)

    assert said["fits"][asks]["says"] == says
    assert said["approvable"] is not over
    assert [each.partition(" ")[0] for each in said["cuts"]] == (["Cut:", "Split:", "Run"] * over)


def test_the_explanation_is_a_table_with_sources(call, file):
    said = call("plan", "estimate", file(), "--agent", "refund", "--explain").stdout

    assert "contract" in said
    assert "in all" in said
    assert "These are estimates" in said


def test_a_preview_shows_tools_arguments_cost_and_evidence(call, file):
    said = call("plan", "preview", file(), "--agent", "refund").stdout

    for shown in ("create_refund", "amount_cents = 6450", "will show (contract)", "order://ORD-"):
        assert shown in said


def test_a_preview_of_a_plan_with_issues_exits_3(call, here, plan):
    path = here / "bad.json"
    path.write_text(json.dumps({**plan, "success_criteria": []}))
    preview = call("plan", "preview", str(path), "--agent", "refund", "--json", code=3)

    assert json.loads(preview.stdout)["approvable"] is False


def test_a_journal_that_is_named_and_is_not_there_is_an_error(call, file):
    call("plan", "estimate", file(), "--agent", "refund", "--journal", "sqlite:///no.db", code=2)


def test_the_cost_of_a_run_is_shown_while_it_waits(call, waiting):
    said = call("run", "show", waiting["run_id"], "--cost", "--json").stdout

    cost = json.loads(said)
    assert cost["actual"]["calls"] == 0
    assert cost["estimate"]["calls"] == {"p50": 12.0, "p95": 15.0}
    assert "in all" in call("run", "show", waiting["run_id"], "--cost").stdout
