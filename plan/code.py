"""One kind of finding about a plan, explained for a reader who meets it for the first time."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

Severity: TypeAlias = Literal["error", "warning"]


class Code(NamedTuple):
    """What a code means; the code itself is the key under which this stands in `CODES`."""

    layer: int
    """See `plangate.plan.issue.Issue.layer`."""

    what: str
    """What is wrong."""

    why: str
    """Why it matters."""

    fix: str
    """What to do, as an imperative; the hint of an issue that has no better one."""

    example: str
    """A finding of this kind, or how it begins."""

    severity: Severity = "error"
    """The usual one; an issue may say otherwise where the step's effect decides."""
