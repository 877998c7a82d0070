"""What a critic may say: findings that cite the plan. It has no field for a new step."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from plangate.plan.value.frozen import Frozen


class Finding(Frozen):
    """One finding about a plan."""

    step: Annotated[str, Field(max_length=40)]
    """Id of a step of the plan; empty for the plan as a whole."""

    field: Annotated[str, Field(max_length=120)]
    """What it is about, as `args.amount` or `success[0].rule`."""

    says: Annotated[str, Field(min_length=1, max_length=500)]
    severity: Literal["error", "warning"]


class Criticism(Frozen):
    """All findings of one reading; none is a good answer."""

    findings: Annotated[tuple[Finding, ...], Field(max_length=20)]
