"""Calls of tools that count against limits: held back before, charged once when they are over.

Counted is each call of a body: an attempt, a look of a check, a read made again before an effect, a
read that a person asked for. Not counted are the questions by which a run finds out what it did
itself (reconciliation, the state of an operation): no limit may keep it from knowing. A call that
was begun is charged in full however it ends, since it may have cost; one that was not is free.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING

from plangate.budget.meter import Act
from plangate.engine.call import call, context_for
from plangate.engine.heard import Looked, record
from plangate.journal.spending import SpendingLost
from plangate.plan.value.frozen import digest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plangate.budget.meter import Reservation
    from plangate.engine.bench import Bench
    from plangate.engine.call import Returned
    from plangate.engine.classify import Failure
    from plangate.plan.catalog import ToolSpec
    from plangate.plan.value.frozen import Json
    from plangate.tools.tool import Tool


@dataclass(slots=True)
class Charge:
    """Leave for one call of a tool, from `hold`; say `begin` before it, and `close` after it."""

    bench: Bench
    spec: ToolSpec
    reservation: Reservation
    began_s: float | None = None
    _is_open: bool = field(default=True, init=False)

    @property
    def began(self) -> bool:
        """True if the body was called, so that it may have cost."""
        return self.began_s is not None

    @property
    def usd(self) -> Decimal | None:
        """What the call is charged: its price once it was begun."""
        return self.spec.usd if self.began else Decimal(0)

    @property
    def seconds(self) -> float:
        """Seconds since it was begun."""
        return 0.0 if self.began_s is None else round(self.bench.monotonic() - self.began_s, 6)

    def begin(self) -> None:
        """Say that the body is about to be called."""
        self.began_s = self.bench.monotonic()

    def close(self) -> None:
        """Settle what was held back, or give it back; a second call does nothing."""
        if not self._is_open:
            return
        self._is_open = False
        if not self.began:
            self.bench.meter.release(self.reservation)
            return
        self.bench.meter.settle(self.reservation, usd=self.spec.usd, tokens=0)
        if self.reservation.act.step is not None:
            self.bench.meter.took(self.reservation.act.step, self.seconds)


async def hold(bench: Bench, spec: ToolSpec, name: str, step: str | None) -> Charge:
    """Hold back what a call of a tool costs.

    Args:
        bench: The run.
        spec: The tool.
        name: Attempt or look that it is for.
        step: The step it is for; None: it is for the goal, or for a person.

    Raises:
        BudgetExceeded: It would pass a limit; nothing is held back.
    """
    # A global effect can be one of another run, whose row does not tell what this run did.
    act = Act(name, step, ledgered=spec.effect.acts and spec.scope == "goal")
    elapsed_s = bench.elapsed_s()
    held = await bench.meter.areserve("tool", usd=spec.usd, elapsed_s=elapsed_s, act=act)
    return Charge(bench, spec, held)


async def look(
    tool: Tool, args: Mapping[str, Json], charge: Charge, *, by: str = ""
) -> Returned | Failure:
    """Read the world beside the attempts, and record what it showed and what it cost.

    Args:
        tool: A tool that does not act.
        args: Plain JSON that fits it.
        charge: For this call; it is closed.
        by: What it is called for; empty: as the charge says.
    """
    bench, act = charge.bench, charge.reservation.act
    by = by or act.name
    try:
        context = await context_for(bench, act.step or "", by, tool.spec)
        charge.begin()
        got = await call(tool, args, context, bench.overran)
    except BaseException:
        if charge.began:  # nobody knows what it showed, and it may have cost
            bench.session.emit(
                SpendingLost(acts=(by,), step=act.step, usd=charge.usd, tool_calls=1)
            )
        raise
    finally:
        charge.close()
    looked = Looked(step=act.step, usd=charge.usd, seconds=charge.seconds)
    record(bench, tool, by, got, args_sha256=digest(args), looked=looked)
    return got
