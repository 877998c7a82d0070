"""Layer 3, tools and models: each is there for this principal, and means what the plan thinks."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from plangate.plan.codes import issue
from plangate.plan.contract import RESERVED
from plangate.plan.joins import is_strict, stand_ins
from plangate.plan.outcome import Outcome
from plangate.plan.shape.admits import reasons
from plangate.plan.shape.shape import compile_shape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plangate.plan.catalog import ToolSpec
    from plangate.plan.issue import Issue
    from plangate.plan.layers.ground import Ground, LayerCheck
    from plangate.plan.value.step import Declared, Step

MAX_TIMEOUT_S = 86_400
_OUTCOMES = frozenset(get_args(Outcome))
_KINDS = frozenset({"tool", "human", *RESERVED})
LOOP_CODES = ("too_many_items",)
"""Errors of a step over a list that are not its tool's."""


def known_tools(ground: Ground) -> Iterator[Issue]:
    """Each tool is in the catalog that the principal sees; unknown and forbidden are told apart."""
    catalog = ground.facts.catalog
    for site in ground.sites:
        if site.spec is not None:
            continue
        field, who = f"{site.prefix}tool", ground.facts.rights.principal
        if reason := catalog.forbidden.get(site.tool):
            says = f"tool {site.tool!r} is not for {who!r}: {reason}"
            yield issue("forbidden_tool", says, step=site.id, field=field)
        else:
            says = f"there is no tool named {site.tool!r}"
            hint = ground.nearest(site.tool, catalog.tools)
            yield issue("unknown_tool", says, step=site.id, field=field, hint=hint)


def same_version(ground: Ground) -> Iterator[Issue]:
    """Each tool still is what it was when the plan was made."""
    for step, spec in ground.calls:
        if step.tool_version is not None and step.tool_version != spec.version:
            says = f"planned with {spec.name}@{step.tool_version}; today it is {spec.version}"
            yield issue("version_drift", says, step=step.id, field="tool_version")


def supported(ground: Ground) -> Iterator[Issue]:
    """Nothing in the plan is beyond what this version runs."""
    for step in ground.plan.steps:
        beyond = [("kind", f"steps of kind {step.kind!r}")] * (step.kind not in _KINDS)
        loops = step.for_each is not None and step.kind != "tool"
        beyond += [("for_each", f"for_each on a step of kind {step.kind!r}")] * loops
        lenient = step.kind == "human" and not is_strict(step)
        beyond += [("join", "questions with a join of their own")] * lenient
        beyond += [("compensation", "compensations")] * (step.compensation is not None)
        for at, route in enumerate(step.routes):
            undoes = route.action == "compensate"
            beyond += [(f"routes[{at}]", "routes of action 'compensate'")] * undoes
        for field, what in beyond:
            says = f"{what} cannot be run by this version"
            yield issue("not_supported", says, step=step.id, field=field)


def has_model(ground: Ground) -> Iterator[Issue]:
    """There is a model to carry out model steps and agent steps."""
    steps = [step.id for step in ground.plan.steps if step.kind in RESERVED]
    if steps and ground.facts.step_model is None:
        says = f"no model is set, and {', '.join(steps[:5])} would ask one"
        yield issue("no_model", says, step=steps[0], field="kind")


def whole_answers(ground: Ground) -> Iterator[Issue]:
    """What a model or an agent answers is an object, and can be checked."""
    for step in ground.plan.steps:
        if step.kind not in RESERVED or step.output is None:
            continue
        shape = compile_shape(step.output)
        if shape.kind != "object":
            says = f"its answer is {shape}, not an object"
            yield issue("bad_output_schema", says, step=step.id, field="output")
        for why in shape.unchecked if shape.kind == "object" else ():
            says = f"the answer of {step.id!r} is not fully checked: {why}"
            yield issue("unchecked_shape", says, step=step.id, field="output")


def honest_claims(ground: Ground) -> Iterator[Issue]:
    """What a planner claims of a tool is what the contract says."""
    for step in ground.plan.steps:
        if step.declared is not None:
            yield from _legal(step, step.declared)
    for step, spec in ground.calls:
        if step.declared is not None:
            yield from _differs(step, step.declared, spec)


def stand_ins_fit(ground: Ground) -> Iterator[Issue]:
    """What a stand-in gives can be read as what the step gives that it stands in for."""
    for stand_in, principal in stand_ins(ground.plan).items():
        here, other = ground.shapes.output(principal), ground.shapes.output(stand_in)
        for reason in reasons(here, other) if here and other else ():
            says = f"{stand_in!r} cannot stand in for {principal!r}: its {reason}"
            yield issue("stand_in_differs", says, step=principal, field="routes")
            break


def unknown_is_not_replaced(ground: Ground) -> Iterator[Issue]:
    """What may have happened is found out about, never done in another way."""
    for step, spec in ground.calls:
        for at, route in enumerate(step.routes):
            asked = route.on if route.on in _OUTCOMES else spec.errors.get(route.on)
            acted = asked == "unknown" or (spec.effect.acts and asked == "unexpected_state")
            if route.action == "fallback" and acted:
                says = f"{spec.name!r} may have happened when it is {route.on!r}"
                yield issue("fallback_on_unknown", says, step=step.id, field=f"routes[{at}]")


def known_errors(ground: Ground) -> Iterator[Issue]:
    """Each route waits for something that can happen."""
    for step, spec in ground.calls:
        for at, route in enumerate(step.routes):
            known = (*spec.errors, *(LOOP_CODES if step.for_each is not None else ()))
            if route.on not in _OUTCOMES and route.on not in known:
                says = f"{spec.name!r} declares no error {route.on!r}"
                hint = ground.nearest(route.on, (*known, *sorted(_OUTCOMES)))
                field = f"routes[{at}].on"
                yield issue("unknown_error_code", says, step=step.id, field=field, hint=hint)


CHECKS: tuple[LayerCheck, ...] = (
    known_tools,
    same_version,
    supported,
    has_model,
    whole_answers,
    honest_claims,
    known_errors,
    stand_ins_fit,
    unknown_is_not_replaced,
)


def _legal(step: Step, declared: Declared) -> Iterator[Issue]:
    attempts, seconds = declared.max_attempts, declared.timeout_s
    if attempts is not None and not 1 <= attempts <= 3:  # noqa: PLR2004
        says = f"{attempts} attempts; 1 to 3 are possible"
        yield issue("bad_attempts", says, step=step.id, field="declared.max_attempts")
    if seconds is not None and not 0 < seconds <= MAX_TIMEOUT_S:
        says = f"time-out of {seconds} s; above 0 and up to {MAX_TIMEOUT_S} is possible"
        yield issue("bad_timeout", says, step=step.id, field="declared.timeout_s")


def _differs(step: Step, declared: Declared, spec: ToolSpec) -> Iterator[Issue]:
    price = None if spec.usd is None else float(spec.usd)
    pairs = {
        "max_attempts": (declared.max_attempts, spec.max_attempts),
        "timeout_s": (declared.timeout_s, spec.timeout_s),
        "reversible": (declared.reversible, spec.reversible),
        "estimated_cost": (declared.estimated_cost, price),
    }
    for name, (claimed, true) in pairs.items():
        if claimed is not None and claimed != true:
            says = f"claims {name} {claimed} for {spec.name!r}; its contract says {true}"
            yield issue("claim_differs", says, step=step.id, field=f"declared.{name}")
