"""What a tool is told about the call it serves; the engine makes one per attempt."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from plangate.tools.credentials import Granted, Secret


def _silent(_text: str) -> None:
    """Nobody listens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """The call that a tool serves. A parameter annotated with this class is filled in, not planned.

    Example:
        >>> context = ToolContext(run_id="r1", step="S6", attempt_id="S6-A1", principal="ann")
        >>> context.effect_key is None
        True
    """

    run_id: str
    step: str
    attempt_id: str
    principal: str
    """On whose behalf the call acts."""

    tenant: str | None = None
    """To which tenant of the world the call is confined."""

    scopes: tuple[str, ...] = ()
    """Rights of the principal that this tool's contract names, and no others."""

    credential: Secret | None = None
    """Where the contract names scopes: what the agent's `credentials` gave for this very call."""

    effect_key: str | None = None
    """For acting tools: the business identity of the effect; send it as the idempotency key."""

    deadline_s: float = 30.0
    """Seconds from the start of the call after which nobody waits for it any more."""

    world: Any = None
    """What the agent's `connect` returned."""

    progress: Callable[[str], None] = _silent
    """Say how far the call is, in one line; seen live and kept in the log."""

    grants: Callable[[tuple[str, ...]], Awaitable[Granted]] | None = field(default=None, repr=False)
    """How credentials are asked for, by the references that are wanted; no body sees it."""
