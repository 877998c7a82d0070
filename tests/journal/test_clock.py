from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from plangate.journal.clock import Steady, not_before

START = datetime(2026, 1, 1, tzinfo=UTC)


class Wall:
    """A wall clock and a monotonic one, moved by hand."""

    def __init__(self):
        self.wall, self.seconds = START, 0.0

    def clock(self):
        return Steady(lambda: self.wall, lambda: self.seconds)

    def passes(self, seconds, jump=0.0):
        self.seconds += seconds
        self.wall += timedelta(seconds=seconds + jump)


def test_a_clock_that_is_set_back_goes_on_from_where_it_was():
    machine = Wall()
    clock = machine.clock()
    before = clock()

    machine.passes(10, jump=-3600)

    assert clock() == before + timedelta(seconds=10)


def test_a_clock_that_is_set_forward_is_followed():
    machine = Wall()
    clock = machine.clock()

    machine.passes(10, jump=3600)

    assert clock() == START + timedelta(seconds=3610)


@given(st.lists(st.tuples(st.floats(0, 1000), st.floats(-5000, 5000)), max_size=20))
def test_it_never_goes_back_and_never_counts_less_than_what_passed(moves):
    machine = Wall()
    clock = machine.clock()
    last = clock()
    for seconds, jump in moves:
        machine.passes(seconds, jump)
        now = clock()
        assert now - last >= timedelta(seconds=seconds) - timedelta(microseconds=2)
        last = now


def test_what_is_known_to_be_past_is_past():
    known = START + timedelta(hours=1)

    assert not_before(lambda: START, known)() == known
    assert not_before(lambda: known + timedelta(1), known)() == known + timedelta(1)
