"""An agent step: a model chooses what to call, inside the envelope that a person approved.

Each turn of the model and each call of a tool is an attempt of its own, `S2.1`, `S2.2`, ...: made
ready, metered, recorded and replayed like that of any other step, with the rights of its moment.
Whoever takes the step up again goes the same way over the record, as far as it reaches; only what
has no end there is done again, and all that was spent counts. A bound that is met is a failure:
half an answer is none.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from plangate.engine.call import Returned, judge_output
from plangate.engine.capability import capability_of
from plangate.engine.ended import Ended, routed
from plangate.engine.judged import judged
from plangate.engine.looked import looked_at, release, stopped
from plangate.engine.release import OVERTAKEN, Held, Ready, prepare
from plangate.engine.turn import ANSWER, Wish, shown, turn_of, wish_of
from plangate.journal.agents import AgentRefused
from plangate.journal.progress import unit_of
from plangate.plan.contract import OUT_OF_BOUNDS, contract_of
from plangate.plan.errors import BudgetExceeded
from plangate.plan.flow.denial import denial_of, denied_before
from plangate.plan.secrets import masked_json
from plangate.plan.spent import Spent
from plangate.plan.value.frozen import digest, thaw
from plangate.plan.value.step import Step
from plangate.plan.verdict import EvidenceRef

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from plangate.engine.bench import Bench
    from plangate.journal.progress import AttemptView
    from plangate.plan.flow.denial import Denial
    from plangate.plan.value.autonomy import Autonomy
    from plangate.plan.value.frozen import Json

One: TypeAlias = "Callable[[Bench, Step, int], Awaitable[Ended]]"
"""Runs one turn, or one call, to its end."""

_STOPS = frozenset({"rights_unknown", OVERTAKEN})
"""Codes after which nothing that a model could choose would be let do."""


async def run_agent(bench: Bench, step: Step, one: One) -> Ended:
    """Run an agent step.

    Args:
        bench: The run.
        step: A step with an envelope.
        one: Runs one turn of its model, or one call of a tool.

    Returns:
        Its end; where it is done, the output fits the step's own schema.

    Raises:
        BudgetExceeded, LeaseLost: The step stays pending.
        asyncio.CancelledError: The run is stopping.
    """
    envelope = step.autonomy
    assert envelope is not None, "whoever calls this looked"  # noqa: S101 (ours)
    bench, ready = await looked_at(bench, step)
    if isinstance(ready, Held):
        return await stopped(bench, step, ready)
    release(bench, step)
    used = bench.session.view.by_step.get(step.id, Spent()).seconds
    try:
        async with asyncio.timeout(max(0.0, envelope.max_seconds - used)):
            return await _Agent(bench, step, envelope, one).run()
    except TimeoutError:
        return _out_of_bounds(step, f"it took {envelope.max_seconds} s")
    except BudgetExceeded as exc:
        if not exc.limit.startswith("agent."):
            raise
        return _out_of_bounds(step, str(exc))


def _out_of_bounds(step: Step, why: str) -> Ended:
    says = f"its agent had no answer within its envelope: {why}"
    return routed(step, "failed", "permanent", OUT_OF_BOUNDS, says)


@dataclass(slots=True)
class _Agent:
    """One agent at work."""

    bench: Bench
    step: Step
    envelope: Autonomy
    one: One
    calls: list[Json] = field(default_factory=list)
    """What its model is shown of what it did."""

    evidence: list[EvidenceRef] = field(default_factory=list)
    denied: list[Denial] = field(default_factory=list)

    async def run(self) -> Ended:
        for number in range(1, self.envelope.max_steps + 1):
            if self.bench.brake.pulled:
                raise asyncio.CancelledError  # the next pass goes on from the record
            said = await self._done(turn_of(self.step, self.calls), 2 * number - 1)
            if said.status != "done" or said.output is None:
                return self._failed(said)
            wish = wish_of(cast("Mapping[str, Json]", self.bench.session.load(said.output)))
            if wish.tool == ANSWER:
                came = await self._answered(wish)
            else:
                came = await self._called(wish, number)
            if isinstance(came, Ended):
                return came
            self.calls.append(
                {"tool": wish.tool, "arguments": shown(masked_json(wish.args)), **came}
            )
        return _out_of_bounds(self.step, f"{self.envelope.max_steps} turns")

    async def _answered(self, wish: Wish) -> Ended | dict[str, Json]:
        spec = contract_of(self.step, self.bench.catalog)
        if spec is None or wish.args is None:
            return {"refused": wish.why}
        got = judge_output(spec, wish.args)
        if isinstance(got, Returned):
            return await judged(self.bench, self.step, got.output, tuple(self.evidence))
        return {"refused": got.says}

    async def _called(self, wish: Wish, number: int) -> Ended | dict[str, Json]:
        code, why = self._outside(wish)
        if code or wish.args is None:
            return self._refused(wish, number, code, why)
        spec = self.bench.catalog.tools[wish.tool]
        call = Step(
            id=self.step.id,
            objective=spec.summary[:500],
            tool=wish.tool,
            args=thaw(wish.args),  # type: ignore[arg-type]  # an object stays one
        )
        await self.bench.session.aflush()  # what was wished for is known before it is done
        ended = await self._done(call, 2 * number)
        if ended.status == "done" and ended.output is not None:
            return {"result": shown(self.bench.session.load(ended.output))}
        if ended.code in _STOPS:
            return self._failed(ended)
        if ended.outcome == "denied":
            plan = self.bench.plan
            self.denied.append(denial_of(call, plan, spec, ended.why, known=wish.args))
        if self._tried(2 * number) is None:
            return self._refused(wish, number, ended.code, ended.why)
        return {"failed": ended.code, "says": ended.why}

    def _outside(self, wish: Wish) -> tuple[str, str]:
        """Say why a call lies outside the envelope; two empty texts: it does not."""
        if wish.tool not in self.envelope.tools:
            return "outside_envelope", "this step may not call it"
        if wish.args is None or wish.why:
            return "bad_arguments", wish.why
        spec = self.bench.catalog.tools.get(wish.tool)
        if spec is None or spec.effect.acts:
            return "tool_gone", "it may not be used now"
        if says := denied_before(self.denied, "", spec, wish.args):
            return "denied_before", says
        return "", ""

    def _refused(self, wish: Wish, number: int, code: str, why: str) -> dict[str, Json]:
        """Put on the record, once, what was not called."""
        turn = self._tried(2 * number - 1)
        assert turn is not None, "a turn that said something was tried"  # noqa: S101 (ours)
        by = turn.started.attempt_id
        if by not in self.bench.session.view.not_called:
            arguments = self.bench.session.put(masked_json(wish.args))
            self.bench.session.emit(
                AgentRefused(
                    step=self.step.id,
                    attempt_id=by,
                    tool=wish.tool,
                    arguments=arguments,
                    code=code,
                    why=why,
                )
            )
        return {"refused": f"{code}: {why}"}

    async def _done(self, part: Step, element: int) -> Ended:
        """Return how a turn or a call went: from the record if it has this very one, else now."""
        ready, tried = prepare(self.bench, part), self._tried(element)
        if isinstance(ready, Ready) and tried is not None and self._stands(part, ready, tried):
            ended = Ended(step=part.id, status="done", output=_output(tried))
        else:
            ended = await self.one(self.bench, part, element)
            tried = self._tried(element)
        if ended.status == "done" and tried is not None and tried.ended is not None:
            self._cite(ended.output, tried.ended.observed)
        return ended

    def _cite(self, output: str | None, refs: tuple[str, ...]) -> None:
        if output is not None and refs:
            sha256 = digest(self.bench.session.load(output))
            self.evidence.extend(EvidenceRef(ref=ref, sha256=sha256) for ref in refs)

    def _stands(self, part: Step, ready: Ready, tried: AttemptView) -> bool:
        capability = capability_of(self.bench, part)
        return (
            capability is not None
            and tried.ended is not None
            and tried.ended.outcome == "success"
            and _output(tried) is not None
            and tried.started.plan_version == self.bench.plan.version
            and tried.started.capability == capability.name
            and tried.started.args_sha256 == ready.args_sha256
        )

    def _tried(self, element: int) -> AttemptView | None:
        """Return the last try of a turn or a call since the step was started (anew)."""
        view, unit = self.bench.session.view, unit_of(self.step.id, element)
        mine = (view.attempts[each] for each in view.steps[self.step.id].attempts)
        return next((each for each in reversed(list(mine)) if each.unit == unit), None)

    def _failed(self, ended: Ended) -> Ended:
        """Return the end of the step where a turn had none that leads on."""
        status: Literal["unknown", "failed"] = "unknown" if ended.status == "unknown" else "failed"
        return routed(self.step, status, ended.outcome, ended.code, ended.why)


def _output(tried: AttemptView) -> str | None:
    return None if tried.ended is None else tried.ended.output
