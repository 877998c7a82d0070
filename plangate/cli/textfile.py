"""Reads and writes text files that a command line names; a sentence says why one cannot be."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from plangate.plan.errors import ConfigError

LARGEST_BYTES: Final = 64_000_000


def read_text(name: str | Path, what: str, *, hint: str, most: int = LARGEST_BYTES) -> str:
    """Return the text of a file.

    Args:
        name: Its path, `~` allowed; `-` for stdin.
        what: How messages call it, as `policy file`.
        hint: What to do where it cannot be read.
        most: Bytes that it may have.

    Raises:
        ConfigError: It cannot be read, is too large (a device that never ends is), or is no UTF-8.
    """
    try:
        if str(name) == "-":
            said = sys.stdin.buffer.read(most + 1)
        else:
            with Path(name).expanduser().open("rb") as file:
                said = file.read(most + 1)
    except (OSError, ValueError, RuntimeError) as exc:  # a path with NUL; a `~` that is nobody's
        why = exc.strerror if isinstance(exc, OSError) else str(exc)
        raise ConfigError(f"{what} {str(name)!r} cannot be read: {why}", hint=hint) from exc
    if len(said) > most:
        raise ConfigError(f"{what} {str(name)!r} is larger than {most} bytes", hint=hint)
    try:
        return str(said, "utf-8-sig")
    except UnicodeDecodeError as exc:
        raise ConfigError(
            f"{what} {str(name)!r} is not UTF-8 at byte {exc.start}", hint="Save it as UTF-8."
        ) from exc


def write_text(path: Path, text: str, what: str) -> None:
    """Write a file.

    Raises:
        ConfigError: It cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as exc:
        raise ConfigError(
            f"{what} {str(path)!r} cannot be written: {exc.strerror}",
            hint="Name a file in a directory that you may write to.",
        ) from exc
