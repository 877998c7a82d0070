"""What is metered is what a provider bills, call by call, by books that it keeps itself."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from decimal import Decimal

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_openai import ChatOpenAI
from langgraph.graph import StateGraph

from plangate.budget.meter import Meter
from plangate.budget.prices import PriceBook
from plangate.models.call import ask_model
from plangate.models.chat import model_name, prepared
from plangate.models.critique import Criticism
from plangate.models.form import form_of
from plangate.models.retry import Retry
from plangate.models.usage import read_usage
from plangate.plan.errors import ModelFailed
from plangate.plan.value.plan import Budget
from plangate.prompts.loader import load
from tests.models.billing import RATES, Books
from tests.models.fake_openai import Said, serving

VALUES = {"goal": "Refund order ORD-1, très vite 🙂", "plan": "{}"}
GOOD = '{"findings": [{"step": "S1", "field": "args.x", "says": "wrong", "severity": "error"}]}'
BOOK = PriceBook({"our-model": RATES})
CRITICISM = form_of(Criticism)


async def asked(chat, *, schema=CRITICISM, meter=None):
    """Ask once with retries; return the events of all attempts."""
    events = []
    more = {} if meter is None else {"meter": meter}
    try:
        await ask_model(
            chat,
            load("critic"),
            VALUES,
            role="critic",
            schema=schema,
            book=BOOK,
            on_call=events.append,
            retry=Retry(first_s=0.001, most_s=0.002),
            **more,
        )
    except ModelFailed:
        assert not events[-1].ok
    return events


def spent(events):
    usd = sum((each.usd for each in events), Decimal(0))
    return usd, sum(each.input_tokens + each.output_tokens for each in events)


@pytest.mark.parametrize(
    ("script", "attempts", "billed"),
    [
        ([Said(GOOD)], 1, 1),
        ([Said(status=500), Said(status=429), Said(GOOD)], 3, 1),
        ([Said("no JSON, naïve")], 1, 1),
        ([Said('{"findings": [{"st', finish="length")], 1, 1),
        ([Said(None, refusal="I cannot")], 1, 1),
        ([Said("", finish="content_filter")], 1, 1),
        ([Said(status=400)], 1, 0),
    ],
    ids=["good", "retried", "no json", "cut", "refused", "filtered", "failed"],
)
async def test_each_attempt_costs_what_was_billed_for_it(script, attempts, billed):
    books, meter = Books(), Meter(Budget())
    with serving(*script, books=books) as fake:
        chat = ChatOpenAI(model="our-model", base_url=fake.url, api_key="x")
        events = await asked(chat, meter=meter)

    assert (len(events), books.calls) == (attempts, billed)
    assert spent(events) == (books.usd, books.tokens)
    assert (meter.spent.usd, meter.spent.tokens) == (books.usd, books.tokens)
    assert (meter.committed, meter.spent.model_calls) == (meter.spent, attempts)


@pytest.mark.parametrize("schema", [CRITICISM, None], ids=["object", "text"])
async def test_a_call_without_an_answer_counts_as_no_less_than_was_billed(schema):
    books, meter = Books(), Meter(Budget())
    with serving(Said(drop=True), Said(GOOD), books=books) as fake:
        chat = ChatOpenAI(model="our-model", base_url=fake.url, api_key="x", max_tokens=50)
        lost, came = await asked(chat, schema=schema, meter=meter)

    assert (lost.estimated, came.estimated, books.calls) == (True, False, 2)
    assert spent([lost, came]) == (meter.spent.usd, meter.spent.tokens)
    assert (lost.input_tokens, lost.output_tokens) == (came.input_tokens, 50)
    assert meter.spent.tokens - books.tokens == 50  # of which a provider may bill any part


async def test_calls_from_the_cache_cost_what_was_billed():
    books = Books()
    with serving(Said(GOOD), books=books) as fake:
        chat = ChatOpenAI(model="our-model", base_url=fake.url, api_key="x")
        events = [*await asked(chat), *await asked(chat), *await asked(chat)]

    assert [each.cached_tokens > 0 for each in events] == [False, True, True]
    assert spent(events) == (books.usd, books.tokens)


async def test_without_a_usage_the_own_count_is_that_of_the_books_but_for_hidden_thoughts():
    books = Books()
    with serving(Said(GOOD, usage=None), books=books) as fake:
        chat = ChatOpenAI(model="our-model", base_url=fake.url, api_key="x")
        [event] = await asked(chat)

    assert event.estimated
    assert event.input_tokens + event.output_tokens == books.tokens - 64


# Report 42: usage in chunks can be a running total; whoever adds it up multiplies the bill.
@pytest.mark.parametrize("option", ["streaming", "stream_usage"])
async def test_a_client_that_wants_to_stream_is_asked_for_one_piece(option):
    books = Books()
    with serving(Said(GOOD), books=books) as fake:
        chat = ChatOpenAI(model="our-model", base_url=fake.url, api_key="x", **{option: True})
        events = await asked(chat)

    assert not fake.requests[0].get("stream")
    assert spent(events) == (books.usd, books.tokens)


TOTAL = {"input_tokens": 713, "output_tokens": 20, "total_tokens": 733}


class RunningTotals(BaseChatModel):
    """Tells in each chunk how much it was so far."""

    model: str = "our-model"
    streaming: bool = False

    @property
    def _llm_type(self) -> str:
        return "running-totals"

    def _generate(self, messages, stop=None, run_manager=None, **kwargs) -> ChatResult:
        return ChatResult(
            generations=[ChatGeneration(message=AIMessage("yes", usage_metadata=TOTAL))]
        )

    async def _astream(
        self, messages, stop=None, run_manager=None, **kwargs
    ) -> AsyncIterator[ChatGenerationChunk]:
        for came in range(1, 21):
            usage = {**TOTAL, "output_tokens": came, "total_tokens": 713 + came}
            yield ChatGenerationChunk(message=AIMessageChunk("yes", usage_metadata=usage))


async def streamed(chat, mode):
    events = []

    async def node(_):
        events.extend(await asked(chat, schema=None))
        return {}

    graph = StateGraph(dict)
    graph.add_node("ask", node)
    graph.set_entry_point("ask")
    async for _ in graph.compile().astream({}, stream_mode=mode):
        pass
    return events


@pytest.mark.parametrize("options", [{}, {"streaming": True}], ids=["watched", "by itself"])
async def test_running_totals_of_a_stream_are_not_added_up(options):
    chat = RunningTotals(**options)

    [event] = await streamed(chat, "messages")

    assert (event.input_tokens, event.output_tokens, event.estimated) == (713, 20, False)
    added_up = await RunningTotals(streaming=True).ainvoke("hello")
    assert added_up.usage_metadata["input_tokens"] == 20 * 713  # what the guard is for


NAMES = (
    "input_tokens", "output_tokens", "input_token_details", "output_token_details",
    "cache_read", "cache_creation", "reasoning",
)  # fmt: skip
SAID = st.recursive(
    st.none() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(NAMES), inner),
)


# Report 42: parts above their whole cannot be; they are read so that nothing is too cheap.
@pytest.mark.parametrize(
    ("said", "usage"),
    [
        ({"input_token_details": {"cache_read": 40}}, (100, 40, 0, 10, 0)),
        ({"input_token_details": {"cache_read": 40, "cache_creation": 50}}, (100, 40, 50, 10, 0)),
        ({"input_token_details": {"cache_read": 140}}, (240, 140, 0, 10, 0)),
        ({"input_token_details": {"cache_read": 60, "cache_creation": 50}}, (210, 60, 50, 10, 0)),
        ({"output_token_details": {"reasoning": 30}}, (100, 0, 0, 40, 30)),
        ({"input_token_details": None, "output_token_details": None}, (100, 0, 0, 10, 0)),
    ],
)
def test_a_usage_that_cannot_be_is_read_dear_and_flagged(said, usage):
    got = read_usage({"input_tokens": 100, "output_tokens": 10, **said}, 90, lambda: 9)

    assert figures(got.usage) == usage
    assert got.is_guess == (usage[0] != 100 or usage[3] != 10)


@pytest.mark.parametrize("wrong", [None, -1, 0, 1.5, "40", True, 10**30, [7], {}])
def test_a_number_that_is_none_gives_way_to_our_own_count(wrong):
    got = read_usage({"input_tokens": wrong, "output_tokens": wrong}, 90, lambda: 9)

    assert (figures(got.usage), got.is_guess) == ((90, 0, 0, 9, 0), True)


@pytest.mark.parametrize("wrong", [-1, 1.5, "40", True, 10**30, [7]])
def test_a_part_that_is_no_number_is_flagged_and_makes_nothing_cheaper(wrong):
    for part in ({"input_token_details": {"cache_read": wrong}}, {"input_token_details": wrong}):
        got = read_usage({"input_tokens": 100, "output_tokens": 10, **part}, 90, lambda: 9)

        assert figures(got.usage) == (100, 0, 0, 10, 0)


@given(SAID)
def test_whatever_a_provider_says_is_a_usage_that_is_not_free(said):
    got = read_usage(said, 90, lambda: 9).usage

    assert got.input_tokens > 0
    assert got.output_tokens > 0


def figures(used):
    return (
        used.input_tokens,
        used.cached_tokens,
        used.cache_write_tokens,
        used.output_tokens,
        used.reasoning_tokens,
    )


def test_a_deployment_is_known_by_its_own_name():
    class Azure:
        model_name = None
        deployment_name = "east-1"
        max_retries = 0

    assert prepared(Azure(), None).name == model_name(Azure()) == "east-1"


# Report 48, on each way that a call can end: nothing is counted on the event loop.
@pytest.mark.parametrize("said", [Said(GOOD, usage=None), Said(drop=True)], ids=["guess", "lost"])
async def test_no_way_that_a_call_ends_counts_on_the_loop(said, monkeypatch):
    on_loop = []
    count = tiktoken.Encoding.encode_ordinary

    def spied(self, text):
        on_loop.append(threading.current_thread() is threading.main_thread())
        return count(self, text)

    monkeypatch.setattr(tiktoken.Encoding, "encode_ordinary", spied)
    with serving(said) as fake:
        await asked(ChatOpenAI(model="our-model", base_url=fake.url, api_key="x"))

    assert on_loop
    assert not any(on_loop)
