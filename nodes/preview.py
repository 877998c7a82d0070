"""The preview of a plan: no model is called, nothing is written, and nothing outside is touched.

A tool may say what evidence a call will show (`preview=`); it is asked here and nowhere else. What
it says is shown as an expectation, and what was cited beyond it is named.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from pydantic import JsonValue

from plangate.budget.estimate import Known
from plangate.budget.granularity import alternatives
from plangate.graph.arguments import resolved
from plangate.plan.contract import contract_of
from plangate.plan.facts import Facts
from plangate.plan.forecast import StepEstimate
from plangate.plan.layers.run import validate
from plangate.plan.preview import (
    Evidence,
    Judged,
    Preview,
    StepPreview,
    expected,
    preview_of,
)
from plangate.plan.tier import tier_of
from plangate.plan.value.frozen import Json
from plangate.plan.value.plan import Plan
from plangate.plan.value.step import Step
from plangate.plan.verdict import EvidenceRef
from plangate.tools.contract import Foresee
from plangate.tools.tool import Tool

_LATER = "it depends on what an earlier step gives"
MOST_REFS = 200
"""References of one call that a preview holds."""


def previewed(
    plan: Plan,
    facts: Facts,
    known: Known,
    tools: Mapping[str, Tool],
    judged: Judged | None = None,
) -> Preview:
    """Work a preview out; the same every time, and for free.

    Args:
        plan: The plan.
        facts: With its estimate.
        known: What the estimate was made from.
        tools: By name; only their `preview` is called.
        judged: What was found when the plan was checked; None: it is checked now.
    """
    if judged is None:
        tiering = tier_of(plan, facts)
        report = validate(plan, facts)
        judged = Judged(report, tiering.tier, tiering.reasons, tiering.confirm)
    estimate = facts.estimate
    assert estimate is not None, "it was estimated"  # noqa: S101 (ours)
    priced = {each.step: each for each in estimate.steps}
    steps = _steps(plan, facts, tools, priced)
    return preview_of(plan, facts, judged, steps, alternatives(plan, known, estimate))


def _steps(
    plan: Plan, facts: Facts, tools: Mapping[str, Tool], priced: Mapping[str, StepEstimate]
) -> Iterator[StepPreview]:
    for step in plan.steps:
        spec = contract_of(step, facts.catalog)
        given = resolved(step, {"inputs": plan.inputs})
        tool = tools.get(step.tool or "") if spec is not None else None
        yield StepPreview(
            id=step.id,
            objective=step.objective,
            capability=step.capability,
            effect=spec.effect.value if spec else None,
            external=spec.external if spec else None,
            args=cast("Mapping[str, JsonValue]", given.args),
            args_known=given.known,
            estimate=priced[step.id],
            evidence=_evidence(step, tool, given.args, known=given.known),
            checks=tuple(f"{each.level} {each.claim}" for each in step.success),
        )


def _evidence(step: Step, tool: Tool | None, args: Mapping[str, Json], *, known: bool) -> Evidence:
    if tool is None:
        kind = "no tool is called" if step.kind != "tool" else "there is no such tool"
        return Evidence(unknown=kind)
    if tool.preview is None:
        return expected(tool.spec, args, known=known)
    return _foreseen(tool.preview, args) if known else Evidence(unknown=_LATER)


def _foreseen(preview: Foresee, args: Mapping[str, Json]) -> Evidence:
    try:
        said = preview(args)
    except Exception as exc:  # noqa: BLE001 - foreign code; a preview must not fail for it
        return Evidence(unknown=f"its preview failed: {type(exc).__name__}")
    if isinstance(said, str) or not isinstance(said, Sequence):
        return Evidence(unknown="its preview gave no list of references")
    return _cited(said)


def _cited(said: Sequence[object]) -> Evidence:
    """Keep what has the form of a citation; what has not would never be found again."""
    refs, odd = list[str](), 0
    for each in said[:MOST_REFS]:
        try:
            refs.append(EvidenceRef(ref=each).ref)  # type: ignore[arg-type]
        except ValueError:
            odd += 1
    why = f"{odd} of {len(said)} are no references" if odd else ""
    left = len(said) - MOST_REFS
    why = f"and {left} more" if left > 0 and not why else why
    return Evidence(refs=tuple(refs), source="preview", unknown=why)
