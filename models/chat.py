"""A LangChain chat model made ready for one metered call: no hidden retries, a fixed answer form.

Nothing here imports LangChain: a model that was not loaded cannot have been passed.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plangate.plan.errors import ConfigError
from plangate.prompts.loader import load

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plangate.models.form import Form

MOST_OUTPUT_TOKENS = 8_000
"""Reserved for an answer where the model has no limit of its own: a draft of sixty steps."""

_FINISH = {"max_tokens": "length", "content_filter": "content_filter", "refusal": "refusal"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What is sent to, and how."""

    runnable: Any
    name: str
    schema: Mapping[str, Any] | None
    """Sent as the response format; None where the wish stands in the prompt, or there is none."""

    spoken: str
    """To be added to the system message: the wish for a form, in words."""

    most_output: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RawReply:
    """What came back."""

    text: str
    usage: Any
    """As the provider says it, see `plangate.models.usage`."""

    finish: str
    """`length`, `content_filter`, `refusal`, or empty for an ordinary end."""


def prepared(chat: Any, form: Form[Any] | None) -> Prepared:
    """Prepare a chat model.

    Args:
        chat: Any LangChain chat model. One of langchain-openai is copied with its own retries off,
            since they are invisible: each attempt has to be counted.
        form: What the answer should be, or None for text.

    Raises:
        ConfigError: It would call by itself more often than it is asked to.
    """
    chat = _counted(chat)
    name = model_name(chat)
    most = getattr(chat, "max_tokens", None) or MOST_OUTPUT_TOKENS
    wanted = form.response_format if form is not None else None
    if form is not None and wanted and _is_openai(chat) and not chat.use_responses_api:
        body = {**(chat.extra_body or {}), "response_format": wanted}
        # In `extra_body`, since the SDK parses its own argument and then loses the usage of
        # an answer that does not fit (tried).
        runnable = chat.bind(extra_body=body)
        return Prepared(
            runnable=runnable, name=name, schema=form.strict, spoken="", most_output=most
        )
    return Prepared(runnable=chat, name=name, schema=None, spoken=_spoken(form), most_output=most)


def model_name(chat: Any) -> str:
    """Return the name that prices and logs know a chat model by."""
    inner = getattr(chat, "bound", chat)
    for field in ("model_name", "model", "deployment_name"):
        found = getattr(inner, field, None)
        if isinstance(found, str) and found:
            return found
    return type(inner).__name__


def raw_reply(message: Any) -> RawReply:
    """Read a LangChain message."""
    meta = getattr(message, "response_metadata", None) or {}
    finish = str(meta.get("finish_reason") or meta.get("stop_reason") or "")
    refused = (getattr(message, "additional_kwargs", None) or {}).get("refusal")
    return RawReply(
        text=_text(message.content),
        usage=getattr(message, "usage_metadata", None),
        finish="refusal"
        if refused
        else _FINISH.get(finish, "length" if finish == "length" else ""),
    )


def _spoken(form: Form[Any] | None) -> str:
    if form is None:
        return ""
    schema = json.dumps(form.told, separators=(",", ":"), ensure_ascii=False)
    return "\n\n" + load("schema").render(schema=schema).system


def _is_openai(chat: Any) -> bool:
    module = sys.modules.get("langchain_openai.chat_models.base")
    return module is not None and isinstance(chat, module.BaseChatOpenAI)


def _without_retries(chat: Any) -> Any:
    root = chat.root_async_client.with_options(max_retries=0)
    return chat.model_copy(
        update={
            "max_retries": 0,
            "root_async_client": root,
            "async_client": root.chat.completions,
            "use_responses_api": bool(chat.use_responses_api),
            "disable_streaming": True,  # a stream from a server of one's own has no usage (tried)
            "streaming": False,  # else the client asks for a stream and cannot read it (tried)
        }
    )


def _counted(chat: Any) -> Any:
    """Return a chat model that calls once when it is asked once."""
    if _is_openai(chat):
        return _without_retries(chat)
    if (inner := getattr(chat, "bound", None)) is not None and not _repeats(chat):
        once = _counted(inner)
        return chat if once is inner else chat.model_copy(update={"bound": once})
    if _repeats(chat) or getattr(chat, "max_retries", 0) != 0:
        raise ConfigError(
            f"model {model_name(chat)!r} tries again by itself, and nobody would count that",
            hint="Pass the chat model itself, with max_retries=0; plangate tries again.",
        )
    return _unstreamed(chat)


def _unstreamed(chat: Any) -> Any:
    """Return a chat model that does not stream by itself; see `plangate.models.whole`."""
    if getattr(chat, "streaming", None) is not True or not hasattr(chat, "disable_streaming"):
        return chat
    return chat.model_copy(update={"disable_streaming": True})


def _repeats(chat: Any) -> bool:
    names = {kind.__name__ for kind in type(chat).__mro__}
    return bool(names & {"RunnableRetry", "RunnableWithFallbacks"})


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = (part if isinstance(part, str) else part.get("text", "") for part in content)
    return "".join(part for part in parts if isinstance(part, str))
