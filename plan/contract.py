"""The contract that a step runs under: of its tool, of model steps, of all that an agent may do.

A model step is a call like any other: policy allows it by a name, its result has a shape, labels
ride on it, and it can be tried again. So it has a contract like any other, of which only the form
of the result is its own.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from plangate.plan.catalog import Effect, Labels, ToolSpec
from plangate.plan.shape.identity import Identity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plangate.plan.catalog import Catalog
    from plangate.plan.outcome import Outcome
    from plangate.plan.value.step import Step

MODEL: Final = "model"
"""What policies and logs call the capability of a model step; no tool may have this name."""

AGENT: Final = "agent"
"""The same for an agent step."""

RESERVED: Final = frozenset({MODEL, AGENT})
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

CALLS: Final = "calls so far"
"""Name under which an agent's model is shown what it did, beside the arguments of the step."""

OUT_OF_BOUNDS: Final = "out_of_bounds"
"""Code of an agent step that met a bound of its envelope before it had an answer."""


def contract_of(step: Step, catalog: Catalog | None) -> ToolSpec | None:
    """Return what a step is bound to; None: it calls nothing, or nobody knows what.

    Args:
        step: Of any kind.
        catalog: The contracts of the tools; None: none is known.
    """
    if step.kind == MODEL:
        return _of_model(Identity(step))
    if step.kind == AGENT:
        return None if catalog is None else _of_agent(step, catalog)
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


def tools_of(step: Step, catalog: Catalog) -> tuple[ToolSpec, ...]:
    """Return the contracts of what an agent step may call, as far as they are known."""
    names = () if step.autonomy is None else dict.fromkeys(step.autonomy.tools)
    return tuple(catalog.tools[name] for name in names if name in catalog.tools)


def _of_agent(step: Step, catalog: Catalog) -> ToolSpec:
    """Return the worst of all that an agent step may do; of one turn (no envelope), only its form.

    No step acts through its agent in this version, so its effect is a read's at most.
    """
    tools = tools_of(step, catalog)
    secret = dict.fromkeys(label for spec in tools for label in spec.labels.confidentiality)
    return ToolSpec(
        name=AGENT,
        summary=step.objective.strip() or AGENT,
        effect=Effect.NONE if step.autonomy is None else Effect.READ,
        external=any(spec.external for spec in tools),
        params={"type": "object"},
        output=step.output or {},
        labels=Labels(confidentiality=tuple(secret)),
        errors={**MODEL_ERRORS, OUT_OF_BOUNDS: "permanent"},
        timeout_s=MODEL_TIMEOUT_S,
        concurrency=MODEL_AT_ONCE,
    )
