from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plangate.budget.estimate import Known, estimate
from plangate.budget.history import (
    MIN_SAMPLES,
    quantiles,
    repair_subject,
    role_subject,
    step_subject,
    subjects_of,
    tool_subject,
)
from plangate.journal.samples import Sample, Samples
from tests.budget.test_estimate import (
    BOOK,
    CATALOG,
    CRITIC,
    ROLES,
    STEP,
    asks_model,
    estimated,
    plan,
    step,
)


def samples(count: int, seconds: float = 0.2, calls: tuple[int, ...] = (), **more) -> Samples:
    every = (Sample(seconds=seconds, **more),) * count
    return Samples(samples=every, calls=calls or (1,) * count)


@settings(max_examples=25)
@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=60))
def test_quantiles_are_ordered_and_inside_of_what_was_seen(values):
    found = quantiles(values)

    assert min(values) <= found.p50 <= found.p95 <= max(values)
    assert found.p95 in values


def test_one_outlier_among_twenty_moves_neither():
    assert quantiles([1.0] * 19 + [900.0]).p50 == 1.0
    assert quantiles([1.0] * 39 + [900.0]).p95 == 1.0


@pytest.mark.parametrize(
    ("count", "seconds", "source"),
    [(MIN_SAMPLES - 1, 1.0, "contract"), (MIN_SAMPLES, 0.2, f"history (n={MIN_SAMPLES})")],
)
def test_a_tool_is_known_from_enough_of_its_calls(count, seconds, source):
    past = {tool_subject("quick", "1"): samples(count)}

    [only] = estimated(plan(step("a")), past=past).steps

    assert (only.seconds.p50, only.source) == (seconds, source)


def test_another_version_teaches_nothing():
    past = {tool_subject("quick", "2"): samples(50)}

    assert estimated(plan(step("a")), past=past).steps[0].source == "contract"


def test_a_model_step_is_known_by_its_question_and_priced_at_the_prices_of_today():
    asked = asks_model("m")
    past = {
        step_subject(asked, STEP.model, STEP.sha256): samples(
            12, 3.0, tokens_in=1_000, tokens_out=100, usd=Decimal(9)
        )
    }

    [only] = estimated(plan(asked), roles=ROLES, past=past).steps

    assert (only.tokens_in.p50, only.tokens_out.p95, only.seconds.p50) == (1_000, 100, 3.0)
    assert (only.usd_p50, only.source) == (Decimal("0.0045"), "history (n=12)")


@pytest.mark.parametrize(
    "other",
    [
        {"objective": "another question"},
        {"output": {"type": "object", "properties": {"other": {"type": "boolean"}}}},
    ],
    ids=["question", "form"],
)
def test_another_question_teaches_nothing(other):
    past = {step_subject(asks_model("m", **other), STEP.model, STEP.sha256): samples(50)}

    assert estimated(plan(asks_model("m")), roles=ROLES, past=past).steps[0].source == "schema"


def test_how_often_a_role_is_asked_is_told_by_earlier_runs():
    subject = role_subject("critic", CRITIC.model, CRITIC.sha256)
    past = {subject: samples(12, tokens_in=100, tokens_out=10, calls=(1, 3, 1))}

    two = plan(step("a"), step("b"))  # of one read there is nothing to criticise
    priced = estimated(two, roles=ROLES, past=past)
    [critic] = [each for each in priced.overhead if each.role == "critic"]

    assert (critic.calls.p50, critic.calls.p95) == (1, 3)
    assert (critic.tokens_in.p50, critic.source) == (100, "history (n=12)")


def test_what_repairs_take_is_told_by_earlier_runs_of_the_type():
    subject = repair_subject("t", CATALOG.content_hash)
    past = {subject: samples(20, 4.0, calls=(1,) * 20, usd=Decimal("0.5"))}

    repair = estimated(plan(step("a")), past=past).overhead[-1]

    assert (repair.role, repair.seconds.p50, repair.usd_p95) == ("repair", 4.0, Decimal("0.5"))


def test_a_repair_of_unknown_price_makes_the_sum_unknown():
    past = {repair_subject("t", CATALOG.content_hash): samples(20, usd=None)}

    assert estimated(plan(step("a")), past=past).usd_p95 is None


def test_everything_that_an_estimate_asks_for_is_asked_for_at_once():
    made = plan(step("a"), step("b", "slow"), asks_model("m"))
    asked = subjects_of(made, CATALOG, ROLES)

    class Past(dict):
        def get(self, subject, default=None):
            assert subject in asked
            return default

    estimate(made, Known(catalog=CATALOG, book=BOOK, roles=ROLES, past=Past()))
    assert len(asked) == 2 + 1 + len(list(ROLES.named())) + 1
