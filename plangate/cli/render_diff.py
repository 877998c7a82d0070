"""What changed between two versions of a plan, as lines: kept work first, then the changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from plangate.cli.terminal import line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.text import Text

_PLAIN = (
    ("inserted", "inserted", "green"),
    ("removed", "removed", "red"),
    ("invalidated", "invalidated", "yellow"),
    ("reordered", "reordered", "yellow"),
)
"""Field of the diff, the word for it, its style."""


def diff_lines(diff: Mapping[str, Any]) -> Iterator[Text]:
    """Yield the changes.

    Args:
        diff: `PlanDiff` as JSON data.
    """
    versions = f"v{diff.get('from_version')} → v{diff.get('to_version')}"
    yield line(("plan changed", "bold"), (versions, "bold"))
    yield line("  ", ("kept", "green"), _names(diff.get("kept")))
    for old, new in (diff.get("replaced") or {}).items():
        yield line("  ", ("replaced", "yellow"), f"{old} by {_names(new)}")
    for step, fields in (diff.get("updated") or {}).items():
        yield line("  ", ("updated", "yellow"), step, (f"({_names(fields)})", "dim"))
    for field, word, style in _PLAIN:
        if diff.get(field):
            yield line("  ", (word, style), _names(diff[field]))
    for grew in diff.get("boundary") or ():
        yield line("  ", ("may do more", "bold red"), grew)


def _names(found: object) -> str:
    if isinstance(found, Mapping):
        return ", ".join(found)
    if isinstance(found, Sequence) and not isinstance(found, str):
        return ", ".join(map(str, found)) or "nothing"
    return str(found or "nothing")
