"""Layers 2 and 3: each condition compiles against the values that it names."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from plangate.plan.codes import issue
from plangate.plan.shape.cel import Compiled, compile_rule
from plangate.plan.shape.scope import rule_scope

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plangate.plan.issue import Issue
    from plangate.plan.layers.ground import Ground, LayerCheck
    from plangate.plan.value.plan import Plan
    from plangate.plan.value.step import Check, Step


class RuleAt(NamedTuple):
    """A condition and where it stands."""

    rule: str
    step: str | None
    field: str
    observed: str | None = None
    before: bool = False


def rules_in(plan: Plan) -> Iterator[RuleAt]:
    """Yield each condition of a plan."""
    for step in plan.steps:
        yield from _of_step(step)
    yield from _of_checks(None, plan.success_criteria, "success_criteria")
    for field in ("abort_conditions", "replan_conditions", "constraints", "assumptions"):
        for at, each in enumerate(getattr(plan, field)):
            if each.rule is not None:
                yield RuleAt(each.rule, None, f"{field}[{at}].rule")


def rules_compile(ground: Ground) -> Iterator[Issue]:
    """Each rule is true or false for every value that its names can have."""
    catalog = ground.facts.catalog
    for each in rules_in(ground.plan):
        scope = rule_scope(
            ground.plan, catalog, step=each.step, observed=each.observed, before=each.before
        )
        compiled = compile_rule(each.rule, scope)
        ground.read_by(each.rule)  # its words are at hand now; layer 7 asks for this as well
        if isinstance(compiled, Compiled):
            yield from _unchecked(ground, each, compiled)
            continue
        for fault in compiled:
            if fault.code == "not_ancestor" and ground.cyclic:
                continue  # nobody's ancestors are known then
            if "dyn" in fault.says and _rests_on_unknown_tool(ground, each):
                continue  # with the tool its type would be known
            says = f"{each.field}: {fault.says}"
            yield issue(fault.code, says, step=each.step, field=each.field, hint=fault.hint)


CHECKS: tuple[LayerCheck, ...] = (rules_compile,)


def _of_step(step: Step) -> Iterator[RuleAt]:
    if step.when is not None:
        yield RuleAt(step.when, step.id, "when", before=True)
    for at, rule in enumerate(step.preconditions):
        yield RuleAt(rule, step.id, f"preconditions[{at}]", before=True)
    if step.join.rule is not None:
        yield RuleAt(step.join.rule, step.id, "join.rule", before=True)
    yield from _of_checks(step.id, step.success, "success")


def _of_checks(step: str | None, checks: tuple[Check, ...], field: str) -> Iterator[RuleAt]:
    for at, check in enumerate(checks):
        for name, rule in (("rule", check.rule), ("conflict", check.conflict)):
            if rule is not None:
                yield RuleAt(rule, step, f"{field}[{at}].{name}", check.tool)


def _unchecked(ground: Ground, each: RuleAt, compiled: Compiled) -> Iterator[Issue]:
    for name in compiled.unchecked:
        if _is_known(ground, each, name):
            says = f"{each.field}: {name!r} has no known type, so comparisons with it are unchecked"
            yield issue("unchecked_rule", says, step=each.step, field=each.field)


def _rests_on_unknown_tool(ground: Ground, each: RuleAt) -> bool:
    names = ("result", "observed", *(f"steps.{step}" for step in ground.read_by(each.rule)))
    said = [name for name in names if name in each.rule]
    return not all(_is_known(ground, each, name) for name in said)


def _is_known(ground: Ground, each: RuleAt, name: str) -> bool:
    """True if the tool behind a name is known, so that its missing type is news."""
    parts = name.split(".")
    if parts[0] == "observed":
        return each.observed in ground.facts.catalog.tools
    step = {"result": each.step, "steps": parts[1] if len(parts) > 1 else None}.get(parts[0])
    tool = ground.plan.by_id[step].tool if step in ground.plan.by_id else None
    return tool is None or tool in ground.facts.catalog.tools
