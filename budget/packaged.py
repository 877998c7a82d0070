"""The packaged price table: its rates as ours. A price that it does not know for sure is absent.

The table writes an absent price as zero or leaves it out (embeddings have no output, some models no
price at all), and some models charge for more than tokens: none of these is guessed at.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from plangate.budget.rates import Rates, Tariff

if TYPE_CHECKING:
    from collections.abc import Mapping

_DATES: Mapping[str, date] = {"0.2.3": date(2026, 11, 3)}
"""When a version was made. The package does not say; the latest check that its notes speak of."""

_FIELDS: Mapping[str, str] = {
    "input": "input_mtok",
    "output": "output_mtok",
    "cached": "cache_read_mtok",
    "cache_write": "cache_write_mtok",
    "reasoning": "output_reasoning_mtok",
}
_OTHER_UNITS = ("requests_kcount", "input_mchars", "input_text_messages_kcount", "audio_hours")


def packaged_name() -> str:
    """Return package and version."""
    return f"genai-prices {version('genai-prices')}"


def packaged_date() -> date | None:
    """Return when the installed table was made; None for a version that we do not know."""
    return _DATES.get(version("genai-prices"))


def packaged_tariff(provider: str | None, model: str) -> Tariff | None:
    """Look a model up.

    Args:
        provider: As the table names it (`openai`, `azure`, ...); None: the one that is known for
            the model.
        model: Its name there, also dated.

    Returns:
        None where the model is not listed, or not priced by the token alone.
    """
    import genai_prices  # noqa: PLC0415 - 350 ms that a run without a model need not pay

    nothing = genai_prices.Usage(input_tokens=0, output_tokens=0)
    try:
        price = genai_prices.calc_price(nothing, model, provider_id=provider).model_price
    except (LookupError, ValueError):
        return None
    said = {name: getattr(price, field) for name, field in _FIELDS.items()}
    if any(getattr(price, unit, None) for unit in _OTHER_UNITS) or not (
        _base(said["input"]) and _base(said["output"])
    ):
        return None
    sizes = sorted({tier.start for each in said.values() for tier in getattr(each, "tiers", ())})
    return Tariff(
        rates=_rates(said, 0),
        above=tuple((size, _rates(said, size + 1)) for size in sizes),
    )


def _base(price: Any) -> Decimal | None:
    base: Decimal | None = getattr(price, "base", price)
    return base


def _rates(said: Mapping[str, Any], tokens: int) -> Rates:
    """Return the rates of a call of so many input tokens."""
    at = {name: _at(price, tokens) for name, price in said.items()}
    fresh, came = at["input"] or Decimal(0), at["output"] or Decimal(0)
    return Rates(
        input=fresh,
        output=came,
        cached=fresh if at["cached"] is None else at["cached"],
        cache_write=fresh if at["cache_write"] is None else at["cache_write"],
        reasoning=came if at["reasoning"] is None else at["reasoning"],
    )


def _at(price: Any, tokens: int) -> Decimal | None:
    reached = [tier.price for tier in getattr(price, "tiers", ()) if tokens > tier.start]
    return reached[-1] if reached else _base(price)
