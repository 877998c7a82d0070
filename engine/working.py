"""A chat model as what carries a step out: one quarantined call a try, which changes nothing.

What it is asked is on the disk before it is asked, so that a call whose answer is lost is still
counted; a step that has to be taken up again asks anew.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from plangate.engine.call import Returned, judge_output
from plangate.engine.classify import Failure, classify_fault, redact
from plangate.engine.effect import Acted
from plangate.models.chat import model_name
from plangate.models.fault import Fault
from plangate.models.working import PROMPT, ROLE, Work, work_question
from plangate.plan.secrets import masked
from plangate.prompts.loader import load

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plangate.budget.meter import Reservation
    from plangate.budget.prices import PriceBook
    from plangate.engine.bench import Bench
    from plangate.engine.capability import Trial
    from plangate.engine.retry import Repeat
    from plangate.journal.asked import ModelAsked
    from plangate.journal.reference import Ref
    from plangate.models.asking import Asking, Reply
    from plangate.plan.catalog import ToolSpec
    from plangate.plan.value.frozen import Json

_MENDED = ("output_schema", "output_not_json", "output_too_large")
"""Codes of answers that the next try is told about."""


@dataclass(frozen=True, slots=True)
class StepModel:
    """The model that carries model steps out, and what it costs.

    Args:
        chat: Any LangChain chat model.
        book: Prices.
    """

    chat: Any
    book: PriceBook

    @property
    def name(self) -> str:
        """The name that policies of price and logs know it by."""
        return model_name(self.chat)

    def for_try(self, trial: Trial) -> Any:
        """Return the chat model for one try; a replay has another one for each."""
        del trial
        return self.chat


@dataclass(frozen=True, slots=True)
class ModelCapability:
    """A chat model."""

    spec: ToolSpec
    model: StepModel
    prompt: str = PROMPT
    role: str = ROLE
    told: Mapping[str, Json] = field(default_factory=dict)
    """Further values of the prompt."""

    @property
    def name(self) -> str:
        """`model:<name>@<first digits of the prompt's hash>`."""
        return f"model:{self.model.name}@{load(self.prompt).sha256[:12]}"

    @property
    def repeat(self) -> Repeat:
        """It may answer otherwise next time."""
        return "sampled"

    async def reserve(self, bench: Bench, trial: Trial) -> ModelCall:
        """Render and count the question, and hold back the most that it may cost.

        Raises:
            BudgetExceeded: It would pass a limit.
        """
        work = Work(
            task=trial.step.objective,
            data=trial.ready.args,
            output=self.spec.output,
            prompt=self.prompt,
            role=self.role,
            told=self.told,
            findings=_findings(bench, trial),
        )

        def keep(text: str) -> Ref:
            return bench.session.put(masked(text))

        asking = await work_question(
            self.model.for_try(trial),
            work,
            book=self.model.book,
            on_call=bench.session.emit,
            keep=keep,
            meter=bench.meter,
            elapsed_s=bench.elapsed_s(),
            step=trial.step.id,
            attempt_id=trial.attempt_id,
        )
        return ModelCall(bench, self.spec, asking, await asking.reserve())


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One call of a model."""

    bench: Bench
    spec: ToolSpec
    asking: Asking[Mapping[str, Json]]
    held: Reservation | None

    @property
    def asks(self) -> ModelAsked:
        """What it is asked."""
        return self.asking.at_most

    @property
    def charge(self) -> None:
        """The call records its own cost."""
        return

    async def make(self) -> Acted:
        """Ask; the call itself settles what was held back, and records what it cost."""
        await self.bench.session.aflush()
        try:
            async with asyncio.timeout(self.spec.timeout_s):
                got = await self.asking.made(self.held)
        except TimeoutError:
            got = Fault(code="timeout", retry=True)
        if isinstance(got, Fault):
            return Acted(classify_fault(self.asking.model.name, got), key="")
        return Acted(self._judged(got), key="")

    def drop(self) -> None:
        """Give back what was held."""
        if self.held is not None:
            self.bench.meter.release(self.held)

    def _judged(self, reply: Reply[Mapping[str, Json]]) -> Returned | Failure:
        if reply.cut_off:
            return classify_fault(self.asking.model.name, Fault(code="length"))
        if reply.value is not None:
            return judge_output(self.spec, reply.value)
        code = "output_not_json" if reply.flaws[0].code == "unparsable" else "output_schema"
        found = (f"{'.'.join(map(str, each.path))} {each.says}".strip() for each in reply.flaws)
        return Failure("unexpected_state", code, redact("; ".join(found)))


def _findings(bench: Bench, trial: Trial) -> str:
    """Return what was wrong with the last answer to this very question; empty: there was none."""
    view = bench.session.view
    tried = [
        each
        for each in map(view.attempts.get, view.steps[trial.step.id].attempts)
        if each is not None and each.started.args_sha256 == trial.ready.args_sha256
    ]
    last = tried[-1].ended if tried else None
    return last.error if last is not None and last.error_code in _MENDED else ""
