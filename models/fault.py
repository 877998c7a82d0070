"""Why a call of a model failed: which kind, whether to try again and when, whether it cost.

Texts of a provider are never taken over, since they can repeat a key or the prompt; only a status
and a code that looks like one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_CODE = re.compile(r"[a-z][a-z_]{1,39}")
_AGAIN = frozenset({408, 409, 425, 429})
_SERVER_ERRORS = 500
_NEVER_SENT = frozenset({"ConnectError", "ConnectTimeout", "ConnectionRefusedError"})
_NO_MONEY = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
_HINTS: Mapping[str, str] = {
    "http_400": "Read the provider's log: the request itself was refused.",
    "http_401": "Check the API key.",
    "http_403": "Check what the API key may use.",
    "http_404": "Check the model's name and the URL.",
    "http_429": "Wait, or ask the provider for a higher rate.",
    "context_length_exceeded": "Use a model with a larger window, or fewer tools and inputs.",
    "insufficient_quota": "Add credit at the provider.",
    "timeout": "Try again, or raise the client's time-out.",
    "connection": "Check the URL and the network.",
    "content_filter": "Reword the goal, or plan from a template.",
    "refusal": "Reword the goal, or plan from a template.",
    "length": "Raise the model's output limit, or ask for less.",
    "unparsable": "Try another model, or plan from a template.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """How one attempt failed."""

    code: str
    """`http_<status>`, a code of the provider, `timeout`, `connection`, `refusal`, ..."""

    retry: bool = False
    after_s: float = 0.0
    """How long the provider asks us to wait at least."""

    charged: bool = False
    """True where the provider may have worked, and may bill it, although no answer came."""

    cause: Exception | None = None

    @property
    def hint(self) -> str:
        """What the reader can do."""
        general = "See the cause of this error." if self.cause else _HINTS["unparsable"]
        return _HINTS.get(self.code, general)


def fault_of(error: Exception, now: datetime | None = None) -> Fault:
    """Classify what a chat model raised.

    Args:
        error: Of any client; status, headers and code are read where they exist.
        now: For a `Retry-After` that is a date; None: the current time.
    """
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        return _http(error, status, now or datetime.now(UTC))
    names = {kind.__name__.lower() for kind in type(error).__mro__}
    if any("timeout" in name for name in names):
        return Fault(code="timeout", retry=True, charged=_was_sent(error), cause=error)
    if any("connection" in name for name in names) or isinstance(error, OSError):
        return Fault(code="connection", retry=True, charged=_was_sent(error), cause=error)
    return Fault(code="error", charged=True, cause=error)  # nobody knows whether it was sent


def _was_sent(error: BaseException | None) -> bool:
    """A request may have arrived unless the chain of causes says that no connection was made."""
    while error is not None:
        if type(error).__name__ in _NEVER_SENT:
            return False
        error = error.__cause__ or error.__context__
    return True


def _http(error: Exception, status: int, now: datetime) -> Fault:
    said = getattr(error, "code", None)
    named = said if isinstance(said, str) and _CODE.fullmatch(said) else ""
    code = named if named in _HINTS or named in _NO_MONEY else f"http_{status}"
    again = (status in _AGAIN or status >= _SERVER_ERRORS) and code not in _NO_MONEY
    return Fault(code=code, retry=again, after_s=_wait(error, now), cause=error)


def _wait(error: Exception, now: datetime) -> float:
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    milliseconds, stated = headers.get("retry-after-ms"), headers.get("retry-after")
    try:
        if milliseconds is not None:
            wait = float(milliseconds) / 1000
        elif stated is None:
            return 0.0
        elif re.fullmatch(r"[0-9.]+", stated):
            wait = float(stated)
        else:
            wait = (parsedate_to_datetime(stated) - now).total_seconds()
    except (ValueError, TypeError):  # neither a number nor a date
        return 0.0
    return max(wait, 0.0)
