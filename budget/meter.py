"""Budget of one run in its owner's memory: reserved before an act, settled after it.

Parallel acts cannot pass a limit together, since each reservation counts until it is settled or
released. What is not known is refused where a limit depends on it: a run with a cap in dollars
makes no call without a price. What other runs and processes share, a principal's day, is held in
the journal; so is each call of a model, whose cost nobody could tell after a crash.
"""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeAlias

from plangate.journal.clock import utc_now
from plangate.plan.errors import PlangateError
from plangate.plan.limits import DayCaps, StepCaps
from plangate.plan.spent import Spent, admit, passed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from decimal import Decimal

    from plangate.plan.spent import Caps
    from plangate.plan.value.plan import Budget

__all__ = ["Act", "Day", "Kind", "Meter", "Reservation", "Rows", "Spent", "Steps"]

Kind: TypeAlias = Literal["tool", "model"]


class Act(NamedTuple):
    """What a reservation is for."""

    name: str = ""
    """The attempt, check or role, as `S1-A1`."""

    step: str | None = None
    """The step it belongs to; None: it is the run's."""

    ledgered: bool = False
    """True if the ledger tells whether it was begun."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """Leave to act once, at no more than was asked for."""

    number: int
    kind: Kind
    asked: Spent
    act: Act = field(default_factory=Act)
    row: str | None = None
    """Its row in the journal; None: it has none."""


class Rows(Protocol):
    """Where reservations lie that others must see, see `plangate.journal.purse`."""

    def hold(self, asked: Spent, caps: Caps | None, *, act: str, ledgered: bool = False) -> str:
        """Hold back what an act may take, and return the row."""
        ...

    def end(self, row_id: str, spent: Spent | None) -> None:
        """Say what it did cost; None: it did not happen."""
        ...


class Day(NamedTuple):
    """The day of a principal."""

    rows: Rows
    caps: DayCaps = DayCaps()

    @property
    def limited(self) -> bool:
        """True if there is a cap at all."""
        return self.caps != DayCaps()


class Steps(NamedTuple):
    """Limits of single steps, and what each of them has taken so far."""

    caps: StepCaps = StepCaps()
    spent: Mapping[str, Spent] = MappingProxyType({})
    own: Mapping[str, StepCaps] = MappingProxyType({})
    """What single steps bring with them, by step: named `agent.` where one is passed."""


@dataclass(slots=True)
class _Count:
    """What is settled, and what is held, of one thing that has limits."""

    settled: Spent = field(default_factory=Spent)
    held: dict[int, Spent] = field(default_factory=dict)

    def all(self) -> Spent:
        return sum(self.held.values(), self.settled)


class Meter:
    """The limits of one run and what counts against them. Safe to use from several threads.

    Args:
        limits: The budget of the run; None in it means no limit of that kind.
        clock: Gives the current time (aware, UTC), for the deadline.
        spent: What the run has taken so far, from its journal.
        steps: The limits of each step.
        day: The principal's day; None: nothing is shared, and nothing is written.
    """

    def __init__(
        self,
        limits: Budget,
        *,
        clock: Callable[[], datetime] = utc_now,
        spent: Spent = Spent(),  # noqa: B008 - a value
        steps: Steps = Steps(),  # noqa: B008 - a value
        day: Day | None = None,
    ) -> None:
        self.limits = limits
        """Of the run, as they hold now."""

        self._clock = clock
        self._run = _Count(spent)
        self._caps, self._own = steps.caps, steps.own
        self._steps = {step: _Count(taken) for step, taken in steps.spent.items()}
        self._day = day
        self._numbers = count(1)
        self._lock = threading.Lock()

    @property
    def spent(self) -> Spent:
        """What is settled."""
        with self._lock:
            return self._run.settled

    @property
    def committed(self) -> Spent:
        """What is settled or reserved."""
        with self._lock:
            return self._run.all()

    def reserve(
        self,
        kind: Kind,
        *,
        usd: Decimal | None,
        tokens: int = 0,
        seconds: float = 0.0,
        elapsed_s: float = 0.0,
        act: Act = Act(),  # noqa: B008 - a value
    ) -> Reservation:
        """Hold back what an act may cost, before it starts; waits for the disk if it must.

        Args:
            kind: What is called.
            usd: The most it should cost; None where nobody knows.
            tokens: The most it should use, in both directions.
            seconds: How long it should take.
            elapsed_s: Seconds of execution so far, without those that people took to answer.
            act: What is about to be done.

        Raises:
            BudgetExceeded: With it, a limit would be passed; names limit, spent, needs and allowed.
            LeaseLost: Another owner has the run.
        """
        asked = _asked(kind, usd, tokens, seconds)
        held = self._hold(Reservation(next(self._numbers), kind, asked, act), elapsed_s)
        try:
            return self._noted(held)
        except PlangateError:
            self.release(held)
            raise

    async def areserve(
        self,
        kind: Kind,
        *,
        usd: Decimal | None,
        tokens: int = 0,
        seconds: float = 0.0,
        elapsed_s: float = 0.0,
        act: Act = Act(),  # noqa: B008 - a value
    ) -> Reservation:
        """Do as `reserve` without blocking the event loop."""
        asked = _asked(kind, usd, tokens, seconds)
        held = self._hold(Reservation(next(self._numbers), kind, asked, act), elapsed_s)
        if not self._writes(kind):
            return held
        writing = asyncio.ensure_future(asyncio.to_thread(self._noted, held))
        try:
            return await asyncio.shield(writing)
        except BaseException:
            if not writing.done():  # cancelled: the row may be made all the same, so wait for it
                await asyncio.wait([writing])
            noted = held if writing.cancelled() or writing.exception() else writing.result()
            self.release(noted)
            raise

    def settle(self, reservation: Reservation, *, usd: Decimal | None, tokens: int) -> None:
        """Replace what was held back by what the act did cost, also where that is more.

        Args:
            reservation: Not settled or released before.
            usd: The actual cost. None (unknown) ends every later reservation if dollars are capped.
            tokens: The actual use.
        """
        asked = reservation.asked
        cost = Spent(
            usd=usd, tokens=tokens, tool_calls=asked.tool_calls, model_calls=asked.model_calls
        )
        with self._lock:
            for each in self._counts(reservation.act):
                del each.held[reservation.number]
                each.settled += cost
        if reservation.row is not None and self._day is not None:
            self._day.rows.end(reservation.row, cost)

    def release(self, reservation: Reservation) -> None:
        """Give a reservation back: the act did not happen. Without effect once settled."""
        with self._lock:
            held = [
                each.held.pop(reservation.number, None) for each in self._counts(reservation.act)
            ]
        if held[0] is not None and reservation.row is not None and self._day is not None:
            self._day.rows.end(reservation.row, None)

    def took(self, step: str, seconds: float) -> None:
        """Count the seconds of an attempt of a step."""
        with self._lock:
            self._of(step).settled += Spent(seconds=seconds)

    def _hold(self, wanted: Reservation, elapsed_s: float) -> Reservation:
        with self._lock:
            admit(self.limits, self._run.all(), wanted.asked)
            if wanted.act.step is not None:
                so_far = self._of(wanted.act.step).all()
                self._admit_step(so_far, wanted.asked)
                if (own := self._own.get(wanted.act.step)) is not None:
                    admit(own, so_far, wanted.asked, scope="agent.")
            self._admit_time(wanted.asked.seconds, elapsed_s)
            for each in self._counts(wanted.act):
                each.held[wanted.number] = wanted.asked
        return wanted

    def _writes(self, kind: Kind) -> bool:
        return self._day is not None and (kind == "model" or self._day.limited)

    def _noted(self, held: Reservation) -> Reservation:
        """Write a reservation down where others must see it."""
        day = self._day
        if day is None or not self._writes(held.kind):
            return held
        caps = day.caps if day.limited else None
        row = day.rows.hold(held.asked, caps, act=held.act.name, ledgered=held.act.ledgered)
        return Reservation(held.number, held.kind, held.asked, held.act, row)

    def _counts(self, act: Act) -> tuple[_Count, ...]:
        return (self._run,) if act.step is None else (self._run, self._of(act.step))

    def _of(self, step: str) -> _Count:
        return self._steps.setdefault(step, _Count())

    def _admit_step(self, so_far: Spent, asked: Spent) -> None:
        admit(self._caps, so_far, asked, scope="step.")
        allowed = self._caps.max_seconds
        if allowed is not None and so_far.seconds + asked.seconds > allowed:
            spent, needs = f"{so_far.seconds:.1f} s", f"{asked.seconds:.1f} s"
            raise passed("step.max_seconds", spent, needs, f"{allowed} s")

    def _admit_time(self, seconds: float, elapsed_s: float) -> None:
        allowed = self.limits.max_seconds
        if allowed is not None and elapsed_s + seconds > allowed:
            raise passed("max_seconds", f"{elapsed_s:.1f} s", f"{seconds:.1f} s", f"{allowed} s")
        deadline = self.limits.deadline
        if deadline is None:
            return
        deadline = deadline if deadline.tzinfo else deadline.replace(tzinfo=UTC)
        now = self._clock()
        if now + timedelta(seconds=seconds) > deadline:
            raise passed("deadline", now.isoformat(), f"{seconds:.1f} s", deadline.isoformat())


def _asked(kind: Kind, usd: Decimal | None, tokens: int, seconds: float) -> Spent:
    return Spent(
        usd=usd,
        tokens=tokens,
        tool_calls=int(kind == "tool"),
        model_calls=int(kind == "model"),
        seconds=seconds,
    )
