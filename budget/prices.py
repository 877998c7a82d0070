"""What tokens cost: one formula for estimates and bills. An unknown price is None, never zero."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING

from plangate.budget.packaged import packaged_date, packaged_name, packaged_tariff
from plangate.budget.pricefile import read_prices
from plangate.budget.rates import Tariff, tariff
from plangate.plan.value.frozen import digest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plangate.budget.rates import Given

OLD_AFTER = timedelta(days=180)
"""A table that is older than this is used, and said to be old."""

_MILLION = Decimal(1_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one call. Estimated before it, reported by the provider after it."""

    input_tokens: int
    """All that was sent, cached tokens included."""

    cached_tokens: int = 0
    """Read from the provider's cache."""

    cache_write_tokens: int = 0
    """Written to it, where the provider charges for that apart."""

    output_tokens: int
    """All that came back, reasoning tokens included."""

    reasoning_tokens: int = 0

    def __post_init__(self) -> None:
        cached = self.cached_tokens + self.cache_write_tokens
        assert min(self.cached_tokens, self.cache_write_tokens) >= 0, "tokens are counted from zero"  # noqa: S101 - our invariant; models.usage reads foreign numbers
        assert cached <= self.input_tokens, "cached tokens are input tokens"  # noqa: S101 - as above
        assert 0 <= self.reasoning_tokens <= self.output_tokens, "reasoning is output"  # noqa: S101 - as above

    @property
    def total(self) -> int:
        """Tokens in both directions."""
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """US dollars of one call, by what they were paid for; no token is in two parts."""

    input: Decimal
    """For what was sent, neither read from a cache nor written to one."""

    cached: Decimal
    cache_write: Decimal
    output: Decimal
    """For what came back, reasoning apart."""

    reasoning: Decimal

    @property
    def total(self) -> Decimal:
        """The whole call."""
        return sum((getattr(self, each.name) for each in fields(self)), Decimal(0))


class PriceBook:
    """Prices by model: an override where there is one, else the packaged table.

    An override holds for exactly the name that it is given for, with or without its provider
    (`my-model`, `azure:my-model`): a dated or fine-tuned model can have another price.

    Args:
        overrides: By model name, `input`, `output` and perhaps `cached`, `cache_write` (default: as
            input), `reasoning` (default: as output) and `tiers`, in US dollars per million tokens;
            text, whole numbers or `Decimal`: a float is not exact.
        as_of: When the overrides were made.
        version: What their author calls them.

    Raises:
        ConfigError: An override has an unknown or missing rate, or one that is not exact.

    Example:
        >>> PriceBook({"m": {"input": "0.25", "output": 2}}).tariff("m").rates.output
        Decimal('2')
    """

    def __init__(
        self,
        overrides: Mapping[str, Given] | None = None,
        *,
        as_of: date | None = None,
        version: str = "",
    ) -> None:
        given = overrides or {}
        self._overrides = MappingProxyType({name: tariff(name, given[name]) for name in given})
        self._own_date = as_of
        self._version = version

    @classmethod
    def from_toml(cls, text: str) -> PriceBook:
        """Read the text of a price file; see `plangate.budget.pricefile`.

        Raises:
            ConfigError: No TOML, an unknown key or a bad value; with the line.
        """
        read = read_prices(text)
        return cls(read.models, as_of=read.as_of, version=read.version)

    @cached_property
    def table(self) -> str:
        """Name and version of the prices, recorded with every amount."""
        if not self._overrides:
            return packaged_name()
        said = {name: each.said() for name, each in self._overrides.items()}
        own = " ".join(str(each) for each in (self._version, self._own_date or "") if each)
        return f"{packaged_name()} + {own or 'overrides'} {digest(said)[:12]}"

    @property
    def as_of(self) -> date | None:
        """Date of the older of the two tables; None: not known."""
        packaged = packaged_date()
        if packaged is None or self._own_date is None:
            return packaged
        return min(packaged, self._own_date)

    def is_old(self, now: datetime) -> bool:
        """True if a table is more than 180 days old, or nobody knows how old it is."""
        return self.as_of is None or now.date() - self.as_of > OLD_AFTER

    def age(self, now: datetime) -> str:
        """Say why prices may be out of date; empty if they are young enough."""
        if not self.is_old(now):
            return ""
        if self.as_of is None:
            return f"nobody knows how old the prices are ({self.table})"
        return f"prices are of {self.as_of}, {(now.date() - self.as_of).days} days ago"

    def tariff(self, model: str) -> Tariff | None:
        """Return what a model charges; None: unknown."""
        provider, name = _split(model)
        own = self._overrides.get(model) or self._overrides.get(name)
        return own or packaged_tariff(provider, name)


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
    parts = cost_parts(usage, model, book)
    return None if parts is None else parts.total


def cost_parts(usage: Usage, model: str, book: PriceBook) -> Cost | None:
    """Price one call in US dollars, part by part; see `usage_cost`."""
    found = book.tariff(model)
    if found is None:
        return None
    rates = found.of_call(usage.input_tokens)
    fresh = usage.input_tokens - usage.cached_tokens - usage.cache_write_tokens
    return Cost(
        input=rates.input * fresh / _MILLION,
        cached=rates.cached * usage.cached_tokens / _MILLION,
        cache_write=rates.cache_write * usage.cache_write_tokens / _MILLION,
        output=rates.output * (usage.output_tokens - usage.reasoning_tokens) / _MILLION,
        reasoning=rates.reasoning * usage.reasoning_tokens / _MILLION,
    )


def most_cost(usage: Usage, model: str, book: PriceBook) -> Decimal | None:
    """Price a call that is still to be made, at the most that tokens in these directions can cost.

    All that is sent may be written to a cache, and all that comes back may be reasoning.
    """
    found = book.tariff(model)
    if found is None:
        return None
    rates = found.of_call(usage.input_tokens)
    sent = max(rates.input, rates.cache_write) * usage.input_tokens
    return (sent + max(rates.output, rates.reasoning) * usage.output_tokens) / _MILLION


def _split(model: str) -> tuple[str | None, str]:
    provider, colon, name = model.partition(":")
    if provider == "ft":  # OpenAI's own form for a fine-tuned model: ft:base:organisation::id
        return "openai", model
    return (provider, name) if colon else (None, model)
