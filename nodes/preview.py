"""The preview of a plan: no model is called, nothing is written, and nothing outside is touched.

A tool may say what evidence a call will show (`preview=`); it is asked here and nowhere else, and
if it reads the world for that, only where the caller hands the world in. What it says is shown as
an expectation, and what was cited beyond it is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from pydantic import JsonValue

from plangate.budget.estimate import Known
from plangate.budget.granularity import alternatives
from plangate.graph.arguments import Resolved, resolved
from plangate.plan.catalog import ToolSpec
from plangate.plan.contract import contract_of
from plangate.plan.effects import claims_of
from plangate.plan.errors import ConfigError, PlangateError
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
from plangate.tools.tool import Tool

_NO_TOOL = "there is no such tool"
_NO_WORLD = "it is read from the world, which is not looked at here"
_LATER = "it depends on what an earlier step gives"
MOST_REFS = 200
"""References of one call that a preview holds."""


@dataclass(frozen=True)
class _Asked:
    """Who says what evidence a call will show."""

    tools: Mapping[str, Tool]
    look: Callable[[], Any] | None

    @cached_property
    def world(self) -> Any:
        """The world, opened when it is first asked for."""
        assert self.look is not None, "previews that read it are not asked without"  # noqa: S101
        return self.look()


def previewed(
    plan: Plan,
    facts: Facts,
    known: Known,
    tools: Mapping[str, Tool],
    judged: Judged | None = None,
    look: Callable[[], Any] | None = None,
) -> Preview:
    """Work a preview out; the same every time, and for free.

    Args:
        plan: The plan.
        facts: With its estimate.
        known: What the estimate was made from.
        tools: By name; only their `preview` is called.
        judged: What was found when the plan was checked; None: it is checked now.
        look: Gives the world to previews that read it; None: the world is left alone.
    """
    if judged is None:
        tiering = tier_of(plan, facts)
        report = validate(plan, facts)
        judged = Judged(report, tiering.tier, tiering.reasons, tiering.confirm)
    estimate = facts.estimate
    assert estimate is not None, "it was estimated"  # noqa: S101 (ours)
    priced = {each.step: each for each in estimate.steps}
    steps = _steps(plan, facts, _Asked(tools, look), priced)
    return preview_of(plan, facts, judged, steps, alternatives(plan, known, estimate))


def _steps(
    plan: Plan, facts: Facts, asked: _Asked, priced: Mapping[str, StepEstimate]
) -> Iterator[StepPreview]:
    for step in plan.steps:
        spec = contract_of(step, facts.catalog)
        given = resolved(step, {"inputs": plan.inputs})
        tool = asked.tools.get(step.tool or "") if spec is not None else None
        yield StepPreview(
            id=step.id,
            objective=step.objective,
            capability=step.capability,
            effect=spec.effect.value if spec else None,
            external=spec.external if spec else None,
            args=cast("Mapping[str, JsonValue]", given.args),
            args_known=given.known,
            **_touched(step, spec, given.args),
            estimate=priced[step.id],
            evidence=_evidence(step, asked, tool, given),
            checks=tuple(f"{each.level} {each.claim}" for each in step.success),
        )


def _touched(
    step: Step, spec: ToolSpec | None, args: Mapping[str, Json]
) -> dict[str, tuple[str, ...]]:
    """Name the resources of a step; an argument that is missing is an issue, and names none."""
    reads, writes = frozenset[str](), frozenset[str]()
    with suppress(ConfigError):
        reads, writes = (reads, writes) if spec is None else claims_of(spec, args)
    return {"reads": tuple(sorted(reads)), "writes": tuple(sorted({*writes, *step.claims}))}


def _evidence(step: Step, asked: _Asked, tool: Tool | None, given: Resolved) -> Evidence:
    if tool is None:
        is_other = step.kind != "tool"
        return Evidence(nothing="no tool is called") if is_other else Evidence(unknown=_NO_TOOL)
    if tool.preview is None:
        return expected(tool.spec, given.args, known=given.known)
    if given.known and (not tool.previews_world or asked.look is not None):
        return _foreseen(tool, given.args, asked)
    said = expected(tool.spec, given.args, known=given.known)
    return said.model_copy(update={"unknown": _NO_WORLD if given.known else _LATER})


def _foreseen(tool: Tool, args: Mapping[str, Json], asked: _Asked) -> Evidence:
    assert tool.preview is not None, "the caller has looked"  # noqa: S101 (ours)
    try:
        said = tool.preview(args, asked.world) if tool.previews_world else tool.preview(args)
    except PlangateError:
        raise  # a world that cannot be opened
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
    if not said:
        return Evidence(source="preview", nothing="its preview names none")
    why = f"{odd} of {len(said)} are no references" if odd else ""
    left = len(said) - MOST_REFS
    why = f"and {left} more" if left > 0 and not why else why
    return Evidence(refs=tuple(refs), source="preview", unknown=why)
