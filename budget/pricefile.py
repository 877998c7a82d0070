"""Reads a price file: TOML, exact decimals, a date, and nothing that is not known.

as_of = 2026-11-01                 # required: the day on which these prices held
version = "contract-7"             # of your own choice; recorded with every amount

[models."my-model"]                # exactly the name that the model is asked by
input = "0.25"                     # USD per million tokens, as text or a decimal number
output = "2"
cached = "0.025"                   # default: as input
cache_write = "0.3125"             # default: as input
reasoning = "2"                    # default: as output

[[models."my-model".tiers]]        # for all tokens of a call that sends more than `above`
above = 272000
input = "0.5"
output = "3"
"""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from plangate.budget.rates import tariff
from plangate.plan.errors import ConfigError
from plangate.plan.toml import read_toml

if TYPE_CHECKING:
    from collections.abc import Mapping

_KEYS = {"as_of", "version", "models"}
_HINT = "The docstring of plangate.budget.pricefile shows every key."


class PriceFile(NamedTuple):
    """What a price file says."""

    as_of: date
    version: str
    models: Mapping[str, Mapping[str, Any]]


def read_prices(text: str) -> PriceFile:
    """Read the text of a price file.

    Raises:
        ConfigError: No TOML, an unknown key, a bad value, or no date; with the line.
    """
    data = read_toml(text, "price file", exact=True)
    for key in data.keys() - _KEYS:
        _refuse(text, key, f"unknown key {key!r}")
    as_of, version, models = data.get("as_of"), data.get("version", ""), data.get("models")
    if not isinstance(as_of, date) or isinstance(as_of, datetime):
        _refuse(text, "as_of", "there is no date as_of", "Write as_of = 2026-11-01, say.")
    if not isinstance(version, str) or not version.isprintable():
        _refuse(text, "version", "version is no line of text")
    if not isinstance(models, dict) or not models:
        _refuse(text, "models", "there is no table of models", 'Write [models."my-model"].')
    for model, given in models.items():
        _check(text, model, given)
    return PriceFile(as_of, version, models)


def _check(text: str, model: str, given: object) -> None:
    try:
        tariff(model, given)
    except ConfigError as exc:
        _refuse(text, model, str(exc), exc.hint)


def _refuse(text: str, word: str, says: str, hint: str = _HINT) -> NoReturn:
    raise ConfigError(f"price file line {_line_of(text, word)}: {says}", hint=hint)


def _line_of(text: str, word: str) -> int:
    """Return the first line that speaks of a key, comments aside; the first one if none does."""
    spelt = re.compile(rf"(?<![\w-])[\"']?{re.escape(word)}[\"']?(?![\w-])")
    for at, line in enumerate(text.splitlines(), start=1):
        if spelt.search(line.partition("#")[0]):
            return at
    return 1
