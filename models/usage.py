"""What a provider says that a call took, read so that nothing which cannot be comes out as free.

A number that is none, that is negative or beyond all belief, and a zero for what surely was sent or
came back, give way to our own count; the reading that costs more is taken, and flagged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from plangate.budget.prices import Usage

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST: Final = 1_000_000_000
"""Tokens of one call that nobody believes any more."""


@dataclass(frozen=True, slots=True)
class Read:
    """Tokens of one call."""

    usage: Usage
    is_guess: bool
    """True where a part of it is our own count, or the dearer reading of what was said."""


def read_usage(said: Any, sent: int, came: Callable[[], int]) -> Read:
    """Read a provider's usage.

    Args:
        said: LangChain's `usage_metadata`, or whatever else is in its place.
        sent: Tokens that were sent, as counted here.
        came: Counts those that came back; asked only where the provider does not say.
    """
    told = said if isinstance(said, Mapping) else {}
    details, more = _part(told, "input_token_details"), _part(told, "output_token_details")
    cached, written = _tokens(details.get("cache_read")), _tokens(details.get("cache_creation"))
    reasoned = _tokens(more.get("reasoning"))
    whole, back = _tokens(told.get("input_tokens")), _tokens(told.get("output_tokens"))
    parts = (details.get("cache_read"), details.get("cache_creation"), more.get("reasoning"))
    is_guess = not whole or any(each not in (None, 0) and not _tokens(each) for each in parts)
    if not back and (counted := came()):
        is_guess, back = True, counted
    whole = whole or sent
    is_apart, is_beside = cached + written > whole, reasoned > back
    usage = Usage(
        input_tokens=whole + (cached + written if is_apart else 0),
        cached_tokens=cached,
        cache_write_tokens=written,
        output_tokens=back + (reasoned if is_beside else 0),
        reasoning_tokens=reasoned,
    )
    return Read(usage, is_guess or is_apart or is_beside)


def _part(told: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = told.get(name)
    return part if isinstance(part, Mapping) else {}


def _tokens(number: Any) -> int:
    """Return a number of tokens; 0 for what is none."""
    is_one = isinstance(number, int) and not isinstance(number, bool)
    return number if is_one and 0 <= number <= _MOST else 0
