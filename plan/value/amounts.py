"""Amounts that people write as limits and prices: from zero up, and of a size that exists.

What is beyond that is a slip of the pen or an attack. Refused where it is read, it can neither
overflow a database nor be a limit that no longer limits.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Final, TypeAlias

from pydantic import AfterValidator, Field

MOST_USD: Final = 1_000_000_000
_MOST_COUNT: Final = 10**15
_MOST_SECONDS: Final = 10**9  # thirty years
_FIRST_YEAR: Final = 2000


def _believed(moment: datetime) -> datetime:
    """Refuse a number where a date belongs: it is read as seconds since 1970."""
    if moment.year < _FIRST_YEAR:
        raise ValueError("is no date and time of our days, as 2026-11-30T12:00:00Z")
    return moment


Usd: TypeAlias = Annotated[Decimal, Field(ge=0, le=MOST_USD, allow_inf_nan=False)]
"""US dollars."""

Count: TypeAlias = Annotated[int, Field(ge=0, le=_MOST_COUNT)]
"""Tokens, calls, steps."""

Seconds: TypeAlias = Annotated[float, Field(ge=0, le=_MOST_SECONDS, allow_inf_nan=False)]
Moment: TypeAlias = Annotated[datetime, AfterValidator(_believed)]
"""A date and a time."""
