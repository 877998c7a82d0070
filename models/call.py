"""The one metered call of a model: each attempt is reserved, made, priced and recorded once.

Whatever a provider does (an error, silence, a refusal, an answer that is cut off or no JSON), the
attempt leaves one `ModelCalled` with what it cost. Texts of providers and keys stand in no event
and in no message.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Unpack, overload

from tenacity import AsyncRetrying, retry_if_result, stop_after_attempt

from plangate.budget.tokens import count_messages
from plangate.models.asking import Asking, Metered, Reply
from plangate.models.chat import model_name, prepared
from plangate.models.fault import Fault
from plangate.models.render import render_value
from plangate.models.retry import Retry
from plangate.plan.errors import ModelFailed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plangate.models.form import Form, T
    from plangate.plan.value.frozen import Json
    from plangate.prompts.loader import Prompt


@overload
async def call_model(
    chat: Any,
    prompt: Prompt,
    values: Mapping[str, Json],
    *,
    role: str,
    schema: Form[T],
    **metered: Unpack[Metered],
) -> T: ...
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
    schema: Form[T] | None = None,
    **metered: Unpack[Metered],
) -> T | str:
    """Ask a model and return its answer as `schema`, or as text.

    Args:
        chat: Any LangChain chat model.
        prompt: What is asked.
        values: Of its slots; what is no text is written as JSON.
        role: Who asks: planner, critic, judge, ...
        schema: The form of the answer; None: text.
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
    schema: Form[T] | None = None,
    **metered: Unpack[Metered],
) -> Reply[T]:
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
    asking = await question(chat, prompt, values, role=role, schema=schema, **metered)
    retry = metered.get("retry", Retry())
    result: Reply[T] | Fault = await AsyncRetrying(
        stop=stop_after_attempt(retry.attempts),
        wait=retry.wait,
        retry=retry_if_result(retry.wants),
        retry_error_callback=lambda state: state.outcome.result() if state.outcome else None,
    )(asking.once)
    if isinstance(result, Fault):
        raise _failed(result, asking.model.name, role) from result.cause
    return result


async def question(
    chat: Any,
    prompt: Prompt,
    values: Mapping[str, Json],
    *,
    role: str,
    schema: Form[T] | None = None,
    **metered: Unpack[Metered],
) -> Asking[T]:
    """Make a question ready, for a caller that decides itself about each attempt.

    Args:
        chat: As for `call_model`, like the rest.
        prompt: The same.
        values: The same.
        role: The same.
        schema: The same.
        **metered: The same; `retry` means nothing here.

    Raises:
        ConfigError: As for `call_model`.
    """
    rendered = prompt.render(**{name: render_value(value) for name, value in values.items()})
    model = prepared(chat, schema)
    messages = rendered.messages
    messages[0]["content"] += model.spoken
    sent = await asyncio.to_thread(count_messages, messages, model.name, schema=model.schema)
    return Asking(model, prompt, messages, sent, role, schema, metered)


def _failed(fault: Fault, model: str, role: str) -> ModelFailed:
    waits = f", retry after {fault.after_s:.0f} s" if fault.after_s else ""
    return ModelFailed(f"model {model!r} failed as {role}: {fault.code}{waits}", hint=fault.hint)
