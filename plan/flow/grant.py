"""What one step may do to the world, and where the values that it does it with come from."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from plangate.plan.contract import contract_of
from plangate.plan.value.frozen import Args, Frozen, canonical
from plangate.plan.value.refs import Ref

if TYPE_CHECKING:
    from plangate.plan.catalog import Catalog
    from plangate.plan.value.autonomy import Autonomy
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
    """True unless the step is known to neither act nor send anything outside, nor lets choose."""
    if step.kind == "human":
        return False
    if step.autonomy is not None:
        return True
    spec = contract_of(step, catalog)
    return spec is None or spec.effect.acts or spec.external


def grant_of(
    step: Step, plan: Plan, catalog: Catalog | None, loose: frozenset[str] = frozenset()
) -> Grant:
    """Return what a step may do.

    Args:
        step: The step.
        plan: Its plan.
        catalog: The contracts.
        loose: As for `origin`.
    """
    spec = contract_of(step, catalog)
    templates = () if spec is None else (spec.key or "", *spec.reads, *spec.writes)
    identity = {name for each in templates for name in _NAME.findall(each)}
    values: dict[str, Any] = {name: _planned(value, plan) for name, value in step.args.items()}
    envelope = _envelope(step.autonomy)
    return Grant(
        step=step.id,
        tool=step.tool or step.kind,
        effect="unknown" if spec is None else spec.effect.value,
        external=spec is None or spec.external,
        origins={
            name: origin(value, step, plan, loose=loose, deep=True)
            for name, value in step.args.items()
        }
        | {name: canonical(value).decode() for name, value in envelope.items()},
        limits={
            name: value
            for name, value in {**values, **envelope}.items()
            if name not in identity and _is_amount(value)
        },
        writes=(*(() if spec is None else spec.writes), *step.claims),
    )


def _envelope(given: Autonomy | None) -> dict[str, Any]:
    """Return what an agent may do, as arguments are: larger numbers and other words are more."""
    if given is None:
        return {}
    said = given.model_dump(mode="json")
    said["max_usd"] = None if given.max_usd is None else float(given.max_usd)
    said |= {name: sorted(said[name]) for name in ("tools", "labels")}
    return {f"autonomy.{name}": value for name, value in said.items()}


def origin(value: Json, step: Step, plan: Plan, *, loose: frozenset[str], deep: bool) -> str:
    """Return where a value comes from, as text that is equal for equal origins.

    A literal and an input are their value. An earlier result is the tool that gave it, the path,
    and with `deep` what that tool was given in turn.

    Args:
        value: The value, or a structure of values.
        step: The step that uses it.
        plan: The plan of that step.
        loose: Steps that only this one of two versions has. What they give counts as equal, since
            the replacement of a read is no other authority; but at the top of `deep` it does not:
            there the value goes into an effect.
        deep: Look one tool further.
    """
    return canonical(_trace(value, _Place(step, plan, loose), deep=deep)).decode()


class _Place(NamedTuple):
    step: Step
    plan: Plan
    loose: frozenset[str]


def _trace(value: Json, at: _Place, *, deep: bool) -> Json:
    if isinstance(value, Mapping):
        return {key: _trace(item, at, deep=deep) for key, item in value.items()}
    ref = Ref.parse(value)
    if ref is not None:
        return _source(ref, at, deep=deep)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_trace(item, at, deep=deep) for item in value]
    return {"literal": value}


def _source(ref: Ref, at: _Place, *, deep: bool) -> Json:
    if ref.source == "user":
        return {"literal": _planned(str(ref), at.plan)}
    if ref.source == "item" and at.step.for_each is not None:
        return {"each": _trace(at.step.for_each, at, deep=deep), "path": ref.path}
    source = at.plan.by_id.get(ref.step or "")
    if source is None:
        return {"source": ref.head, "path": ref.path}
    if source.id in at.loose and not deep:
        return {"source": "a step of this version"}
    said: dict[str, Json] = {
        "source": source.capability,
        "version": source.tool_version,
        "path": ref.path,
    }
    if deep:
        said["args"] = _trace(source.args, at._replace(step=source), deep=False)
    return said


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
