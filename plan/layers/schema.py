"""Layer 1: is it a plan at all, and does each name mean one thing?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from plangate.plan.codes import issue
from plangate.plan.shape.misfit import shown
from plangate.plan.shape.scope import near
from plangate.plan.value.autonomy import Autonomy
from plangate.plan.value.plan import (
    Assumption,
    Author,
    Budget,
    Condition,
    Constraint,
    Note,
    Plan,
    Rejected,
)
from plangate.plan.value.step import Check, Declared, Join, Question, Route, Step

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

    from plangate.plan.issue import Issue
    from plangate.plan.layers.ground import Ground, LayerCheck
    from plangate.plan.value.frozen import Frozen

MAX_STEPS = 10_000
RESERVED_IDS = frozenset(
    {"inputs", "item", "memory", "steps", "result", "observed", "run", "facts"}
    | {"as", "break", "const", "continue", "else", "false", "for", "function", "if", "import"}
    | {"in", "let", "loop", "namespace", "null", "package", "return", "true", "var", "void"}
    | {"while"}
)
"""Heads of references and rules, and the words that CEL keeps for itself."""

_INSIDE: Mapping[str, type[Frozen]] = {
    "": Plan,
    "steps": Step,
    "success": Check,
    "success_criteria": Check,
    "routes": Route,
    "join": Join,
    "question": Question,
    "declared": Declared,
    "autonomy": Autonomy,
    "constraints": Constraint,
    "assumptions": Assumption,
    "abort_conditions": Condition,
    "replan_conditions": Condition,
    "budget": Budget,
    "author": Author,
    "notes": Note,
    "rejected": Rejected,
}
_CODES = {"missing": "missing_field", "extra_forbidden": "unknown_field"}


def size(ground: Ground) -> Iterator[Issue]:
    """There is something to do, and not too much to look at."""
    count = len(ground.plan.steps)
    if count == 0:
        yield issue("no_steps", "the plan has no steps", field="steps")
    if count > MAX_STEPS:
        yield issue("too_many_steps", f"{count} steps; {MAX_STEPS} are allowed", field="steps")


def one_form(ground: Ground) -> Iterator[Issue]:
    """The plan can be hashed: each reader sees the same numbers and texts in it."""
    yield from formless(ground.plan)


def formless(plan: Plan) -> Iterator[Issue]:
    """Find what keeps a plan from being hashed."""
    try:
        _ = plan.content_hash
    except ValueError as exc:
        says = f"the plan holds a value without an exact JSON form: {exc}"
        yield issue("bad_value", says, hint="Use whole numbers below 2**53, and Unicode text.")


def unique_ids(ground: Ground) -> Iterator[Issue]:
    """Each id is used once among its kind."""
    plan = ground.plan
    checks = [check for step in plan.steps for check in step.success]
    kinds: Mapping[str, Sequence[str]] = {
        "step": [step.id for step in plan.steps],
        "check": [check.id for check in (*checks, *plan.success_criteria)],
        "constraint": [each.id for each in plan.constraints],
        "assumption": [each.id for each in plan.assumptions],
        "condition": [each.id for each in (*plan.abort_conditions, *plan.replan_conditions)],
    }
    for kind, ids in kinds.items():
        for name, times in Counter(ids).items():
            if times > 1:
                step = name if kind == "step" else None
                yield issue("duplicate_id", f"{kind} id {name!r} is used {times} times", step=step)


def plain_ids(ground: Ground) -> Iterator[Issue]:
    """No step is called like something else."""
    for step in ground.plan.steps:
        if step.id in RESERVED_IDS:
            says = f"{step.id!r} cannot be the id of a step"
            yield issue("reserved_id", says, step=step.id, field="id")


def whole_steps(ground: Ground) -> Iterator[Issue]:
    """Each step says what it is for and has what its kind needs."""
    for step in ground.plan.steps:
        if not step.objective.strip():
            yield issue("empty_objective", "has no objective", step=step.id, field="objective")
        if (step.kind == "tool") != (step.tool is not None):
            says = f"kind {step.kind!r} {'needs' if step.tool is None else 'cannot have'} a tool"
            yield issue("incomplete_step", says, step=step.id, field="tool")
        if (step.kind == "human") != (step.question is not None):
            verb = "needs" if step.question is None else "cannot have"
            says = f"kind {step.kind!r} {verb} a question"
            yield issue("incomplete_step", says, step=step.id, field="question")
        if step.kind == "model" and step.output is None:
            says = "kind 'model' needs an output schema"
            yield issue("incomplete_step", says, step=step.id, field="output")
        if step.kind not in ("model", "agent") and step.output is not None:
            says = f"kind {step.kind!r} cannot have an output schema"
            yield issue("incomplete_step", says, step=step.id, field="output")


CHECKS: tuple[LayerCheck, ...] = (size, one_form, unique_ids, plain_ids, whole_steps)


def misread(error: ValidationError, data: object) -> Iterator[Issue]:
    """Yield what stops `data` from being read as a plan, each with its step and field.

    Args:
        error: What pydantic found.
        data: The plain JSON data that was read.
    """
    for found in error.errors(include_url=False, include_context=False):
        yield _misread(found, data)


def _misread(found: ErrorDetails, data: object) -> Issue:
    where = found["loc"]
    step, below = _step_of(where, data)
    field = _field(below)
    who = f"step {step!r}" if step else "the plan"
    code = _CODES.get(found["type"], "bad_value")
    if code == "missing_field":
        return issue(code, f"{who} has no `{field}`", step=step, field=field)
    if code == "unknown_field":
        says = f"{who} has a field `{field}`, which plans do not have"
        return issue(code, says, step=step, field=field, hint=_fields_hint(where))
    fault = found["msg"].replace("Input should", "should").replace("String should", "should")
    says = f"`{field or 'the plan'}` of {who} is {shown(found['input'])}: {fault}"
    return issue(code, says, step=step, field=field)


def _step_of(
    where: tuple[int | str, ...], data: object
) -> tuple[str | None, tuple[int | str, ...]]:
    if len(where) < 2 or where[0] != "steps" or not isinstance(where[1], int):  # noqa: PLR2004
        return None, where
    steps = data.get("steps") if isinstance(data, Mapping) else None
    step = steps[where[1]] if isinstance(steps, Sequence) else None
    name = step.get("id") if isinstance(step, Mapping) else None
    return (name, where[2:]) if isinstance(name, str) and name else (None, where)


def _field(where: tuple[int | str, ...]) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in where)
    return text.removeprefix(".")


def _fields_hint(where: tuple[int | str, ...]) -> str:
    parents = [part for part in where[:-1] if isinstance(part, str)]
    kind = _INSIDE.get(parents[-1] if parents else "")
    if kind is None:
        return ""
    close = near(str(where[-1]), kind.model_fields)
    guess = f"Did you mean {' or '.join(close)}? " if close else ""
    return f"{guess}Fields: {', '.join(kind.model_fields)}."
