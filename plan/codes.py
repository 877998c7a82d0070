"""Every kind of finding about a plan, in one table: no layer can report a code that is not here."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from plangate.plan.codes_of_form import GRAPH, SCHEMA, TOOLS
from plangate.plan.codes_of_risk import BUDGET, BUSINESS, COMPLETION, EFFECTS
from plangate.plan.issue import Issue

if TYPE_CHECKING:
    from collections.abc import Mapping

Severity: TypeAlias = Literal["error", "warning"]


class Code(NamedTuple):
    """One kind of finding, explained for a reader who meets it for the first time."""

    layer: int
    what: str
    """What is wrong."""

    why: str
    """Why it matters."""

    fix: str
    """What to do, as an imperative; the hint of an issue that has no better one."""

    severity: Severity = "error"
    """The usual one; an issue may say otherwise where the step's effect decides."""


def _table(layer: int, rows: Mapping[str, tuple[str, ...]]) -> dict[str, Code]:
    return {name: Code(layer, *row) for name, row in rows.items()}  # type: ignore[arg-type]


_LAYERS = (SCHEMA, GRAPH, TOOLS, BUSINESS, EFFECTS, BUDGET, COMPLETION)
CODES: Mapping[str, Code] = MappingProxyType(
    {
        name: code
        for layer, rows in enumerate(_LAYERS, start=1)
        for name, code in _table(layer, rows).items()
    }
)


def issue(
    code: str,
    says: str,
    *,
    step: str | None = None,
    field: str = "",
    hint: str = "",
    severity: Severity | None = None,
) -> Issue:
    """Return a finding of a known kind.

    Args:
        code: A key of `CODES`.
        says: What is wrong with which thing.
        step: Id of the step; None: the plan as a whole.
        field: Path below it.
        hint: What to do; empty: the usual fix of this code.
        severity: Where it differs from the usual one.
    """
    kind = CODES[code]
    return Issue(
        layer=kind.layer,
        code=code,
        step=step,
        field=field,
        says=says,
        hint=hint or kind.fix,
        severity=severity or kind.severity,
    )
