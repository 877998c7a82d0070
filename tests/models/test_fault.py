from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from plangate.models.fault import fault_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Status(Exception):
    def __init__(self, status, code=None, **headers):
        super().__init__("sk-secret")
        self.status_code = status
        self.code = code
        shown = {name.replace("_", "-"): value for name, value in headers.items()}
        self.response = SimpleNamespace(headers=shown)


class ReadTimeout(Exception):
    pass


@pytest.mark.parametrize(
    ("error", "code", "retry"),
    [
        (Status(500), "http_500", True),
        (Status(529), "http_529", True),
        (Status(429), "http_429", True),
        (Status(408), "http_408", True),
        (Status(400), "http_400", False),
        (Status(404), "http_404", False),
        (Status(429, "insufficient_quota"), "insufficient_quota", False),
        (Status(400, "sk_something_odd"), "http_400", False),
        (ReadTimeout(), "timeout", True),
        (TimeoutError(), "timeout", True),
        (ConnectionResetError(), "connection", True),
        (ValueError("sk-secret"), "error", False),
    ],
)
def test_each_failure_has_a_code_and_a_rule_for_retries(error, code, retry):
    fault = fault_of(error, NOW)

    assert (fault.code, fault.retry) == (code, retry)
    assert fault.hint
    assert "sk-" not in fault.code + fault.hint


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"retry_after": "7"}, 7.0),
        ({"retry_after": "1.5"}, 1.5),
        ({"retry_after_ms": "250", "retry_after": "7"}, 0.25),
        ({"retry_after": "Thu, 01 Jan 2026 00:00:30 GMT"}, 30.0),
        ({"retry_after": "Wed, 31 Dec 2025 00:00:00 GMT"}, 0.0),
        ({"retry_after": "soon"}, 0.0),
        ({"retry_after": "1.2.3"}, 0.0),
        ({}, 0.0),
    ],
)
def test_the_wait_is_read_in_each_form(headers, wait):
    assert fault_of(Status(429, **headers), NOW).after_s == wait


def test_only_a_request_that_was_sent_can_cost():
    refused = ConnectionError()
    refused.__cause__ = ConnectionRefusedError()

    assert not fault_of(refused).charged
    assert fault_of(ConnectionResetError()).charged
    assert not fault_of(Status(500)).charged
