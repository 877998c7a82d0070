"""One expected call, and how calls add up. What is not known stays unknown in every sum."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, TypedDict

from plangate.budget.prices import PriceBook, Usage, usage_cost
from plangate.plan.forecast import NONE, ONCE, Range

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from plangate.plan.forecast import Forecast

P95_FACTOR = 2
"""How much more the high end takes than the middle, where only one figure is stated.

Twice leaves room for one retry or one slow answer, and is the point from which a step counts as
overdue (design: elapsed over 2 x the estimate is a trigger).
"""

TOKENS_PER_SECOND = 50
"""Of a slow hosted model."""

FIRST_TOKEN_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """Expected calls of one thing."""

    seconds: Range
    usd_p50: Decimal | None
    usd_p95: Decimal | None
    tokens_in: Range = NONE
    tokens_out: Range = NONE
    calls: Range = ONCE
    model_calls: Range = NONE
    sources: tuple[str, ...] = ()
    token_sources: tuple[str, ...] = ()
    unknown: tuple[str, ...] = field(default=())

    def times(self, count: Range) -> Calls:
        """Return what it takes to do this so many times, one after the other."""
        if count == ONCE:
            return self
        low, high = exact(count.p50), exact(count.p95)
        return Calls(
            seconds=self.seconds.times(count),
            usd_p50=None if self.usd_p50 is None else self.usd_p50 * low,
            usd_p95=None if self.usd_p95 is None else self.usd_p95 * high,
            tokens_in=self.tokens_in.times(count),
            tokens_out=self.tokens_out.times(count),
            calls=self.calls.times(count),
            model_calls=self.model_calls.times(count),
            sources=self.sources,
            token_sources=self.token_sources,
            unknown=self.unknown,
        )


class Amounts(TypedDict):
    """The fields that each forecast has."""

    seconds: Range
    tokens_in: Range
    tokens_out: Range
    usd_p50: Decimal | None
    usd_p95: Decimal | None
    calls: Range
    model_calls: Range
    source: str
    token_source: str
    unknown: tuple[str, ...]


def added(every: Sequence[Calls]) -> Amounts:
    """Return the sum of calls that are made one after the other."""
    return Amounts(
        seconds=total(each.seconds for each in every),
        tokens_in=total(each.tokens_in for each in every),
        tokens_out=total(each.tokens_out for each in every),
        usd_p50=money(each.usd_p50 for each in every),
        usd_p95=money(each.usd_p95 for each in every),
        calls=total(each.calls for each in every),
        model_calls=total(each.model_calls for each in every),
        source=_words(source for each in every for source in each.sources),
        token_source=_words(source for each in every for source in each.token_sources),
        unknown=tuple(dict.fromkeys(says for each in every for says in each.unknown)),
    )


def total(ranges: Iterable[Range]) -> Range:
    """Return the sum of amounts."""
    low = high = 0.0
    for each in ranges:
        low, high = low + each.p50, high + each.p95
    return Range(p50=low, p95=high)


def money(amounts: Iterable[Decimal | None]) -> Decimal | None:
    """Return the sum of amounts of money; one that is unknown makes it unknown."""
    sum_ = Decimal(0)
    for amount in amounts:
        if amount is None:
            return None
        sum_ += amount
    return sum_


def asked(
    model: str,
    book: PriceBook,
    tokens_in: Range,
    tokens_out: Range,
    *,
    seconds: Range | None = None,
    count: Range = ONCE,
) -> Calls:
    """Price `count` equal calls of a model.

    Args:
        model: Its name.
        book: Prices.
        tokens_in: Of one call.
        tokens_out: Of one call.
        seconds: Of one call; None: by the length of the answer.
        count: How many.
    """
    costs = [
        usage_cost(Usage(input_tokens=round(sent), output_tokens=round(came)), model, book)
        for sent, came in ((tokens_in.p50, tokens_out.p50), (tokens_in.p95, tokens_out.p95))
    ]
    if seconds is None:
        speed = Range(p50=1 / TOKENS_PER_SECOND, p95=1 / TOKENS_PER_SECOND)
        waits = Range(p50=FIRST_TOKEN_S, p95=FIRST_TOKEN_S * P95_FACTOR)
        seconds = waits + tokens_out.times(speed)
    one = Calls(
        seconds=seconds,
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        usd_p50=costs[0],
        usd_p95=costs[1],
        model_calls=ONCE,
        unknown=() if None not in costs else (f"the price of {model!r} is in no table",),
    )
    return one.times(count)


def exact(number: float) -> Decimal:
    """Return a count as an exact number, a whole one without a point."""
    return Decimal(int(number)) if float(number).is_integer() else Decimal(str(number))


def forecast_of(amounts: Forecast) -> Calls:
    """Return a forecast as something that can be added again."""
    return Calls(
        seconds=amounts.seconds,
        tokens_in=amounts.tokens_in,
        tokens_out=amounts.tokens_out,
        usd_p50=amounts.usd_p50,
        usd_p95=amounts.usd_p95,
        calls=amounts.calls,
        model_calls=amounts.model_calls,
    )


def _words(sources: Iterable[str]) -> str:
    return " + ".join(dict.fromkeys(each for each in sources if each))
