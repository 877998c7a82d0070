"""Budget of one run in its owner's memory: reserved before an act, settled after it.

Parallel acts cannot pass a limit together, since each reservation counts until it is settled or
released. What is not known is refused where a limit depends on it: a run with a cap in dollars
makes no call without a price.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import count
from typing import TYPE_CHECKING, Literal, TypeAlias

from plangate.journal.clock import utc_now
from plangate.plan.errors import BudgetExceeded

if TYPE_CHECKING:
    from collections.abc import Callable

    from plangate.plan.value.plan import Budget

Kind: TypeAlias = Literal["tool", "model"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What acts have cost, or hold back."""

    usd: Decimal | None = Decimal(0)
    """None: unknown, because the price of an act is."""

    tokens: int = 0
    tool_calls: int = 0
    model_calls: int = 0

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            usd=None if self.usd is None or other.usd is None else self.usd + other.usd,
            tokens=self.tokens + other.tokens,
            tool_calls=self.tool_calls + other.tool_calls,
            model_calls=self.model_calls + other.model_calls,
        )


@dataclass(frozen=True, slots=True)
class Reservation:
    """Leave to act once, at no more than was asked for."""

    number: int
    kind: Kind
    asked: Spent


class Meter:
    """The limits of one run and what counts against them. Safe to use from several threads.

    Args:
        limits: The budget of the plan; None in it means no limit of that kind.
        clock: Gives the current time (aware, UTC), for the deadline.
        spent_usd: What the run has spent so far, from its journal; None: unknown.
        spent_tokens: What it has used so far.
        tool_calls: Calls of tools so far.
        model_calls: Calls of models so far.
    """

    def __init__(
        self,
        limits: Budget,
        *,
        clock: Callable[[], datetime] = utc_now,
        spent_usd: Decimal | None = Decimal(0),
        spent_tokens: int = 0,
        tool_calls: int = 0,
        model_calls: int = 0,
    ) -> None:
        self._limits = limits
        self._clock = clock
        self._settled = Spent(
            usd=spent_usd, tokens=spent_tokens, tool_calls=tool_calls, model_calls=model_calls
        )
        self._held: dict[int, Spent] = {}
        self._numbers = count(1)
        self._lock = threading.Lock()

    @property
    def spent(self) -> Spent:
        """What is settled."""
        with self._lock:
            return self._settled

    @property
    def committed(self) -> Spent:
        """What is settled or reserved."""
        with self._lock:
            return self._committed()

    def reserve(
        self,
        kind: Kind,
        *,
        usd: Decimal | None,
        tokens: int = 0,
        seconds: float = 0.0,
        elapsed_s: float = 0.0,
    ) -> Reservation:
        """Hold back what an act may cost, before it starts.

        Args:
            kind: What is called.
            usd: The most it should cost; None where nobody knows.
            tokens: The most it should use, in both directions.
            seconds: How long it should take.
            elapsed_s: Seconds of execution so far, without those that people took to answer.

        Raises:
            BudgetExceeded: With it, a limit would be passed; names limit, spent and allowed.
        """
        calls = {"tool_calls": int(kind == "tool"), "model_calls": int(kind == "model")}
        asked = Spent(usd=usd, tokens=tokens, **calls)
        with self._lock:
            self._admit(self._committed(), asked)
            self._admit_time(seconds, elapsed_s)
            number = next(self._numbers)
            self._held[number] = asked
        return Reservation(number, kind, asked)

    def settle(self, reservation: Reservation, *, usd: Decimal | None, tokens: int) -> None:
        """Replace what was held back by what the act did cost, also where that is more.

        Args:
            reservation: Not settled or released before.
            usd: The actual cost. None (unknown) ends every later reservation if dollars are capped.
            tokens: The actual use.
        """
        with self._lock:
            asked = self._held.pop(reservation.number)
            self._settled += Spent(
                usd=usd,
                tokens=tokens,
                tool_calls=asked.tool_calls,
                model_calls=asked.model_calls,
            )

    def release(self, reservation: Reservation) -> None:
        """Give a reservation back: the act did not happen. Without effect once settled."""
        with self._lock:
            self._held.pop(reservation.number, None)

    def _committed(self) -> Spent:
        return sum(self._held.values(), self._settled)

    def _admit(self, so_far: Spent, asked: Spent) -> None:
        self._admit_usd(so_far.usd, asked.usd)
        limits = self._limits
        for limit, used, needs, allowed in (
            ("max_tokens", so_far.tokens, asked.tokens, limits.max_tokens),
            ("max_tool_calls", so_far.tool_calls, asked.tool_calls, limits.max_tool_calls),
            ("max_model_calls", so_far.model_calls, asked.model_calls, limits.max_model_calls),
        ):
            if allowed is not None and needs and used + needs > allowed:
                raise _exceeded(limit, f"{used:,}", f"{needs:,}", f"{allowed:,}")

    def _admit_usd(self, used: Decimal | None, needs: Decimal | None) -> None:
        allowed = self._limits.max_usd
        if allowed is None:
            return
        if used is None or needs is None:
            what = "this call" if used is not None else "an earlier call"
            raise BudgetExceeded(
                f"max_usd: the price of {what} is unknown, and {allowed} USD are allowed",
                hint="Set a price for it, or lift the cap in dollars.",
                limit="max_usd",
                spent="unknown" if used is None else str(used),
                allowed=str(allowed),
            )
        if needs and used + needs > allowed:
            raise _exceeded("max_usd", f"{used} USD", f"{needs} USD", f"{allowed} USD")

    def _admit_time(self, seconds: float, elapsed_s: float) -> None:
        allowed = self._limits.max_seconds
        if allowed is not None and elapsed_s + seconds > allowed:
            raise _exceeded("max_seconds", f"{elapsed_s:.1f} s", f"{seconds:.1f} s", f"{allowed} s")
        deadline = self._limits.deadline
        if deadline is None:
            return
        now = self._clock()
        if now + timedelta(seconds=seconds) > deadline:
            raise _exceeded("deadline", now.isoformat(), f"{seconds:.1f} s", deadline.isoformat())


def _exceeded(limit: str, spent: str, needs: str, allowed: str) -> BudgetExceeded:
    return BudgetExceeded(
        f"{limit}: {spent} spent and reserved, the next act needs {needs}, {allowed} allowed",
        hint=f"Raise {limit}, or ask for less.",
        limit=limit,
        spent=spent,
        allowed=allowed,
    )
