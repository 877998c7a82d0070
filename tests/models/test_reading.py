from __future__ import annotations

import pytest

from plangate.models.critique import Criticism
from plangate.models.reading import LONGEST, Flaw, object_in, read_as


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1}', '{"a": 1}'),
        ('x {"a": {"b": {}}} y {}', '{"a": {"b": {}}}'),
        ('<think>{"a": 1}</think>{"a": 1, "b": 2}', '{"a": 1, "b": 2}'),
        ("{not json} at all", None),
        ('{"a": 1', None),
        ('{"a": {"b": 1}', None),
        ('{"a":' * 100_000, None),
        ("{" * 500_000, None),
        ("x" * (LONGEST + 1), None),
    ],
    ids=["bare", "prose", "thinking", "braces", "cut", "cut outside", "deep", "open", "long"],
)
def test_the_longest_whole_object_is_the_answer(text, found):
    assert object_in(text) == found


def test_a_flaw_says_where_and_never_repeats_the_text():
    [flaw] = read_as(Criticism, '{"findings": "secret"}')

    assert flaw == Flaw("bad_value", ("findings",), flaw.says)
    assert "secret" not in flaw.says
