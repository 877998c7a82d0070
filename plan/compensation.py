"""From effects that stand to the plan that takes them back: pure, newest first, nothing guessed.

The result is an ordinary plan. The same layers check it, a person confirms each undo, the executor
runs it under keys of its own, and what is gone is decided by looking, not by the undo's word.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from plangate.plan.codes import issue
from plangate.plan.effects import effect_key
from plangate.plan.errors import ConfigError
from plangate.plan.shape.shape import compile_shape
from plangate.plan.value.frozen import thaw
from plangate.plan.value.plan import Author, Budget, Condition, Plan
from plangate.plan.value.refs import Ref
from plangate.plan.value.step import Check, Route, Step

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from plangate.plan.catalog import Catalog, ToolSpec, Undo
    from plangate.plan.issue import Issue
    from plangate.plan.value.frozen import Json

AUTHOR = Author(kind="template", name="compensation@1")
_REFUSED = ("business_rejection", "permanent", "unexpected_state")


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """An effect that stands: what was called, with what, and what came back."""

    effect_key: str
    business_key: str
    step: str
    tool: str
    args: Mapping[str, Json]
    output: Mapping[str, Json]


class Undoing(NamedTuple):
    """How one effect would be taken back."""

    done: Done
    undo: Undo
    args: Mapping[str, Json]
    """Of the undo."""

    look_args: Mapping[str, Json]


def undo_faults(spec: ToolSpec, tools: Mapping[str, ToolSpec]) -> Iterator[tuple[str, str]]:
    """Yield what a tool's declared undo could never do, and the hint; known before any call."""
    undo = spec.undo
    if undo is None:
        return
    if undo.tool not in tools:
        yield "which is not here", "Add that tool, or correct undo=."
    elif not tools[undo.tool].effect.acts:
        yield "which does not act", "Name the tool that puts the change right."
    if undo.look is not None and undo.look not in tools:
        yield f"looking with {undo.look!r}, which is not here", "Add that tool, or correct undo=."
    elif undo.look is not None and tools[undo.look].effect.acts:
        yield f"looking with {undo.look!r}, which acts", "Name a read-only tool."
    used = [tools[name] for name in (undo.tool, undo.look) if name is not None and name in tools]
    for tool in used:
        yield from _unfilled(spec, undo, tool)
    yield from _unknown_sources(spec, undo, used)


def undoing(done: Done, catalog: Catalog) -> Undoing | Issue:
    """Return how an effect would be taken back, or why plangate does not offer to."""
    spec = catalog.tools.get(done.tool)
    if spec is None or spec.undo is None:
        return issue("no_undo", f"{done.tool!r} declares no undo", step=done.step)
    undo = spec.undo
    for name in (undo.tool, undo.look):
        if name is not None and name not in catalog.tools:
            why = catalog.forbidden.get(name, "it is not in the catalog")
            return issue("no_undo", f"{name!r} may not be used: {why}", step=done.step)
    if undo.look is None:
        return issue("undo_unproved", f"undo by {undo.tool!r} names no look", step=done.step)
    return _filled(done, undo, catalog.tools[undo.tool], catalog.tools[undo.look])


def _filled(done: Done, undo: Undo, by: ToolSpec, look: ToolSpec) -> Undoing | Issue:
    args, look_args = _arguments(done, undo, by), _arguments(done, undo, look)
    if isinstance(args, str):
        return issue("undo_unfit", args, step=done.step)
    if isinstance(look_args, str):
        return issue("undo_unfit", look_args, step=done.step)
    if _identity(by, args) in ("", done.business_key):
        says = f"undoing {done.business_key} by {by.name!r} would be that very effect"
        return issue("undo_is_the_effect", says, step=done.step)
    return Undoing(done, undo, args, look_args)


def compensation(
    undoings: Sequence[Undoing], *, goal: str, goal_id: str, catalog_hash: str, policy_hash: str
) -> Plan:
    """Return the plan that takes effects back, one after the other.

    Args:
        undoings: In the order of the plan, the newest effect first; at least one.
        goal: In words.
        goal_id: The same for each attempt to undo the same goal, so that no effect is undone twice.
        catalog_hash: The contracts planned against.
        policy_hash: The policy planned under.
    """
    steps: list[Step] = []
    for number, each in enumerate(undoings, 1):
        steps += _steps(number, each, after=steps[-1:])
    return Plan(
        goal_id=goal_id,
        goal=goal,
        task_type="compensation",
        inputs={
            f"E{n}": {"undo": thaw(each.args), "look": thaw(each.look_args)}
            for n, each in enumerate(undoings, 1)
        },
        steps=tuple(steps),
        success_criteria=tuple(_gone(n, each, "goal") for n, each in enumerate(undoings, 1)),
        abort_conditions=(
            Condition(id="too_many", text="Five failed attempts", rule="run.failures >= 5"),
        ),
        budget=Budget(min_level="L2"),
        author=AUTHOR,
        catalog_hash=catalog_hash,
        policy_hash=policy_hash,
    )


def step_of(number: int) -> str:
    """Return the id of the step that undoes the effect with this number, counted from 1."""
    return f"U{number}"


def _steps(number: int, each: Undoing, after: Sequence[Step]) -> Iterator[Step]:
    needs = tuple(step.id for step in after)
    if each.undo.only_if is not None:
        stands = Check(
            id=f"due_{number}",
            level="L1",
            claim=f"{each.done.business_key[:200]} is still as the undo needs it",
            rule=each.undo.only_if,
        )
        looks = Step(
            id=f"L{number}",
            objective=f"Look at {each.done.business_key[:400]}",
            tool=each.undo.look,
            args=_read(number, "look", each.look_args),
            after=needs,
            success=(stands,),
        )
        yield looks
        needs = (looks.id,)
    refused = _REFUSED if each.undo.on_failure == "abort" else ()
    yield Step(
        id=step_of(number),
        objective=f"Undo {each.done.business_key[:400]}",
        tool=each.undo.tool,
        args=_read(number, "undo", each.args),
        after=needs,
        approval="always",
        success=(_gone(number, each, "step"),),
        routes=(
            Route(on="unknown", action="ask"),
            *(Route(on=outcome, action="abort") for outcome in refused),
        ),
    )


def _gone(number: int, each: Undoing, of: str) -> Check:
    return Check(
        id=f"gone_{number}" if of == "goal" else f"undone_{number}",
        level="L2",
        claim=f"{each.done.business_key[:200]} is gone",
        tool=each.undo.look,
        args=_read(number, "look", each.look_args),
        rule=each.undo.gone,
    )


def _read(number: int, part: str, args: Mapping[str, Json]) -> dict[str, Any]:
    return {name: f"${{inputs.E{number}.{part}.{name}}}" for name in args}


def _arguments(done: Done, undo: Undo, spec: ToolSpec) -> dict[str, Json] | str:
    """Fill a tool's parameters from the recorded call; a text says what is not there."""
    known: dict[str, Json] = {"args": done.args, "output": done.output}
    given: dict[str, Json] = {}
    for name in _properties(spec.params):
        places = [undo.args[name]] if name in undo.args else [f"output.{name}", f"args.{name}"]
        for place in places:
            head, *path = place.split(".")
            try:
                given[name] = Ref(head, tuple(path)).resolve(known)
                break
            except KeyError:
                if name in undo.args:
                    return f"{spec.name!r} takes {name} from {place}, which the call does not have"
    for misfit in compile_shape(spec.params).accepts(given):
        return f"{spec.name!r}: {misfit.path or 'arguments'} {misfit.says}"
    return given


def _identity(spec: ToolSpec, args: Mapping[str, Json]) -> str:
    try:
        return effect_key(spec, args, "").business
    except ConfigError:
        return ""


def _unfilled(spec: ToolSpec, undo: Undo, tool: ToolSpec) -> Iterator[tuple[str, str]]:
    known = {*undo.args, *_properties(spec.params), *_properties(spec.output)}
    required = tool.params.get("required")
    for name in required if isinstance(required, (list, tuple)) else ():
        if name not in known:
            says = f"and {tool.name!r} needs {name!r}, which it neither takes nor returns"
            yield says, f'Map it, as Undo(tool=..., args={{"{name}": "output.NAME"}}).'


def _unknown_sources(
    spec: ToolSpec, undo: Undo, used: Sequence[ToolSpec]
) -> Iterator[tuple[str, str]]:
    takes = {name for tool in used for name in _properties(tool.params)}
    has = {"args": _properties(spec.params), "output": _properties(spec.output)}
    for name, place in undo.args.items():
        head, field, *_ = place.split(".")
        if name not in takes:
            yield f"with a value for {name!r}, which it does not take", "Correct undo=."
        elif field not in has[head]:
            yield f"with {name!r} from {place!r}, which there is not", "Correct undo=."


def _properties(schema: Mapping[str, Json]) -> Mapping[str, Json]:
    said = schema.get("properties")
    return said if isinstance(said, Mapping) else {}
