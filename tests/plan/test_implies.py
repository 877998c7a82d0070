from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plangate.plan.flow.implies import implies

STRICTER = [
    ("x <= 5", "x <= 10"),
    ("x < 5", "x <= 5"),
    ("x < 5", "x != 5"),
    ("x == 5", "x >= 5"),
    ("x == -5", "x < 0"),
    ("x > 10", "x > 5"),
    ("x >= 6", "x > 5"),
    ("10 >= x", "x <= 11"),
    ("x <= 0.25", "x < 0.5"),
    ("a.b[0].c <= 5", "a.b[0].c <= 6"),
    ("x <= 5 && y", "x <= 10"),
    ("x <= 5 && y", "y"),
    ("x <= 5", "x <= 5 || y"),
    ("x <= 1 || x == 3", "x <= 4"),
    ("x <= 5  // as agreed", "x<=5"),
    ("x.all(y, y > 1 && y < 3)", "x.all(y, y > 1 && y < 3)"),
]
NOT = [
    ("x <= 10", "x <= 5"),
    ("x <= 5", "x < 5"),
    ("x <= 5", "y <= 10"),
    ("x <= 5", "x == 5"),
    ("x != 5", "x < 5"),
    ("x > 5", "x < 10"),
    ("x <= 5 || y", "x <= 5"),
    ("x <= 10", "x <= 10 && y"),
    ("!(x <= 10)", "!(x <= 5)"),
    ("-x <= 5", "-x <= 10"),
    ("x <= 5 ? true : y", "x <= 10 ? true : y"),
    ("a ? b && x <= 5 : c", "x <= 5"),
    ("x == 'a'", "x != 'b'"),
    ("x <= 0x05", "x <= 0x0A"),
    ("x.all(y, y <= 5)", "x.all(y, y <= 10)"),
    ("size(x) <= 5", "size(x) <= 10"),
    ("x <= 1e999", "x <= 1e999 && y"),
    ("", "x"),
]


@pytest.mark.parametrize(("strict", "loose"), STRICTER)
def test_a_rule_that_asks_for_more_implies_the_other(strict, loose):
    assert implies(strict, loose)


@pytest.mark.parametrize(("strict", "loose"), NOT)
def test_what_is_looser_or_cannot_be_decided_is_not_implied(strict, loose):
    assert not implies(strict, loose)


ATOM = st.builds(
    lambda flip, op, n: f"{n} {op} x" if flip else f"x {op} {n}",
    st.booleans(),
    st.sampled_from(["<", "<=", ">", ">=", "==", "!="]),
    st.integers(-3, 3),
)
RULE = st.lists(st.lists(ATOM, min_size=1, max_size=3).map(" && ".join), min_size=1, max_size=3)


@pytest.mark.slow
@given(RULE.map(" || ".join), RULE.map(" || ".join))
@settings(max_examples=500, deadline=None)
def test_it_never_says_yes_wrongly(strict, loose):
    def holds(rule: str, x: int) -> bool:
        return bool(eval(rule.replace("&&", "and").replace("||", "or"), {"x": x}))  # noqa: S307

    if implies(strict, loose):
        assert all(holds(loose, x) for x in range(-5, 6) if holds(strict, x))
    assert implies(strict, strict)
