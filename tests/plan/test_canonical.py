from __future__ import annotations

import math
from enum import StrEnum

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from plangate.plan.value.canonical import canonical_text
from plangate.plan.value.frozen import canonical, freeze
from plangate.plan.value.step import Check

EXACT = 2**53 - 1
texts = st.text(max_size=8)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-EXACT, EXACT)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
data = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


class Word(StrEnum):
    ONE = "one"


@given(data)
def test_the_form_is_that_of_the_reference_byte_by_byte(value):
    assert canonical(value) == rfc8785.dumps(value)
    assert canonical(freeze(value)) == rfc8785.dumps(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_are_written_as_javascript_writes_them(number):
    assert canonical(number) == rfc8785.dumps(number)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (-0.0, "0"), (1.0, "1"), (0.5, "0.5"), (1e-6, "0.000001"), (1.5e-7, "1.5e-7"),
        (1e16, "10000000000000000"), (1.25e20, "125000000000000000000"), (1e21, "1e+21"),
        (-2.5e-300, "-2.5e-300"), (5e-324, "5e-324"), (True, "true"), (EXACT, str(EXACT)),
    ],
)  # fmt: skip
def test_a_number_has_one_text(number, text):
    assert canonical_text(number) == text


def test_keys_stand_in_the_order_of_utf_16():
    keys = {"\ufb33": 1, "\U0001f600": 2, "€": 3, "z": 4}

    assert list(keys) != sorted(keys, key=lambda key: key.encode("utf-16-be"))
    assert canonical(keys) == '{"z":4,"€":3,"\U0001f600":2,"\ufb33":1}'.encode()


def test_models_and_words_of_an_enum_are_written_as_their_data():
    check = Check(id="c", level="L1", claim="it holds")

    assert canonical([check, Word.ONE]) == canonical([check.model_dump(mode="json"), "one"])


@pytest.mark.parametrize(
    "value", [2**53, -(2**53), math.nan, math.inf, "\ud800", {"\ud800": 1}, b"x", {1, 2}, object()]
)
def test_what_readers_would_not_agree_on_has_no_form(value):
    with pytest.raises(ValueError, match=r"."):
        canonical({"a": [value]})
