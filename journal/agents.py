"""Events of agent steps that are not attempts: what a model wanted and was not let do."""

from __future__ import annotations

from typing import Literal

from plangate.journal.reference import Ref
from plangate.plan.value.frozen import Frozen


class AgentRefused(Frozen):
    """A model in an agent step asked for a call that was not made."""

    type: Literal["agent_refused"] = "agent_refused"
    step: str
    attempt_id: str
    """The turn in which it asked."""

    tool: str
    """As the model wrote it."""

    arguments: Ref
    """As the model wrote them, with what looks like a secret masked."""

    code: str
    why: str
