from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plangate.graph.lens import Lens, block, in_markdown

TEXTS = st.text(
    alphabet=st.one_of(
        st.characters(exclude_categories=["Cs"]),
        st.sampled_from('\\n\n\u202e`"\u200b\u3164é'),
    )
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("given_text", "shown"),
    [
        ("order ORD-1, 24,99 €", "order ORD-1, 24,99 €"),
        ("退款 已 批准", "退款 已 批准"),
        ("pay\u202e100", "pay\\u202e100"),
        ("a\nb\tc\x1b[31m", "a\\nb\\tc\\u001b[31m"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("blank\u3164letter", "blank\\u3164letter"),
        ("tag\U000e0041", "tag\\udb40\\udc41"),
        ("half \ud800", "half \\ud800"),
        (r"C:\new", r"C:\\new"),
    ],
)
def test_what_cannot_be_seen_is_written_out(given_text, shown):
    assert Lens().text(given_text) == shown


@given(TEXTS, TEXTS)
def test_two_different_texts_never_look_the_same(one, other):
    lens = Lens()

    assert (lens.text(one) == lens.text(other)) == (one == other)


@given(VALUES)
def test_a_block_holds_the_exact_value_and_nothing_ends_it_early(value):
    text = block(Lens().value(value))
    fence, *inner, end = text.split("\n")

    assert json.loads("\n".join(inner)) == value
    assert (fence, end) == (f"{end}json", end)
    assert not any(line.strip().startswith(end) for line in inner)


@given(VALUES)
def test_nothing_that_is_shown_is_a_control_character(value):
    shown = json.dumps(Lens(text=5, most=2).value(value), ensure_ascii=False)

    assert not {unicodedata.category(char) for char in shown} & {"Cc", "Cf", "Zl", "Zp"}


def test_what_is_cut_says_so():
    lens = Lens(text=4, most=2)

    assert lens.text("abcdefgh") == "abcd… [cut: 4 of 8 characters]"
    assert lens.value([1, 2, 3]) == [1, 2, "[cut: 2 of 3 elements]"]
    assert lens.value({"a": 1, "b": 2, "c": 3}) == {"a": 1, "b": 2, "…": "[cut: 2 of 3 elements]"}
    assert lens.cut == 3


def test_text_cannot_write_markdown():
    said = in_markdown("**ok** [x](http://evil) ![i](u) <b> # h `c`")

    assert said.replace("\\", "") == "**ok** [x](http://evil) ![i](u) <b> # h `c`"
    assert "](" not in said
    assert "**" not in said
