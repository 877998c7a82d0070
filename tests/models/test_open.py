from __future__ import annotations

import subprocess
import sys

import pytest

from plangate.models.open import open_model
from plangate.plan.errors import ConfigError


@pytest.fixture(autouse=True)
def _no_key(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def test_a_model_opens_without_hidden_retries(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")

    chat = open_model("openai:gpt-5-mini")

    assert (chat.model_name, chat.max_retries, chat.use_responses_api) == ("gpt-5-mini", 0, False)


def test_a_server_of_ones_own_needs_no_key():
    assert open_model("openai:qwen", base_url="http://127.0.0.1:1/v1").model_name == "qwen"


@pytest.mark.parametrize(
    ("name", "says"),
    [("openai:gpt-5-mini", "needs a key"), ("gpt-5-mini", "no model"), ("openai:", "no model")],
)
def test_what_is_missing_is_said(name, says):
    with pytest.raises(ConfigError, match=says) as caught:
        open_model(name)

    assert caught.value.hint


def test_importing_the_rooms_loads_no_provider():
    code = (
        "import sys, plangate.models.call, plangate.models.open, plangate.models.draft, "
        "plangate.budget.estimate, plangate.budget.meter, plangate.budget.tokens; "
        "print([n for n in 'openai langchain_openai langgraph tiktoken genai_prices'.split() "
        "if n in sys.modules])"
    )

    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert said.stdout.strip() == "[]"
