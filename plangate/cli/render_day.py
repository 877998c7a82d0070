"""A day of principals, as a table for people and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE
from rich.table import Table

from plangate.cli.terminal import text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from plangate.journal.reservations import Account
    from plangate.plan.limits import DayCaps
    from plangate.plan.spent import Spent

_METRICS = {
    "usd": "max_usd",
    "tokens": "max_tokens",
    "tool_calls": "max_tool_calls",
    "model_calls": "max_model_calls",
}
"""By metric, its cap."""


def day_json(account: Account, caps: DayCaps | None) -> dict[str, Any]:
    """Return one principal's day; what nobody knows is null."""
    return {
        "principal": account.principal,
        "tenant": account.tenant,
        "runs": account.runs,
        "counts": _amounts(account.counts),
        "held": _amounts(account.held),
        "limits": {name: _plain(getattr(caps, cap, None)) for name, cap in _METRICS.items()},
    }


def day_lines(found: Sequence[Account], caps: DayCaps | None) -> Iterator[RenderableType]:
    """Yield a table, one row a principal: what counts, and of how much."""
    table = Table("principal", "tenant", "runs", *_METRICS, box=SIMPLE)
    for each in found:
        said = day_json(each, caps)
        cells = (_cell(said, name) for name in _METRICS)
        row = (each.principal, each.tenant or "-", str(each.runs), *cells)
        table.add_row(*map(text, row))
    yield table


def _cell(said: dict[str, Any], name: str) -> str:
    counts, held, limit = (said[part][name] for part in ("counts", "held", "limits"))
    words = ["unknown" if counts is None else str(counts)]
    words += [f"of {limit}"] if limit is not None else []
    words += [f"({held} held)"] if held not in (0, "0", None) else []
    return " ".join(words)


def _amounts(spent: Spent) -> dict[str, Any]:
    return {name: _plain(getattr(spent, name)) for name in _METRICS}


def _plain(amount: Any) -> Any:
    """Return dollars as the text of an exact amount, and all else as it is."""
    return amount if amount is None or isinstance(amount, int) else f"{amount.normalize():f}"
