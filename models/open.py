"""Opens a chat model by name, so that a command line can ask for one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from plangate.plan.errors import ConfigError

if TYPE_CHECKING:
    from langchain_openai import ChatOpenAI

TIMEOUT_S = 120.0
"""For one attempt; a plan of sixty steps takes a slow model about a minute."""


def named_model(name: str) -> str:
    """Return the provider's name of a model, without opening it.

    Raises:
        ConfigError: It is not written `openai:<model>`.
    """
    provider, _, model = name.partition(":")
    if provider != "openai" or not model:
        raise ConfigError(
            f"no model is named {name!r}",
            hint="Write openai:<model>, or pass any LangChain chat model from Python.",
        )
    return model


def open_model(name: str, *, base_url: str | None = None) -> ChatOpenAI:
    """Return the chat model that `name` means.

    Args:
        name: `openai:<model>`, as `openai:gpt-5-mini`.
        base_url: Of a server that speaks OpenAI's protocol; it may need no key.

    Raises:
        ConfigError: Another provider, no model, or no `OPENAI_API_KEY` where one is needed.
    """
    model = named_model(name)
    key = os.environ.get("OPENAI_API_KEY", "")
    if not key and base_url is None and "OPENAI_BASE_URL" not in os.environ:
        raise ConfigError(
            f"{name!r} needs a key", hint="Set OPENAI_API_KEY, or give the URL of a local server."
        )
    from langchain_openai import ChatOpenAI  # noqa: PLC0415 - a second that only models need
    from pydantic import SecretStr  # noqa: PLC0415 - as above

    return ChatOpenAI(
        model=model,
        base_url=base_url,
        api_key=SecretStr(key or "none-needed"),
        timeout=TIMEOUT_S,
        max_retries=0,  # `call_model` retries, so that each attempt is counted
        use_responses_api=False,  # its structured output has another form
    )
