"""What a question says beside the plan: who must agree, what moved, what a denial costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plangate.cli.render_plan import value
from plangate.cli.terminal import line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.text import Text


def gate_lines(payload: Mapping[str, Any]) -> Iterator[Text]:
    """Return the lines for the payload of a question."""
    for each in payload.get("warnings", ()):
        yield line(("take note", "bold yellow"), each)
    for moved in payload.get("moved", ()):
        now = "cannot be read now" if moved["now"] is None else f"is {moved['now']} now"
        yield line(("changed", "bold yellow"), f"{moved['object']} was {moved['was']}, {now}")
    for read in payload.get("info", ()):
        shown = read["says"] if read["output"] is None else value(read["output"])
        yield line(("read on request", "bold"), read["tool"], value(read["args"]), shown)
    for step in payload.get("steps", ()):
        yield from _denying(step["id"], step["denying"])
    if payload.get("quorum", 1) > 1:
        yield line(("approvals", "bold"), f"{payload['quorum']} different people have to agree")
    if payload.get("roles"):
        yield line(("for", "bold"), " or ".join(payload["roles"]))


def _denying(step: str, loss: Mapping[str, Any]) -> Iterator[Text]:
    parts = []
    if loss["drops"]:
        more = f" and {loss['more']} more" if loss["more"] else ""
        parts.append(f"also drops {', '.join(loss['drops'])}{more}")
    if loss["cannot_pass"]:
        parts.append(f"then cannot pass: {', '.join(loss['cannot_pass'])}")
    if loss["may_not_pass"]:
        parts.append(f"may not pass: {', '.join(loss['may_not_pass'])}")
    if parts:
        yield line((f"denying {step}", "dim"), "; ".join(parts))
