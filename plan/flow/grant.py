"""What one step may do to the world, and where the values that it does it with come from."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from plangate.plan.value.frozen import Args, Frozen, canonical
from plangate.plan.value.refs import Ref

if TYPE_CHECKING:
    from plangate.plan.catalog import Catalog, ToolSpec
    from plangate.plan.value.frozen import Json
    from plangate.plan.value.plan import Plan
    from plangate.plan.value.step import Step

_NAME = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)")


class Grant(Frozen):
    """One step that acts, or that sends something outside."""

    step: str
    tool: str
    effect: str
    """A word of `Effect`, or `unknown` where there is no contract: then the worst is assumed."""

    external: bool
    origins: Args
    """Per argument where its value comes from; see `origin`."""

    limits: Args
    """Arguments that are plain numbers at planning time and no part of what is acted upon."""

    writes: tuple[str, ...]
    """Resource keys over the arguments as the plan writes them."""


def reaches(step: Step, catalog: Catalog | None) -> bool:
    """True unless the step is known to neither act nor send anything outside."""
    if step.kind in ("human", "model"):
        return False
    spec = contract(step, catalog)
    return spec is None or spec.effect.acts or spec.external


def contract(step: Step, catalog: Catalog | None) -> ToolSpec | None:
    """Return the contract of a step's tool, if one is known."""
    return None if catalog is None else catalog.tools.get(step.tool or "")


def grant_of(step: Step, plan: Plan, catalog: Catalog | None) -> Grant:
    """Return what a step may do."""
    spec = contract(step, catalog)
    templates = () if spec is None else (spec.key or "", *spec.reads, *spec.writes)
    identity = {name for each in templates for name in _NAME.findall(each)}
    values = {name: _planned(value, plan) for name, value in step.args.items()}
    return Grant(
        step=step.id,
        tool=step.tool or step.kind,
        effect="unknown" if spec is None else spec.effect.value,
        external=spec is None or spec.external,
        origins={name: origin(value, step, plan) for name, value in step.args.items()},
        limits={
            name: value  # type: ignore[misc]
            for name, value in values.items()
            if name not in identity and _is_amount(value)
        },
        writes=(*(() if spec is None else spec.writes), *step.claims),
    )


def origin(value: Json, step: Step, plan: Plan) -> str:
    """Return where a value comes from, as text that is equal for equal origins.

    A literal and an input are their value. An earlier result is the tool that gave it, the path,
    and the tool's own literals; which steps that tool in turn read is left open, so that a repair
    of a read further up does not count as another origin, while another limit or another tool does.
    """
    return canonical(_trace(value, step, plan, deep=True)).decode()


def _trace(value: Json, step: Step, plan: Plan, *, deep: bool) -> Json:
    if isinstance(value, Mapping):
        return {key: _trace(item, step, plan, deep=deep) for key, item in value.items()}
    ref = Ref.parse(value)
    if ref is not None:
        return _source(ref, step, plan, deep=deep)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_trace(item, step, plan, deep=deep) for item in value]
    return {"literal": value}


def _source(ref: Ref, step: Step, plan: Plan, *, deep: bool) -> Json:
    if ref.source == "user":
        return {"literal": _planned(str(ref), plan)}
    if ref.source == "item" and step.for_each is not None:
        return {"each": _trace(step.for_each, step, plan, deep=deep), "path": ref.path}
    source = plan.by_id.get(ref.step or "")
    if source is None:
        return {"source": ref.head, "path": ref.path}
    if not deep:
        return {"source": "step"}
    return {
        "source": source.capability,
        "version": source.tool_version,
        "path": ref.path,
        "args": _trace(source.args, source, plan, deep=False),  # type: ignore[arg-type]
    }


def _planned(value: Json, plan: Plan) -> Json:
    ref = Ref.parse(value)
    if ref is None or ref.source != "user":
        return value
    try:
        return ref.resolve({"inputs": plan.inputs})
    except KeyError:
        return str(ref)


def _is_amount(value: Json) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0
