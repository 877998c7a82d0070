"""What a step calls, a tool or a model. A try of a step is the same for both but for this.

A call is made ready first: what it may cost is held back before anything of it is on the record,
and the record says what is about to happen before it does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from plangate.engine.tooling import ToolCapability
from plangate.engine.turn import told
from plangate.engine.working import ModelCapability
from plangate.models.working import AGENT as AGENT_ROLE
from plangate.plan.contract import AGENT, MODEL, contract_of

if TYPE_CHECKING:
    from plangate.engine.bench import Bench
    from plangate.engine.charge import Charge
    from plangate.engine.effect import Acted
    from plangate.engine.release import Ready
    from plangate.engine.retry import Repeat
    from plangate.journal.asked import ModelAsked
    from plangate.plan.catalog import ToolSpec
    from plangate.plan.value.step import Step


class Trial(NamedTuple):
    """Which try of which step a call is made for."""

    step: Step
    ready: Ready
    attempt_id: str


class Call(Protocol):
    """One call whose cost is held back: it is made once, or dropped."""

    @property
    def asks(self) -> ModelAsked | None:
        """What a model is asked; None where none is."""
        ...

    @property
    def charge(self) -> Charge | None:
        """What a tool is charged for it; None: a model's cost stands on a record of its own."""
        ...

    async def make(self) -> Acted:
        """Make it, and settle what was held back. An expected failure is returned."""
        ...

    def drop(self) -> None:
        """Give back what was held; without effect once it was settled."""
        ...


class Capability(Protocol):
    """What carries a step out."""

    @property
    def spec(self) -> ToolSpec:
        """The contract."""
        ...

    @property
    def name(self) -> str:
        """What the log calls it, with its version."""
        ...

    @property
    def repeat(self) -> Repeat:
        """How safe it is to try again."""
        ...

    async def reserve(self, bench: Bench, trial: Trial) -> Call:
        """Hold back what a call may cost.

        Raises:
            BudgetExceeded: It would pass a limit; nothing was begun.
        """
        ...


def capability_of(bench: Bench, step: Step) -> Capability | None:
    """Return what carries a step out here; None: it is not there (any more)."""
    if step.kind == MODEL:
        spec = contract_of(step, bench.catalog)
        model = bench.step_model
        return None if model is None or spec is None else ModelCapability(spec, model)
    if step.kind == AGENT:
        spec = contract_of(step, bench.catalog)
        model = bench.step_model
        if model is None or spec is None:
            return None
        return ModelCapability(spec, model, AGENT_ROLE, AGENT_ROLE, told(bench, step))
    tool = bench.tools.get(step.tool or "")
    return None if tool is None else ToolCapability(tool)
