"""The one metered call of a model: each attempt is reserved, made, priced and recorded once.

Whatever a provider does (an error, silence, a refusal, an answer that is cut off or no JSON), the
attempt leaves one `ModelCalled` with what it cost. Texts of providers and keys stand in no event
and in no message.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from decimal import Decimal
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, Required, TypedDict, Unpack, overload

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_result,
    stop_after_attempt,
    wait_exponential,
    wait_random,
)

from plangate.budget.prices import PriceBook, Usage, usage_cost
from plangate.budget.tokens import Counted, count_messages, count_text
from plangate.journal.events import ModelCalled
from plangate.models.chat import Answer, Ready, answer_of, model_name, ready
from plangate.models.fault import Fault, fault_of
from plangate.models.reading import F, Flaw, read_as
from plangate.models.render import render_value
from plangate.plan.errors import ModelFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from plangate.budget.meter import Meter, Reservation
    from plangate.plan.value.frozen import Json
    from plangate.prompts.loader import Prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """How often a call is tried, and how long it waits in between."""

    attempts: int = 3
    first_s: float = 0.5
    """Wait after the first attempt; it doubles, with jitter."""

    most_s: float = 20.0
    patience_s: float = 60.0
    """The longest `Retry-After` that is waited for; a longer one ends the call."""


class Metered(TypedDict, total=False):
    """What a call is recorded, priced and limited by."""

    book: Required[PriceBook]
    on_call: Required[Callable[[ModelCalled], None]]
    """Takes the event of each attempt."""

    meter: Meter
    """Limits of the run; without one nothing is reserved."""

    retry: Retry


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply(Generic[F]):
    """An answer that came, usable or not."""

    text: str
    value: F | None
    """None where the text does not hold what was asked for, or nothing was."""

    flaws: tuple[Flaw, ...] = ()
    """Why there is no value."""

    cut_off: bool = False
    """True where the model reached its output limit."""


@overload
async def call_model(
    chat: Any,
    prompt: Prompt,
    values: Mapping[str, Json],
    *,
    role: str,
    schema: type[F],
    **metered: Unpack[Metered],
) -> F: ...
@overload
async def call_model(
    chat: Any,
    prompt: Prompt,
    values: Mapping[str, Json],
    *,
    role: str,
    schema: None = None,
    **metered: Unpack[Metered],
) -> str: ...
async def call_model(
    chat: Any,
    prompt: Prompt,
    values: Mapping[str, Json],
    *,
    role: str,
    schema: type[F] | None = None,
    **metered: Unpack[Metered],
) -> F | str:
    """Ask a model and return its answer as `schema`, or as text.

    Args:
        chat: Any LangChain chat model.
        prompt: What is asked.
        values: Of its slots; what is no text is written as JSON.
        role: Who asks: planner, critic, judge, ...
        schema: The class of the answer.
        **metered: See `Metered`.

    Raises:
        ModelFailed: No answer, a refusal, or an answer that is not a `schema`.
        BudgetExceeded: The call would pass a limit; it was not made.
        ConfigError: The values are not those that the prompt declares.
    """
    reply = await ask_model(chat, prompt, values, role=role, schema=schema, **metered)
    if schema is None:
        return reply.text
    if reply.value is None:
        code = "length" if reply.cut_off else reply.flaws[0].code
        raise _failed(Fault(code=code), model_name(chat), role)
    return reply.value


async def ask_model(
    chat: Any,
    prompt: Prompt,
    values: Mapping[str, Json],
    *,
    role: str,
    schema: type[F] | None = None,
    **metered: Unpack[Metered],
) -> Reply[F]:
    """Ask a model and return what it wrote, also where that is not what was asked for.

    For callers that can answer an unusable text themselves, as the planner does with issues.

    Args:
        chat: As for `call_model`, like the rest.
        prompt: The same.
        values: The same.
        role: The same.
        schema: The same.
        **metered: The same.

    Raises:
        ModelFailed: No answer, or a refusal.
        BudgetExceeded: As for `call_model`.
        ConfigError: As for `call_model`.
    """
    rendered = prompt.render(**{name: render_value(value) for name, value in values.items()})
    model = ready(chat, schema)
    messages = rendered.messages
    messages[0]["content"] += model.spoken
    sent = await asyncio.to_thread(count_messages, messages, model.name, schema=model.schema)
    asking = _Asking(model, prompt, messages, sent, role, schema, metered)
    retry = metered.get("retry", Retry())
    result: Reply[F] | Fault = await AsyncRetrying(
        stop=stop_after_attempt(retry.attempts),
        wait=_wait(retry),
        retry=retry_if_result(lambda got: _is_worth_a_retry(got, retry)),
        retry_error_callback=lambda state: state.outcome.result() if state.outcome else None,
    )(asking.once)
    if isinstance(result, Fault):
        raise _failed(result, model.name, role) from result.cause
    return result


@dataclass(frozen=True, slots=True)
class _Asking(Generic[F]):
    """One question, asked as often as it takes."""

    model: Ready
    prompt: Prompt
    messages: list[dict[str, str]]
    sent: Counted
    role: str
    schema: type[F] | None
    metered: Metered

    async def once(self) -> Reply[F] | Fault:
        """Make one attempt. An expected failure is returned, never raised."""
        reservation = self._reserve()
        began = monotonic()
        try:
            message = await self.model.runnable.ainvoke(self.messages)
        except asyncio.CancelledError:
            self._record(self._guess(""), reservation, began, "cancelled", estimated=True)
            raise
        except Exception as exc:  # noqa: BLE001 - foreign code: any failure is classified and counted
            fault = fault_of(exc)
            nothing = Usage(input_tokens=0, output_tokens=0)
            lost = self._guess("") if fault.charged else nothing
            self._record(lost, reservation, began, fault.code, estimated=fault.charged)
            return fault
        answer = answer_of(message)
        reply = self._read(answer)
        used = answer.usage or await asyncio.to_thread(self._guess, answer.text)
        code = _code(answer, reply)
        self._record(used, reservation, began, code, estimated=answer.usage is None)
        return Fault(code=code) if answer.finish in ("refusal", "content_filter") else reply

    def _read(self, answer: Answer) -> Reply[F]:
        cut_off = answer.finish == "length"
        if self.schema is None:
            return Reply(text=answer.text, value=None, cut_off=cut_off)
        read = read_as(self.schema, answer.text)
        if isinstance(read, tuple):
            return Reply(text=answer.text, value=None, flaws=read, cut_off=cut_off)
        return Reply(text=answer.text, value=read, cut_off=cut_off)

    def _reserve(self) -> Reservation | None:
        meter = self.metered.get("meter")
        if meter is None:
            return None
        most = Usage(input_tokens=self.sent.tokens, output_tokens=self.model.most_output)
        return meter.reserve("model", usd=self._price(most), tokens=most.total)

    def _record(
        self,
        used: Usage,
        reservation: Reservation | None,
        began: float,
        code: str,
        *,
        estimated: bool,
    ) -> None:
        usd = self._price(used) if used.total else Decimal(0)
        if reservation is not None:
            self.metered["meter"].settle(reservation, usd=usd, tokens=used.total)
        self.metered["on_call"](
            ModelCalled(
                role=self.role,
                model=self.model.name,
                prompt=self.prompt.name,
                prompt_sha256=self.prompt.sha256,
                ok=not code,
                error_code=code,
                input_tokens=used.input_tokens,
                cached_tokens=used.cached_tokens,
                output_tokens=used.output_tokens,
                reasoning_tokens=used.reasoning_tokens,
                estimated=estimated,
                usd=usd,
                price_table=self.metered["book"].table,
                latency_s=monotonic() - began,
            )
        )

    def _guess(self, text: str) -> Usage:
        came = count_text(text, self.model.name).tokens if text else 0
        return Usage(input_tokens=self.sent.tokens, output_tokens=came)

    def _price(self, usage: Usage) -> Decimal | None:
        return usage_cost(usage, self.model.name, self.metered["book"])


def _code(answer: Answer, reply: Reply[F]) -> str:
    if answer.finish:
        return answer.finish
    return reply.flaws[0].code if reply.flaws else ""


def _is_worth_a_retry(got: object, retry: Retry) -> bool:
    return isinstance(got, Fault) and got.retry and got.after_s <= retry.patience_s


def _wait(retry: Retry) -> Callable[[RetryCallState], float]:
    backoff = wait_exponential(multiplier=retry.first_s, max=retry.most_s)
    jitter = wait_random(0, retry.first_s)

    def wait(state: RetryCallState) -> float:
        fault = state.outcome.result() if state.outcome else None
        asked = fault.after_s if isinstance(fault, Fault) else 0.0
        return max(asked, backoff(state) + jitter(state))

    return wait


def _failed(fault: Fault, model: str, role: str) -> ModelFailed:
    waits = f", retry after {fault.after_s:.0f} s" if fault.after_s else ""
    return ModelFailed(f"model {model!r} failed as {role}: {fault.code}{waits}", hint=fault.hint)
