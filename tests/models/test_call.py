from __future__ import annotations

import asyncio
from decimal import Decimal

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_openai import ChatOpenAI

from plangate.budget.meter import Meter
from plangate.budget.prices import PriceBook
from plangate.models.asking import Reply
from plangate.models.call import ask_model, call_model
from plangate.models.critique import Criticism
from plangate.models.form import form_of
from plangate.models.retry import Retry
from plangate.plan.errors import BudgetExceeded, ConfigError, ModelFailed
from plangate.plan.value.plan import Budget
from plangate.prompts.loader import load
from tests.models.fake_openai import Said, serving

KEY = "sk-very-secret-0123456789"
VALUES = {"goal": "Refund order ORD-1", "plan": "{}"}
GOOD = '{"findings": [{"step": "S1", "field": "args.x", "says": "wrong", "severity": "error"}]}'
CRITICISM = form_of(Criticism)
QUICK = Retry(attempts=3, first_s=0.01, most_s=0.02)


def open_chat(url: str, **options) -> ChatOpenAI:
    return ChatOpenAI(model="gpt-5-mini", base_url=url, api_key=KEY, **options)


async def asked(fake, function=call_model, *, chat=None, schema=CRITICISM, **metered):
    events = []
    chat = chat or open_chat(fake.url)
    metered = {"book": PriceBook(), "on_call": events.append, "retry": QUICK, **metered}
    try:
        got = await function(chat, load("critic"), VALUES, role="critic", schema=schema, **metered)
    except (ModelFailed, BudgetExceeded) as exc:
        got = exc
    return got, events


async def test_an_answer_is_read_priced_and_recorded_once():
    with serving(Said(GOOD)) as fake:
        got, [event] = await asked(fake)

    assert got.findings[0].step == "S1"
    assert (event.ok, event.usd, event.estimated) == (True, Decimal("0.000675"), False)
    assert (event.input_tokens, event.cached_tokens) == (1200, 1000)
    assert (event.output_tokens, event.reasoning_tokens) == (300, 100)
    assert (event.prompt, event.prompt_sha256) == ("critic", load("critic").sha256)
    assert event.price_table.startswith("genai-prices")


async def test_the_server_is_held_to_the_strict_schema_and_sees_the_static_part_first():
    with serving(Said(GOOD)) as fake:
        await asked(fake)

    [request] = fake.requests
    wanted = request["response_format"]["json_schema"]
    assert (wanted["name"], wanted["strict"]) == ("Criticism", True)
    assert [message["role"] for message in request["messages"]] == ["system", "user"]
    assert "ORD-1" not in request["messages"][0]["content"]


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (Said("not json"), "unparsable"),
        (Said('{"findings": [{"step"', finish="length"), "length"),
        (Said('{"findings": 3}'), "bad_value"),
        (Said(None, refusal="I cannot"), "refusal"),
        (Said("", finish="content_filter"), "content_filter"),
    ],
    ids=["bad json", "cut off", "wrong type", "refusal", "filtered"],
)
async def test_an_unusable_answer_fails_after_its_usage_was_recorded(said, code):
    with serving(said) as fake:
        got, [event] = await asked(fake)

    assert isinstance(got, ModelFailed)
    assert code in str(got)
    assert got.hint
    assert (event.ok, event.error_code) == (False, code)
    assert event.usd == Decimal("0.000675")


async def test_an_unusable_text_is_given_back_to_who_can_repair_it():
    with serving(Said("Sorry, {nothing}")) as fake:
        got, _ = await asked(fake, ask_model)

    assert isinstance(got, Reply)
    assert (got.value, got.text, got.flaws[0].code) == (None, "Sorry, {nothing}", "unparsable")


async def test_a_server_error_is_tried_again_and_each_attempt_is_recorded():
    with serving(Said(status=500), Said(status=503), Said(GOOD)) as fake:
        got, events = await asked(fake)

    assert got.findings
    assert [event.error_code for event in events] == ["http_500", "http_503", ""]
    assert [event.usd for event in events] == [Decimal(0), Decimal(0), Decimal("0.000675")]


async def test_attempts_end_and_the_retries_of_the_client_itself_are_off():
    with serving(Said(status=500)) as fake:
        got, events = await asked(fake, chat=open_chat(fake.url, max_retries=5))

    assert isinstance(got, ModelFailed)
    assert len(fake.requests) == len(events) == 3


@pytest.mark.parametrize(
    ("status", "code", "shown"),
    [
        (400, "context_length_exceeded", "context_length_exceeded"),
        (400, "Your key sk-123 is odd", "http_400"),
        (401, "invalid_api_key", "http_401"),
        (429, "insufficient_quota", "insufficient_quota"),
    ],
)
async def test_what_cannot_get_better_is_not_tried_again(status, code, shown):
    error = {"message": f"Incorrect key {KEY}", "type": "invalid", "code": code}
    with serving(Said(status=status, error=error)) as fake:
        got, [event] = await asked(fake)

    assert shown in str(got)
    assert event.error_code == shown
    assert len(fake.requests) == 1
    assert "sk-" not in f"{got} {got.hint} {event!r}"


async def test_the_wait_that_a_provider_asks_for_is_kept():
    limited = Said(status=429, headers={"retry-after": "0.3"})
    with serving(limited, Said(GOOD)) as fake:
        got, _ = await asked(fake)

    assert got.findings
    assert fake.at[1] - fake.at[0] >= 0.3


async def test_a_wait_beyond_our_patience_ends_the_call_at_once():
    with serving(Said(status=429, headers={"retry-after": "3600"})) as fake:
        got, [event] = await asked(fake)

    assert "retry after 3600 s" in str(got)
    assert event.error_code == "http_429"


async def test_a_missing_usage_is_counted_here_and_says_so():
    with serving(Said(GOOD, usage=None)) as fake:
        _, [event] = await asked(fake)

    assert event.estimated
    assert event.input_tokens > 300
    assert event.output_tokens > 20
    assert event.usd > 0


@pytest.mark.parametrize(
    ("said", "code"),
    [(Said(GOOD, delay_s=0.4), "timeout"), (Said(drop=True), "connection")],
)
async def test_silence_may_have_cost_so_it_is_counted(said, code):
    with serving(said) as fake:
        got, events = await asked(
            fake, chat=open_chat(fake.url, timeout=0.15), retry=Retry(attempts=1)
        )

    assert isinstance(got, ModelFailed)
    assert [(event.error_code, event.estimated) for event in events] == [(code, True)]
    assert events[0].input_tokens > 300


@pytest.mark.parametrize(
    ("said", "code"),
    [(Said(GOOD, delay_s=0.4), "timeout"), (Said(drop=True), "connection")],
)
async def test_a_call_without_an_answer_counts_at_all_that_was_held_back(said, code):
    meter, held = Meter(Budget(max_usd=Decimal(9))), []
    with serving(said) as fake:
        chat = open_chat(fake.url, timeout=0.15)
        reserve = meter.areserve

        async def seen(*args, **more):
            held.append(more)
            return await reserve(*args, **more)

        meter.areserve = seen
        _, [event] = await asked(fake, chat=chat, retry=Retry(attempts=1), meter=meter)

    assert event.error_code == code
    assert (meter.spent.usd, meter.spent.tokens) == (held[0]["usd"], held[0]["tokens"])
    assert event.usd == held[0]["usd"] > 0


async def test_a_server_that_is_not_there_cost_nothing():
    chat = open_chat("http://127.0.0.1:9/v1")

    got, [event] = await asked(None, chat=chat, retry=Retry(attempts=1))

    assert "connection" in str(got)
    assert (event.input_tokens, event.usd) == (0, Decimal(0))


async def test_a_cancelled_call_is_recorded_and_stays_cancelled():
    events = []
    with serving(Said(GOOD, delay_s=0.5)) as fake:
        call = call_model(
            open_chat(fake.url),
            load("critic"),
            VALUES,
            role="critic",
            schema=form_of(Criticism),
            book=PriceBook(),
            on_call=events.append,
        )
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(call, 0.3)

    assert [(event.error_code, event.estimated) for event in events] == [("cancelled", True)]


async def test_a_model_without_a_price_costs_an_unknown_amount():
    with serving(Said(GOOD)) as fake:
        chat = ChatOpenAI(model="my-model", base_url=fake.url, api_key=KEY)
        _, [event] = await asked(fake, chat=chat)

    assert (event.usd, event.input_tokens) == (None, 1200)


async def test_the_actual_cost_replaces_what_was_reserved():
    meter = Meter(Budget(max_usd=Decimal("0.05")))
    with serving(Said(GOOD)) as fake:
        await asked(fake, meter=meter)

    assert meter.spent.usd == meter.committed.usd == Decimal("0.000675")
    assert (meter.spent.tokens, meter.spent.model_calls) == (1500, 1)


async def test_a_call_that_could_pass_the_limit_is_not_made():
    with serving(Said(GOOD)) as fake:
        got, events = await asked(fake, meter=Meter(Budget(max_tokens=1000)))

    assert isinstance(got, BudgetExceeded)
    assert got.limit == "max_tokens"
    assert (fake.requests, events) == ([], [])


async def test_any_other_chat_model_is_told_the_schema_in_words():
    chat = FakeListChatModel(responses=[f"Here you are:\n```json\n{GOOD}\n```"])

    got, [event] = await asked(None, chat=chat)

    assert got.findings[0].says == "wrong"
    assert (event.ok, event.estimated, event.usd) == (True, True, None)
    assert event.input_tokens > 500


async def test_without_a_schema_the_text_is_the_answer():
    chat = FakeListChatModel(responses=["as you like"])

    assert (await asked(None, chat=chat, schema=None))[0] == "as you like"


async def test_values_have_to_be_those_of_the_prompt():
    with pytest.raises(ConfigError, match="missing or spare inputs: plan"):
        await call_model(
            FakeListChatModel(responses=["x"]),
            load("critic"),
            {"goal": "g"},
            role="critic",
            book=PriceBook(),
            on_call=print,
        )
