"""A question that a model is about to be asked, written down first: its answer may be lost."""

from __future__ import annotations

from decimal import Decimal

from plangate.plan.value.frozen import Frozen


class ModelAsked(Frozen):
    """What is asked of a model, and the most that it may cost."""

    role: str
    model: str
    prompt: str
    prompt_sha256: str
    input_tokens: int
    output_tokens: int
    """The most that may come back."""

    usd: Decimal | None
    """None: unknown, because a price is."""

    price_table: str = ""
