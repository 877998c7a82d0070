"""A tool as what carries a step out: called once, under the ledger where it acts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from plangate.engine.call import call, context_for
from plangate.engine.charge import Charge, hold
from plangate.engine.effect import Act, Acted
from plangate.engine.retry import repeat_of

if TYPE_CHECKING:
    from plangate.engine.bench import Bench
    from plangate.engine.capability import Trial
    from plangate.engine.retry import Repeat
    from plangate.plan.catalog import ToolSpec
    from plangate.tools.tool import Tool


@dataclass(frozen=True, slots=True)
class ToolCapability:
    """A tool."""

    tool: Tool

    @property
    def spec(self) -> ToolSpec:
        """Its contract."""
        return self.tool.spec

    @property
    def name(self) -> str:
        """`tool@version`."""
        return f"{self.spec.name}@{self.spec.version}"

    @property
    def repeat(self) -> Repeat:
        """By its contract."""
        return repeat_of(self.spec)

    async def reserve(self, bench: Bench, trial: Trial) -> ToolCall:
        """Hold back its price.

        Raises:
            BudgetExceeded: It would pass a limit.
        """
        charge = await hold(bench, self.spec, trial.attempt_id, trial.step.id)
        return ToolCall(bench, self.tool, trial, charge)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool."""

    bench: Bench
    tool: Tool
    trial: Trial
    charge: Charge

    @property
    def asks(self) -> None:
        """A tool asks no model of ours."""
        return

    async def make(self) -> Acted:
        """Call it, and settle; a result that was found without the body costs nothing."""
        acted = await self._acted()
        self.charge.close()
        return acted

    def drop(self) -> None:
        """Give its price back, unless the body was called."""
        self.charge.close()

    async def _acted(self) -> Acted:
        bench, tool, (step, ready, attempt_id) = self.bench, self.tool, self.trial
        context = await context_for(bench, step.id, attempt_id, tool.spec)
        if not tool.spec.effect.acts:
            self.charge.begin()
            return Acted(await call(tool, ready.args, context, bench.overran), key="")
        act = Act(
            bench=bench,
            step=step,
            tool=tool,
            ready=ready,
            context=context,
            begin=self.charge.begin,
        )
        return await act.run()
