from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plangate.engine.retry import MATRIX, RetryContext, decide, delay_s

CELLS = [
    ("transient", "free", "retry"),
    ("transient", "keyed", "retry"),
    ("transient", "reconciled", "retry"),
    ("transient", "once", "retry"),
    ("transient", "sampled", "retry"),
    ("unknown", "free", "retry"),
    ("unknown", "sampled", "retry"),
    ("unexpected_state", "sampled", "retry"),
    ("unknown", "keyed", "retry"),
    ("unknown", "reconciled", "reconcile"),
    ("unknown", "once", "ask"),
    *[
        (outcome, repeat, "route")
        for outcome in (
            "permanent",
            "unexpected_state",
            "business_rejection",
            "denied",
            "cancelled",
        )
        for repeat in ("free", "sampled", "keyed", "reconciled", "once")
        if (outcome, repeat) != ("unexpected_state", "sampled")
    ],
]


def context(outcome, repeat, **changes) -> RetryContext:
    base = {"outcome": outcome, "repeat": repeat, "attempt": 1, "max_attempts": 3}
    return RetryContext(**(base | changes))


@pytest.mark.parametrize(("outcome", "repeat", "follows"), CELLS)
def test_each_cell_of_the_matrix(outcome, repeat, follows):
    assert decide(context(outcome, repeat)) == follows


def test_the_table_has_no_cell_without_a_test():
    cells = {(outcome, repeat) for outcome, row in MATRIX.items() for repeat in row}

    assert cells == {(outcome, repeat) for outcome, repeat, _ in CELLS}


@pytest.mark.parametrize(
    "spent",
    [{"attempt": 3}, {"seconds_left": 0.0}],
    ids=["attempts", "time"],
)
@pytest.mark.parametrize(
    ("outcome", "repeat", "follows"),
    [
        ("transient", "free", "route"),
        ("transient", "keyed", "route"),
        ("unknown", "free", "route"),
        ("unknown", "keyed", "ask"),
        ("unknown", "reconciled", "reconcile"),
        ("unknown", "once", "ask"),
    ],
)
def test_when_nothing_is_left_an_effect_that_may_have_happened_goes_to_a_person(
    outcome, repeat, follows, spent
):
    assert decide(context(outcome, repeat, **spent)) == follows


@given(st.integers(1, 60), st.floats(0, 1, exclude_max=True))
def test_the_wait_grows_is_capped_and_never_zero(attempt, jitter):
    assert 0 < delay_s(attempt, jitter) <= 10
    assert delay_s(attempt, jitter) <= delay_s(attempt + 1, jitter)
