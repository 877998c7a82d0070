"""Limits of a run that a person raised: which they are, and what may become of them.

A raise is an event with a name under it. It goes as far as the policy's cap and no further, and it
is of this run: neither a step's nor a day's limit can be raised for one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import ValidationError

from plangate.journal.spending import LimitRaised
from plangate.plan.errors import ConfigError, Denied
from plangate.plan.limits import RUN_CAPS, RunCaps
from plangate.plan.value.frozen import parse
from plangate.plan.value.plan import Budget

NAMES: Final = tuple(name for name in RUN_CAPS if name != "deadline")
"""What can be raised."""


def raised(raises: Sequence[LimitRaised]) -> dict[str, Any]:
    """Return the limits that people raised, by name; of one limit the newest counts."""
    return {name: amount for each in raises for name, amount in _amounts(each.limits).items()}


def raise_of(
    now: Budget, caps: RunCaps, wanted: Mapping[str, str], *, by: str, reason: str = ""
) -> LimitRaised:
    """Return the event that raises limits of a run.

    Args:
        now: The limits as they hold.
        caps: Those of the policy.
        wanted: By name the new limit, as text: `{"max_usd": "2.00"}`.
        by: Who raises them.
        reason: In words, for the record.

    Raises:
        ConfigError: Nobody is named, a limit or an amount is none, or is not above the one that
            holds.
        Denied: The policy's cap is lower.
    """
    if not by.strip():
        raise ConfigError("nobody is named who raises the limits", hint="Say who, with by=.")
    if not wanted:
        raise ConfigError("no limit is named", hint=f"Name one of {', '.join(NAMES)}.")
    amounts = _amounts(wanted)
    for name, amount in amounts.items():
        holds, cap = getattr(now, name), getattr(caps, name)
        if holds is None:
            raise ConfigError(
                f"{name} is not limited in this run", hint="There is nothing to raise."
            )
        if cap is not None and amount > cap:
            raise Denied(
                f"{name} cannot be raised to {amount}: the policy allows {cap}",
                hint=f"Go up to {cap}, or change {name} under [limits.run] of the policy.",
            )
        if amount <= holds:
            raise ConfigError(f"{name} is {holds} already", hint="Name a larger amount.")
    return LimitRaised(
        by=by,
        limits={name: str(amount) for name, amount in amounts.items()},
        was={name: str(getattr(now, name)) for name in amounts},
        reason=reason,
    )


def _amounts(wanted: Mapping[str, str]) -> dict[str, Any]:
    """Read amounts by name."""
    if unknown := sorted(wanted.keys() - set(NAMES)):
        raise ConfigError(
            f"{unknown[0]!r} is no limit that can be raised",
            hint=f"Name one of {', '.join(NAMES)}.",
        )
    try:
        return {
            name: getattr(parse(RunCaps, {name: _number(name, said)}), name)
            for name, said in wanted.items()
        }
    except ValidationError as exc:
        fault = exc.errors()[0]
        raise ConfigError(
            f"{fault['loc'][0]} cannot be {fault['input']!r}: {fault['msg']}",
            hint="Write NAME=AMOUNT, as max_usd=2.00.",
        ) from exc


def _number(name: str, said: str) -> object:
    """Read an amount as its own kind: dollars stay text, so that they are exact."""
    if name == "max_usd":
        return said
    kind = float if name == "max_seconds" else int
    try:
        return kind(said)
    except ValueError:
        return said
