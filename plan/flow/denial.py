"""What a run was denied, remembered by what it would have done and not by the tool that tried.

A denial is no hint to try another tool. Whatever reaches the same business key, or with the same
class of effect the same resource or recipient, is refused like the first attempt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from plangate.plan.catalog import Effect
from plangate.plan.effects import fill
from plangate.plan.errors import ConfigError
from plangate.plan.flow.grant import origin
from plangate.plan.value.each import element, items_of
from plangate.plan.value.frozen import Frozen, freeze
from plangate.plan.value.refs import resolve_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from plangate.plan.catalog import ToolSpec
    from plangate.plan.value.frozen import Json
    from plangate.plan.value.plan import Plan
    from plangate.plan.value.step import Step


class Reach(NamedTuple):
    """What one call would do, in names that another tool can share."""

    effect: Effect
    keys: frozenset[str]
    """The business identity of the effect."""

    claims: frozenset[str]
    """Resources that it writes, or reads where it only reads."""

    sinks: frozenset[str]
    """Texts that would go into guarded arguments: recipients, accounts."""


class Denial(Frozen):
    """Something that was denied in this run."""

    step: str
    version: int
    tool: str
    effect: Effect
    keys: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    sinks: tuple[str, ...] = ()
    why: str
    by_person: bool = False
    """True: a person said no, which also holds for the same tool in another step."""

    def covers(self, step: str, tool: str, reach: Reach) -> str | None:
        """Name what a call would reach that was denied; None: nothing, or it is the denied one."""
        if tool == self.tool and (step == self.step or not self.by_person):
            return None  # its own refusal still stands, with today's rules
        if common := reach.keys.intersection(self.keys):
            return min(common)
        if reach.effect is not self.effect:
            return None
        common = reach.claims.intersection(self.claims) or reach.sinks.intersection(self.sinks)
        return min(common, default=None)


def reach_of(spec: ToolSpec, args: Mapping[str, Json]) -> Reach:
    """Return what a call would do.

    Args:
        spec: The contract.
        args: Resolved arguments, or those of `planned_args`.
    """
    template = spec.key or ""
    key = f"{spec.name}:{template}" if template.startswith("{") else template
    return Reach(
        spec.effect,
        frozenset(_filled((key,) if key else (), args)),
        frozenset(_filled(spec.writes if spec.effect.acts else spec.reads, args)),
        frozenset(_sinks(spec, args)),
    )


def planned_args(step: Step, plan: Plan) -> dict[str, Json]:
    """Return the arguments as far as the plan knows them.

    What only a run can know stands as where it comes from, so that it is the same in every plan
    that takes it from there, whatever the steps are called.
    """
    return {name: _planned(value, step, plan) for name, value in step.args.items()}


def planned_calls(step: Step, plan: Plan) -> list[dict[str, Json]]:
    """Return the arguments of each call: one, or of a list that is known one for each element."""
    items = items_of(step, {"inputs": plan.inputs}) or ()
    each = [planned_args(element(step, at), plan) for at in range(len(items))]
    return [planned_args(step, plan), *each]


def denial_of(
    step: Step, plan: Plan, spec: ToolSpec, why: str, *, known: Mapping[str, Json] | None = None
) -> Denial:
    """Return the denial of a step.

    Args:
        step: The step.
        plan: Its plan.
        spec: The contract of its tool.
        why: What was said.
        known: Its arguments as they would have run, where that is known.
    """
    reaches = [
        reach_of(spec, args) for args in (*planned_calls(step, plan), known) if args is not None
    ]
    return Denial(
        step=step.id,
        version=plan.version,
        tool=spec.name,
        effect=spec.effect,
        keys=_all(reach.keys for reach in reaches),
        claims=_all(reach.claims for reach in reaches),
        sinks=_all(reach.sinks for reach in reaches),
        why=why,
    )


def denied_before(
    denials: Iterable[Denial], step: str, spec: ToolSpec, args: Mapping[str, Json]
) -> str | None:
    """Return why a call would only repeat what was denied, or None."""
    reach: Reach | None = None
    for denial in denials:
        reach = reach or reach_of(spec, args)
        if what := denial.covers(step, spec.name, reach):
            return f"{spec.name!r} reaches {what!r}, which {denial.tool!r} was denied: {denial.why}"
    return None


def _planned(value: Json, step: Step, plan: Plan) -> Json:
    try:
        return resolve_all(value, {"inputs": plan.inputs})
    except KeyError:
        return origin(freeze(value), step, plan, loose=frozenset(), deep=False)


def _filled(templates: Iterable[str], args: Mapping[str, Json]) -> Iterator[str]:
    for template in templates:
        try:
            yield fill(template, args)
        except ConfigError:  # a part of the name that is not given
            continue


def _sinks(spec: ToolSpec, args: Mapping[str, Json]) -> Iterator[str]:
    if spec.effect.acts or spec.external:
        yield from (str(args[name]) for name in spec.arg_rules if isinstance(args.get(name), str))


def _all(sets: Iterable[frozenset[str]]) -> tuple[str, ...]:
    return tuple(sorted(frozenset().union(*sets)))
