from __future__ import annotations

import pytest

from plangate.engine.classify import classify, redact
from plangate.plan.catalog import Effect, ToolSpec
from plangate.tools.answers import ToolFailed

READ = ToolSpec(
    name="look",
    summary="s",
    effect=Effect.READ,
    params={},
    output={},
    errors={"not_found": "permanent", "closed": "business_rejection"},
)
PAY = ToolSpec(
    name="pay",
    summary="s",
    effect=Effect.IRREVERSIBLE,
    params={},
    output={},
    key="pay:{n}",
    scope="global",
    errors={"refused": "business_rejection"},
)


@pytest.mark.parametrize(
    ("spec", "error", "outcome", "code"),
    [
        (READ, ToolFailed("not_found"), "permanent", "not_found"),
        (READ, ToolFailed("closed"), "business_rejection", "closed"),
        (READ, ToolFailed("never_declared"), "permanent", "never_declared"),
        (READ, TimeoutError(), "transient", "timeout"),
        (READ, ConnectionResetError(), "transient", "ConnectionResetError"),
        (READ, ZeroDivisionError(), "permanent", "ZeroDivisionError"),
        (PAY, ToolFailed("refused"), "business_rejection", "refused"),
        (PAY, TimeoutError(), "unknown", "timeout"),
        (PAY, ConnectionResetError(), "unknown", "ConnectionResetError"),
        (PAY, ZeroDivisionError(), "unknown", "ZeroDivisionError"),
    ],
)
def test_only_the_tools_own_word_makes_a_failure_of_an_acting_call(spec, error, outcome, code):
    failure = classify(spec, error)

    assert (failure.outcome, failure.code) == (outcome, code)


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        ("401 for https://user:hunter2@host/x", "hunter2"),
        ("Authorization: Bearer abc.def.ghi", "abc.def.ghi"),
        ("bad key sk-live-123456789", "sk-live-123456789"),
        ("{'password': 'hunter2'}", "hunter2"),
        ("token=hunter2&x=1", "hunter2"),
    ],
)
def test_what_looks_like_a_secret_never_reaches_the_log(text, gone):
    assert gone not in redact(text)


def test_an_error_is_one_line_of_bounded_length():
    line = redact("a\nb\n" + "x" * 1000)

    assert "\n" not in line
    assert len(line) == 300
