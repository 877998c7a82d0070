"""Ours is the only retry there is: what a client would repeat by itself is off, or refused."""

from __future__ import annotations

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_openai import ChatOpenAI

from plangate.models.chat import prepared
from plangate.plan.errors import ConfigError


class Insistent(FakeListChatModel):
    max_retries: int | None = 2


def fake(**more) -> FakeListChatModel:
    return FakeListChatModel(responses=["{}"], **more)


def openai() -> ChatOpenAI:
    return ChatOpenAI(model="gpt-5-mini", api_key="none", max_retries=5)


@pytest.mark.parametrize(
    "chat",
    [
        Insistent(responses=["{}"]),
        Insistent(responses=["{}"], max_retries=None),
        Insistent(responses=["{}"]).bind(stop=["x"]),
        fake().with_retry(stop_after_attempt=4),
        fake().with_fallbacks([fake()]),
    ],
    ids=["its own", "its default", "bound", "with_retry", "with_fallbacks"],
)
def test_a_model_that_tries_again_by_itself_is_refused(chat):
    with pytest.raises(ConfigError, match="by itself"):
        prepared(chat, None)


@pytest.mark.parametrize(
    "chat", [fake(), fake().bind(stop=["x"]), Insistent(responses=["{}"], max_retries=0)]
)
def test_a_model_that_calls_once_is_taken_as_it_is(chat):
    assert prepared(chat, None).runnable is chat


@pytest.mark.parametrize("bound", [False, True])
def test_the_retries_of_the_openai_client_are_off_wherever_it_stands(bound):
    chat = openai()

    runnable = prepared(chat.bind(stop=["x"]) if bound else chat, None).runnable

    inner = runnable.bound if bound else runnable
    assert (inner.max_retries, inner.root_async_client.max_retries) == (0, 0)
    assert chat.max_retries == 5
