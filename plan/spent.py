"""What acts cost, and the one rule by which a further one is let through or stopped."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Protocol

from plangate.plan.errors import BudgetExceeded

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What acts have cost, or hold back."""

    usd: Decimal | None = Decimal(0)
    """None: unknown, because the price of an act is."""

    tokens: int = 0
    tool_calls: int = 0
    model_calls: int = 0
    seconds: float = 0.0
    """In attempts; those that run side by side count each."""

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            usd=None if self.usd is None or other.usd is None else self.usd + other.usd,
            tokens=self.tokens + other.tokens,
            tool_calls=self.tool_calls + other.tool_calls,
            model_calls=self.model_calls + other.model_calls,
            seconds=self.seconds + other.seconds,
        )


class Caps(Protocol):
    """Limits of anything: a step, a run, a day. None: no limit."""

    @property
    def max_usd(self) -> Decimal | None:
        """Of dollars."""
        ...

    @property
    def max_tokens(self) -> int | None:
        """Of tokens, in both directions."""
        ...

    @property
    def max_tool_calls(self) -> int | None:
        """Of calls of tools."""
        ...

    @property
    def max_model_calls(self) -> int | None:
        """Of calls of models."""
        ...


def admit(caps: Caps, so_far: Spent, asked: Spent, *, scope: str = "") -> None:
    """Let an act through that stays within the caps.

    Args:
        caps: The limits.
        so_far: What is spent and held back.
        asked: What the act needs at most.
        scope: Put before the name of the limit: `step.`, `day.`; empty for the run.

    Raises:
        BudgetExceeded: A limit would be passed, or nobody can tell whether one of dollars would.
    """
    _admit_usd(caps.max_usd, so_far.usd, asked.usd, scope)
    for name, used, needs, allowed in _counted(caps, so_far, asked):
        if allowed is not None and needs and used + needs > allowed:
            raise passed(scope + name, f"{used:,}", f"{needs:,}", f"{allowed:,}")


def passed(limit: str, spent: str, needs: str, allowed: str) -> BudgetExceeded:
    """Return the error for an act that would pass a limit."""
    return BudgetExceeded(
        f"{limit}: {spent} spent and reserved, the next act needs {needs}, {allowed} allowed",
        hint=hint_for(limit),
        limit=limit,
        spent=spent,
        allowed=allowed,
        needs=needs,
    )


def hint_for(limit: str) -> str:
    """Return what can be done where a limit stopped a run."""
    scope, _, name = limit.rpartition(".")
    if scope == "day":
        return f"Resume after midnight UTC, or raise {name} under [limits.day] of the policy."
    if scope == "agent":
        return "Widen the envelope of the step (`autonomy`) and have it approved."
    if scope == "step":
        return f"Raise {name} under [limits.step] of the policy, then resume."
    if name == "deadline":
        return "It is too late for this run; start another one with a later deadline."
    return f"Raise it: plangate run resume RUN --raise {name}=AMOUNT, up to the policy's cap."


def _counted(caps: Caps, so_far: Spent, asked: Spent) -> Iterator[tuple[str, int, int, int | None]]:
    yield "max_tokens", so_far.tokens, asked.tokens, caps.max_tokens
    yield "max_tool_calls", so_far.tool_calls, asked.tool_calls, caps.max_tool_calls
    yield "max_model_calls", so_far.model_calls, asked.model_calls, caps.max_model_calls


def _admit_usd(
    allowed: Decimal | None, used: Decimal | None, needs: Decimal | None, scope: str
) -> None:
    if allowed is None:
        return
    if used is None or needs is None:
        what = "this call" if used is not None else "an earlier call"
        raise BudgetExceeded(
            f"{scope}max_usd: the price of {what} is unknown, and {allowed} USD are allowed",
            hint="Set a price for it, or lift the cap in dollars.",
            limit=f"{scope}max_usd",
            spent="unknown" if used is None else str(used),
            allowed=str(allowed),
            needs="unknown" if needs is None else str(needs),
        )
    if needs and used + needs > allowed:
        raise passed(f"{scope}max_usd", f"{used} USD", f"{needs} USD", f"{allowed} USD")
