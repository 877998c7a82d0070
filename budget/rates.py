"""What one model charges, in US dollars per million tokens, read exactly or refused."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, TypeAlias

from plangate.plan.errors import ConfigError

Given: TypeAlias = Mapping[str, Any]
"""Rates as a user writes them: `input`, `output`, perhaps `cached`, `cache_write`, `reasoning`, and
`tiers`: a list of such rates, each with `above`."""

_NAMES = ("input", "output", "cached", "cache_write", "reasoning")
_MOST_USD = 1_000_000
_FINEST = -12
"""Exponent. Rates of this size times any number of tokens have less than 28 digits: all exact."""

_HINT = "Give input, output and perhaps cached, cache_write, reasoning, in USD per million tokens."


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """US dollars per million tokens of one model, for a call of one size."""

    input: Decimal
    output: Decimal
    cached: Decimal
    cache_write: Decimal
    reasoning: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Tariff:
    """The rates of one model: some charge more, for all tokens of a call, above a size."""

    rates: Rates
    above: tuple[tuple[int, Rates], ...] = ()
    """Input tokens from which other rates hold, exclusive, in ascending order."""

    def of_call(self, input_tokens: int) -> Rates:
        """Return the rates of a call that sends so many tokens."""
        reached = [rates for size, rates in self.above if input_tokens > size]
        return reached[-1] if reached else self.rates

    def said(self) -> dict[str, Any]:
        """Return plain data, for a fingerprint of the table."""
        tiers = [[size, _texts(rates)] for size, rates in self.above]
        return {"rates": _texts(self.rates), "above": tiers}


def tariff(model: str, given: object) -> Tariff:
    """Read what a user wrote about one model.

    Raises:
        ConfigError: A rate is unknown, missing or not an exact amount from zero up, or the tiers do
            not ascend; it names the model and the rate.
    """
    if not isinstance(given, Mapping):
        raise ConfigError(f"price of {model!r} is no table of rates", hint=_HINT)
    tiers = given.get("tiers", ())
    if not isinstance(tiers, Sequence) or isinstance(tiers, str):
        raise ConfigError(f"tiers of the price of {model!r} are no list", hint=_TIER_HINT)
    rates = _rates(model, {name: rate for name, rate in given.items() if name != "tiers"})
    above = tuple(_tier(model, each) for each in tiers)
    sizes = [size for size, _ in above]
    if sizes != sorted(set(sizes)):
        raise ConfigError(f"tiers of the price of {model!r} do not ascend", hint=_TIER_HINT)
    return Tariff(rates=rates, above=above)


_TIER_HINT = "Write each tier with above (input tokens), input and output, the smallest first."


def _tier(model: str, given: object) -> tuple[int, Rates]:
    size = given.get("above") if isinstance(given, Mapping) else None
    if not isinstance(given, Mapping) or type(size) is not int or size < 1:
        raise ConfigError(f"a tier of the price of {model!r} has no size", hint=_TIER_HINT)
    return size, _rates(model, {name: rate for name, rate in given.items() if name != "above"})


def _rates(model: str, given: Given) -> Rates:
    if not {"input", "output"} <= given.keys() <= set(_NAMES):
        said = ", ".join(sorted(map(str, given))) or "no rates"
        raise ConfigError(f"price of {model!r} has {said}", hint=_HINT)
    exact = {name: _exact(model, name, rate) for name, rate in given.items()}
    fresh, came = exact["input"], exact["output"]
    for name in ("cached", "cache_write", "reasoning"):
        exact.setdefault(name, came if name == "reasoning" else fresh)
    if exact["cached"] > fresh:
        raise ConfigError(
            f"price of {model!r}: cached input costs more than input",
            hint="Tokens that are written to a cache are cache_write.",
        )
    return Rates(**exact)


def _exact(model: str, name: str, rate: object) -> Decimal:
    amount = _amount(rate)
    if amount is None or not 0 <= amount <= _MOST_USD or _exponent(amount) < _FINEST:
        raise ConfigError(
            f"price of {model!r}: {name} is not an exact amount from zero up",
            hint='Write it as text: "0.25".',
        )
    return amount


_PLAIN = re.compile(r"[0-9]+(\.[0-9]+)?")


def _amount(rate: object) -> Decimal | None:
    if isinstance(rate, bool) or not isinstance(rate, (Decimal, str, int)):
        return None  # a float above all: 0.1 is not a tenth
    if isinstance(rate, str) and not _PLAIN.fullmatch(rate):
        return None
    try:
        amount = Decimal(rate)
    except InvalidOperation:
        return None
    return amount if amount.is_finite() else None


def _exponent(amount: Decimal) -> int:
    exponent = amount.normalize().as_tuple().exponent
    return exponent if isinstance(exponent, int) else 0


def _texts(rates: Rates) -> dict[str, str]:
    return {name: f"{rate.normalize():f}" for name, rate in asdict(rates).items()}
