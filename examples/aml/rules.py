"""The thresholds of the rule engine, read from `rules.toml`; a missing or unknown one is refused.

All are whole numbers: money in cents, spans in hours, shares in percent.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

from pydantic import ValidationError

from plangate.plan.errors import ConfigError
from plangate.plan.toml import read_toml
from plangate.plan.value.frozen import Frozen, parse


class Structuring(Frozen):
    """Several cash deposits, each kept below what must be reported."""

    threshold_cents: int
    near_cents: int
    least_count: int
    least_total_cents: int
    span_hours: int


class Fan(Frozen):
    """Many parties that pay in, or are paid, at about the same time."""

    least_parties: int
    least_total_cents: int
    span_hours: int


class RapidMovement(Frozen):
    """Money that is gone again almost as soon as it came."""

    least_in_cents: int
    least_share_pct: int
    gather_hours: int
    onward_hours: int


class RoundTrip(Frozen):
    """Money that comes back by way of others."""

    least_cents: int
    least_share_pct: int
    hop_hours: int
    most_hops: int
    least_between: int


class Rules(Frozen):
    """All thresholds of one version of the rule file."""

    version: int
    structuring: Structuring
    fan_in: Fan
    fan_out: Fan
    rapid_movement: RapidMovement
    round_trip: RoundTrip


@dataclass(frozen=True, slots=True)
class Text:
    """A typology text that can be looked up and cited."""

    ref: str
    typology: str
    title: str
    text: str


def read_rules(toml: str) -> Rules:
    """Read a rule file.

    Raises:
        ConfigError: It is not TOML, or a threshold is missing, unknown or no whole number.
    """
    hint = "See plangate/examples/aml/rules.toml for all thresholds."
    try:
        return parse(Rules, read_toml(toml, "the AML rules"))
    except ValidationError as exc:
        fault = exc.errors(include_url=False)[0]
        where = ".".join(map(str, fault["loc"]))
        raise ConfigError(f"the AML rules: {where}: {fault['msg']}", hint=hint) from exc


@lru_cache(maxsize=1)
def rules() -> Rules:
    """Return the rules in force."""
    return read_rules(_file("rules.toml"))


@lru_cache(maxsize=1)
def typology_texts() -> tuple[Text, ...]:
    """Return the texts about typologies, in order of the file."""
    said = read_toml(_file("typologies.toml"), "the typology texts")
    return tuple(Text(**each) for each in said["texts"])


def _file(name: str) -> str:
    return resources.files("plangate.examples.aml").joinpath(name).read_text(encoding="utf-8")
