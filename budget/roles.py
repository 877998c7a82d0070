"""Which models are set up, and what each is sent beside a plan's own values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plangate.budget.size import CALL_LIMIT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """A model in one part of a run.

    Args:
        model: Its name, as prices and logs know it.
        prompt: Everything that it is sent whatever the plan says.
        sha256: Of the prompt file, as it stands in the log.
        schema: JSON Schema of its answer; None: text, or the step's own.
        limit: Tokens of an answer at most.
    """

    model: str
    prompt: str
    sha256: str = ""
    schema: Mapping[str, Any] | None = None
    limit: int = CALL_LIMIT


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """The models of an agent; None: there is none, and nothing is called.

    Args:
        planner: Writes the plan, and another where its draft is not taken.
        critic: Reads each version once.
        judge: Decides checks of level L3.
        step: Runs the model steps.
        agent: Chooses in agent steps.
    """

    planner: Role | None = None
    critic: Role | None = None
    judge: Role | None = None
    step: Role | None = None
    agent: Role | None = None

    def named(self) -> Iterator[tuple[str, Role]]:
        """Yield the roles that are asked for the run as a whole, by the name in its log."""
        for name in ("planner", "critic", "judge"):
            role: Role | None = getattr(self, name)
            if role is not None:
                yield name, role


NOBODY = Roles()
