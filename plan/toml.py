"""Reads TOML that people write for us, as plain data, or says in one sentence why it is none."""

from __future__ import annotations

import tomllib
from decimal import Decimal, InvalidOperation
from typing import Any

from plangate.plan.errors import ConfigError


def read_toml(text: str, what: str, *, exact: bool = False) -> dict[str, Any]:
    """Read one document.

    Args:
        text: The file's text.
        what: How messages call the file, as `policy`.
        exact: True: a number with a point comes as the decimal that is written, never as a float.

    Raises:
        ConfigError: It is no TOML, is nested too deeply, or holds a number beyond all measure.
    """
    try:
        return tomllib.loads(text, parse_float=Decimal if exact else float)
    except tomllib.TOMLDecodeError as exc:
        says, hint = f"is not TOML: {exc}", "Correct the syntax at that line."
    except RecursionError:
        says, hint = "is nested too deeply", "Flatten it."
    except (ValueError, InvalidOperation):  # more digits than Python reads
        says, hint = "holds a number that is too large to read", "Write a smaller one."
    raise ConfigError(f"{what} {says}", hint=hint)
