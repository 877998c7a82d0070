"""What tokens cost: one formula for estimates and bills. An unknown price is None, never zero."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from importlib.metadata import version
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from plangate.plan.errors import ConfigError
from plangate.plan.value.frozen import digest

if TYPE_CHECKING:
    from collections.abc import Mapping

Given: TypeAlias = "Mapping[str, Decimal | str | int]"
"""Rates of one model as a user writes them."""

_MILLION = Decimal(1_000_000)
_RATES = frozenset({"input", "cached", "output"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one call. Estimated before it, reported by the provider after it."""

    input_tokens: int
    """All that was sent, cached tokens included."""

    cached_tokens: int = 0
    output_tokens: int
    """All that came back, reasoning tokens included."""

    reasoning_tokens: int = 0

    def __post_init__(self) -> None:
        assert 0 <= self.cached_tokens <= self.input_tokens, "cached tokens are input tokens"  # noqa: S101 - our invariant; models.usage reads foreign numbers
        assert 0 <= self.reasoning_tokens <= self.output_tokens, "reasoning is output"  # noqa: S101 - as above

    @property
    def total(self) -> int:
        """Tokens in both directions."""
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """US dollars per million tokens of one model. Reasoning is billed as output."""

    input: Decimal
    cached: Decimal
    output: Decimal


class PriceBook:
    """Prices by model: an override where there is one, else the packaged table.

    Args:
        overrides: By model name, `input`, `output` and perhaps `cached` (default: as input) in US
            dollars per million tokens; text, whole numbers or `Decimal`: a float is not exact.

    Raises:
        ConfigError: An override has an unknown or missing rate, or one that is not exact.
    """

    def __init__(self, overrides: Mapping[str, Given] | None = None) -> None:
        given = overrides or {}
        self._overrides = MappingProxyType({name: _rates(name, given[name]) for name in given})

    @property
    def table(self) -> str:
        """Name and version of the prices, recorded with every amount."""
        packaged = f"genai-prices {version('genai-prices')}"
        if not self._overrides:
            return packaged
        said = {
            name: [str(rates.input), str(rates.cached), str(rates.output)]
            for name, rates in self._overrides.items()
        }
        return f"{packaged} + overrides {digest(said)[:12]}"

    def override(self, model: str) -> Rates | None:
        """Return the rates that the user set for a model, by its full or its bare name."""
        return self._overrides.get(model) or self._overrides.get(_split(model)[1])


def usage_cost(usage: Usage, model: str, book: PriceBook) -> Decimal | None:
    """Price one call in US dollars.

    The one formula, for estimates and for what was really used. Some prices step up with the size
    of a call, so price each call and add the results.

    Returns:
        None where the model, or a price that this call needs, is in neither table.

    Example:
        >>> book = PriceBook({"m": {"input": 3, "output": 15}})
        >>> usage_cost(Usage(input_tokens=4_000, output_tokens=3_600), "m", book)
        Decimal('0.066')
    """
    rates = book.override(model)
    if rates is None:
        return _table_cost(usage, model)
    fresh = usage.input_tokens - usage.cached_tokens
    whole = rates.input * fresh + rates.cached * usage.cached_tokens
    return (whole + rates.output * usage.output_tokens) / _MILLION


def _table_cost(usage: Usage, model: str) -> Decimal | None:
    import genai_prices  # noqa: PLC0415 - 350 ms that a run without a model need not pay

    provider, name = _split(model)
    used = genai_prices.Usage(
        input_tokens=usage.input_tokens,
        cache_read_tokens=usage.cached_tokens or None,
        output_tokens=usage.output_tokens,
    )
    try:
        found = genai_prices.calc_price(used, name, provider_id=provider)
    except (LookupError, ValueError):  # not listed; a size that the listed tiers do not cover
        return None
    # The table writes an absent price as zero (embeddings have no output, some models no price).
    if (usage.input_tokens and not found.input_price) or (
        usage.output_tokens and not found.output_price
    ):
        return None
    return found.total_price


def _split(model: str) -> tuple[str | None, str]:
    provider, colon, name = model.partition(":")
    return (provider, name) if colon else (None, model)


def _rates(model: str, given: Given) -> Rates:
    if not {"input", "output"} <= given.keys() <= _RATES:
        raise ConfigError(
            f"price of {model!r} has {', '.join(sorted(given)) or 'no rates'}",
            hint="Give input, output and perhaps cached, in USD per million tokens.",
        )
    exact = {name: _exact(model, rate) for name, rate in given.items()}
    cached = exact.get("cached", exact["input"])
    return Rates(input=exact["input"], cached=cached, output=exact["output"])


def _exact(model: str, rate: object) -> Decimal:
    is_text_or_exact = isinstance(rate, (Decimal, str, int)) and not isinstance(rate, bool)
    try:
        amount = Decimal(rate) if is_text_or_exact else None  # type: ignore[arg-type]
    except InvalidOperation:
        amount = None
    if amount is None or not amount.is_finite() or amount < 0:
        raise ConfigError(
            f"a price of {model!r} is not an exact amount from zero up",
            hint='Write it as text: "0.25".',
        )
    return amount
