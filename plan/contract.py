"""The contract that a step runs under: that of its tool, or the one that all model steps have.

A model step is a call like any other: policy allows it by a name, its result has a shape, labels
ride on it, and it can be tried again. So it has a contract like any other, of which only the form
of the result is its own.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from plangate.plan.catalog import Effect, ToolSpec
from plangate.plan.shape.identity import Identity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plangate.plan.catalog import Catalog
    from plangate.plan.outcome import Outcome
    from plangate.plan.value.step import Step

MODEL: Final = "model"
"""What policies and logs call the capability of a model step; no tool may have this name."""

RESERVED: Final = frozenset({MODEL, "agent"})
"""Names of capabilities that are no tools."""

MODEL_TIMEOUT_S: Final = 180.0
"""For one answer: above the time-out of our own client, so that the client's is the one met."""

MODEL_AT_ONCE: Final = 8
"""Model steps of one run at a time: providers limit calls a minute, and a burst only waits."""

MODEL_ERRORS: Final[Mapping[str, Outcome]] = {
    "refusal": "permanent",
    "content_filter": "permanent",
    "length": "permanent",
    "output_not_json": "unexpected_state",
    "output_schema": "unexpected_state",
}
"""What a plan may route, beside the outcome classes."""


def contract_of(step: Step, catalog: Catalog | None) -> ToolSpec | None:
    """Return what a step is bound to; None: it calls nothing, or nobody knows what.

    Args:
        step: Of any kind.
        catalog: The contracts of the tools; None: none is known.
    """
    if step.kind == MODEL:
        return _of_model(Identity(step))
    return None if catalog is None else catalog.tools.get(step.tool or "")


@lru_cache(maxsize=16_384)
def _of_model(wrapped: Identity[Step]) -> ToolSpec:
    step = wrapped.value
    return ToolSpec(
        name=MODEL,
        summary=step.objective.strip() or MODEL,
        effect=Effect.NONE,
        params={"type": "object"},
        output=step.output or {},
        errors=MODEL_ERRORS,
        timeout_s=MODEL_TIMEOUT_S,
        concurrency=MODEL_AT_ONCE,
    )
