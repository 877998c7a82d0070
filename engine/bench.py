"""Everything that running the steps of one plan needs, in one place; nothing here is global."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from plangate.engine.authorizer import RecordedRights
from plangate.engine.brake import Brake
from plangate.engine.denials import Denials
from plangate.engine.labels import RunLabels
from plangate.engine.outputs import Outputs
from plangate.journal.attempts import CallOverran
from plangate.plan.errors import JournalError, LeaseLost
from plangate.plan.joins import is_strict
from plangate.plan.shape.cel import Compiled, compile_rule
from plangate.plan.shape.scope import rule_scope

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from plangate.budget.meter import Meter
    from plangate.engine.authorizer import Authorizer
    from plangate.engine.judging import Judge
    from plangate.engine.overrun import Overrun
    from plangate.engine.working import StepModel
    from plangate.journal.session import Session
    from plangate.plan.catalog import Catalog
    from plangate.plan.facts import PlanEstimate, Rights
    from plangate.plan.policy import Policy
    from plangate.plan.value.frozen import Json
    from plangate.plan.value.plan import Plan
    from plangate.plan.value.step import Step
    from plangate.tools.credentials import Credentials
    from plangate.tools.tool import Tool

_log = logging.getLogger("plangate")


class World(Protocol):
    """The outside that tools see, opened at the first call."""

    async def get(self) -> Any:
        """Return what the agent's `connect` gave."""
        ...


@dataclass(frozen=True, kw_only=True)
class Bench:
    """One plan version on the bench: its contracts, its rights, its journal.

    Args:
        plan: The approved version.
        catalog: The snapshot that the principal sees now; rights may have gone since planning.
        tools: Bodies by name.
        session: The owner's hold on the run.
        now: Wall clock, aware UTC; for expiry.
        monotonic: Seconds that never go back; for durations.
        authorizer: Asked for the principal's rights before each call.
    """

    plan: Plan
    catalog: Catalog
    tools: Mapping[str, Tool]
    policy: Policy
    rights: Rights
    estimate: PlanEstimate
    session: Session
    world: World
    meter: Meter
    now: Callable[[], datetime]
    jitter: Callable[[], float]
    monotonic: Callable[[], float] = time.monotonic
    report: Callable[[Mapping[str, Json]], None] = lambda _: None
    """Told of progress as it happens, for streams and screens; never the truth."""

    authorizer: Authorizer = field(default_factory=RecordedRights)
    started_s: float = field(default_factory=time.monotonic)
    brake: Brake = field(default_factory=Brake)
    step_model: StepModel | None = None
    """Carries model steps out; None: there is none."""

    judge: Judge | None = None
    """Decides checks of level L3; None: they are unknown."""

    credentials: Credentials | None = None
    """Asked for each call of a tool that names scopes or takes secrets."""

    @cached_property
    def outputs(self) -> Outputs:
        """Step outputs by id, read from the journal when first asked for."""
        return Outputs(self.plan, lambda: self.session.view, self.session.load)

    @cached_property
    def labels(self) -> RunLabels:
        """What is known of the values of this run: who may have chosen them, who may see them."""
        return RunLabels(self)

    @cached_property
    def denials(self) -> Denials:
        """What this run was denied so far."""
        return Denials(self.session, self.tools)

    @cached_property
    def seconds(self) -> dict[str, float]:
        """Expected seconds of each step, for the order of release."""
        return {each.step: each.seconds.p50 for each in self.estimate.steps}

    def values(self, step: Step | None = None) -> dict[str, Json]:
        """Return what references of a step may read, by head."""
        return {"inputs": self.plan.inputs} if step is None else self.outputs.read_by(step)

    def gaps(self, step: Step) -> tuple[str, ...]:
        """Return the predecessors that a step starts without; only a lenient join allows any."""
        if is_strict(step):
            return ()
        seen = self.session.view.steps
        return tuple(
            need
            for need in sorted(step.needs)
            if need not in seen or (seen[need].status != "done" and need not in self.outputs)
        )

    def overran(self, overrun: Overrun) -> None:
        """Record a call that nobody waits for any more; called from any thread.

        One that ends after the run was let go of cannot be written into its log: a warning says so.
        """
        event = CallOverran(
            step=overrun.step,
            attempt_id=overrun.attempt_id,
            tool=overrun.tool,
            effect_key=overrun.effect_key,
            how=overrun.how,
            after_s=overrun.after_s,
        )
        try:
            if self.session.view.ended is None:
                self.session.emit(event)
                return
        except (LeaseLost, JournalError):
            pass
        _log.warning("run %s: %s", overrun.run_id, event.model_dump_json())

    def elapsed_s(self) -> float:
        """Return seconds of execution, those of earlier passes and owners included."""
        return self.monotonic() - self.started_s

    def ask(
        self,
        rule: str,
        *,
        step: str | None,
        tool: str | None = None,
        before: bool = False,
        seen: Mapping[str, Json] = MappingProxyType({}),
    ) -> bool | None:
        """Evaluate a rule of the plan.

        Args:
            rule: The CEL text, as validated.
            step: The step whose rule it is; None for the plan's own.
            tool: Name of the tool whose output is `observed` in the rule.
            before: True for a rule that is asked before its step runs.
            seen: `result` and `observed`, where the rule may see them.

        Returns:
            None where it cannot be evaluated: unknown, neither true nor false.
        """
        compiled = compile_rule(
            rule, rule_scope(self.plan, self.catalog, step=step, observed=tool, before=before)
        )
        if not isinstance(compiled, Compiled):
            return None
        return compiled.evaluate({**self._known(compiled), **seen})

    def _known(self, compiled: Compiled) -> dict[str, Json]:
        view = self.session.view
        steps: dict[str, Json] = {}
        for name in compiled.names:
            head, _, rest = name.partition(".")
            step_id = rest.partition(".")[0]
            if head == "steps" and step_id and step_id not in steps:
                seen = view.steps.get(step_id)
                row: dict[str, Json] = {"status": seen.status if seen else "pending"}
                if step_id in self.outputs:
                    row["output"] = self.outputs[step_id]
                steps[step_id] = row
        known: dict[str, Json] = {"inputs": self.plan.inputs, "steps": steps, "facts": {}}
        if any(name.startswith("run.") for name in compiled.names):
            known["run"] = self._run()
        return known

    def _run(self) -> dict[str, Json]:
        """What a rule may read of the run itself; spending that is unknown is absent, not zero."""
        view = self.session.view
        run: dict[str, Json] = {
            "elapsed_s": self.elapsed_s(),
            "failures": len(view.failed),
            "replans": view.replans,
        }
        if view.spent_usd is not None:
            run["spent_usd"] = float(view.spent_usd)
        return run
