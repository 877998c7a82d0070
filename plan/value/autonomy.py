"""What a bounded sub-agent may do inside one step. A person approves it as it stands here."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from plangate.plan.value.amounts import Usd
from plangate.plan.value.frozen import Frozen

MOST_TOOLS = 20
MOST_TURNS = 50

_Tool: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,79}$")]


class Autonomy(Frozen):
    """The envelope of an agent step. Whatever its model writes, nothing leaves it."""

    tools: Annotated[tuple[_Tool, ...], Field(min_length=1, max_length=MOST_TOOLS)]
    """What it may call, by whole names; there are no patterns."""

    max_steps: Annotated[int, Field(ge=1, le=MOST_TURNS)]
    """Calls of its model in this run, each of which leads to one call of a tool or to the answer.
    What was spent before a crash, or before the step was started anew, counts."""

    max_seconds: Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]
    """In attempts, those before a crash among them."""

    max_usd: Usd | None = None
    """Models, tools and checks of the step together; None: the limits of the run alone count."""

    ceiling: Literal["none", "read", "write", "irreversible"] = "read"
    """The worst effect that one of its tools may have."""

    labels: tuple[Annotated[str, Field(min_length=1, max_length=80)], ...] = ()
    """Confidentiality labels of the data that it may see; unlabelled data needs none."""
