"""Every kind of finding about a plan, in one table: nobody can report a code that is not here."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from plangate.plan.codes_of_form import FORM
from plangate.plan.codes_of_patch import PATCH
from plangate.plan.codes_of_risk import RISK
from plangate.plan.codes_of_undo import UNDO
from plangate.plan.issue import Issue

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plangate.plan.code import Code, Severity

CODES: Mapping[str, Code] = MappingProxyType({**FORM, **RISK, **PATCH, **UNDO})


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
