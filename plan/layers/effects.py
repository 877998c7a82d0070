"""Layer 5, effects: nothing acts without the right to, nor unproved, nor beside its own rival."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING

from plangate.plan.catalog import Effect
from plangate.plan.codes import issue
from plangate.plan.effects import fill
from plangate.plan.errors import ConfigError
from plangate.plan.flow.denial import denied_before, planned_calls
from plangate.plan.value.each import any_element
from plangate.plan.value.refs import Ref, resolve_all

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plangate.plan.catalog import ToolSpec
    from plangate.plan.issue import Issue
    from plangate.plan.layers.ground import Ground, LayerCheck
    from plangate.plan.value.frozen import Json
    from plangate.plan.value.step import Step

_CLAIMED = {
    "none": Effect.NONE,
    "read": Effect.READ,
    "write": Effect.WRITE,
    "external": Effect.IRREVERSIBLE,
    "irreversible": Effect.IRREVERSIBLE,
}
PROOF = "L2"
"""The least level of check that shows what an act did to the world."""


def not_understated(ground: Ground) -> Iterator[Issue]:
    """Nobody plans with a milder effect in mind than the tool has."""
    for step, spec in ground.calls:
        if step.declared is None:
            continue
        claimed = _CLAIMED.get((step.declared.side_effect or "").strip().lower())
        if claimed is not None and claimed.rank < spec.effect.rank:
            says = f"claims effect {claimed.value!r}; {spec.name!r} has {spec.effect.value!r}"
            yield issue("effect_understated", says, step=step.id, field="declared.side_effect")
        if step.declared.reversible and not spec.reversible:
            says = f"claims that {spec.name!r} can be undone; it has no undo"
            yield issue("effect_understated", says, step=step.id, field="declared.reversible")


def within_rights(ground: Ground) -> Iterator[Issue]:
    """The principal holds each scope that a tool needs."""
    held = frozenset(ground.facts.rights.scopes)
    for site in ground.sites:
        lacking = sorted(set(site.spec.scopes) - held) if site.spec else []
        if lacking:
            who = ground.facts.rights.principal
            says = f"{who!r} lacks scope {', '.join(lacking)}, which {site.tool!r} needs"
            yield issue("missing_scope", says, step=site.id, field=f"{site.prefix}tool")


def right_tenant(ground: Ground) -> Iterator[Issue]:
    """Each tool is for the tenant that the principal belongs to."""
    policy, rights = ground.facts.policy, ground.facts.rights
    said = {site.tool: policy.wrong_tenant(site.spec, rights) for site in ground.sites if site.spec}
    for site in ground.sites:
        if says := said.get(site.tool):
            yield issue("wrong_tenant", says, step=site.id, field=f"{site.prefix}tool")


def not_denied(ground: Ground) -> Iterator[Issue]:
    """What was denied in this run is not reached by another tool."""
    for step, spec in ground.calls if ground.facts.denied else ():
        for args in planned_calls(step, ground.plan):
            if says := denied_before(ground.facts.denied, step.id, spec, args):
                yield issue("denied_before", says, step=step.id, field="tool")
                break


def proved(ground: Ground) -> Iterator[Issue]:
    """What cannot be taken back is looked at again after it was done."""
    for step, spec in ground.calls:
        if needs_proof(spec) and not is_proved(step):
            kind = "external" if spec.effect is not Effect.IRREVERSIBLE else "irreversible"
            says = f"{spec.name!r} is {kind}, and no check of level {PROOF} or above looks again"
            yield issue("unproved_effect", says, step=step.id, field="success")


def looking_only(ground: Ground) -> Iterator[Issue]:
    """Checks look and do not touch."""
    for site in ground.sites:
        if site.prefix and site.acts:
            says = f"check uses {site.tool!r}, which acts"
            yield issue("acting_check", says, step=site.id, field=f"{site.prefix}tool")


def one_writer(ground: Ground) -> Iterator[Issue]:
    """Steps that write one thing are in order.

    Only what is certainly the same is found: equal values, or the same reference. Values that turn
    out equal are kept apart when the steps run.
    """
    writers: dict[str, list[str]] = defaultdict(list)
    place = {step: at for at, step in enumerate(ground.order)}
    for step, spec in ground.calls:
        for claim in _claims(ground, step, spec):
            writers[claim].append(step.id)
    for claim, steps in writers.items():
        steps.sort(key=lambda step: place[step])
        for one, two in pairwise(steps):
            if one != two and one not in ground.shapes.ancestors[two]:
                says = f"{one!r} and {two!r} both write {claim!r} and may run at the same time"
                yield issue("parallel_claim", says, step=two, field="after")


CHECKS: tuple[LayerCheck, ...] = (
    not_understated,
    within_rights,
    right_tenant,
    not_denied,
    proved,
    looking_only,
    one_writer,
)


def needs_proof(spec: ToolSpec) -> bool:
    """True if a call must be followed by a look at the world."""
    return spec.effect is Effect.IRREVERSIBLE or (spec.external and spec.effect.acts)


def is_proved(step: Step) -> bool:
    """True if the step has a check that looks at the world, or asks someone who does."""
    return any(check.level >= PROOF for check in step.success)


def _claims(ground: Ground, step: Step, spec: ToolSpec) -> Iterator[str]:
    yield from dict.fromkeys(step.claims)
    if not spec.writes:
        return
    args = _known_args(ground, step)
    for template in dict.fromkeys(spec.writes):
        try:
            claim = fill(template, args)
        except ConfigError:  # part of the name is only known when the step runs
            continue
        if claim not in step.claims:
            yield claim


def _known_args(ground: Ground, step: Step) -> dict[str, Json]:
    """Return the arguments with inputs filled in; references to steps stand for themselves."""
    known: dict[str, Json] = {"inputs": ground.plan.inputs}
    args = any_element(step).args
    return {name: _filled(value, known) for name, value in args.items()}


def _filled(value: Json, known: dict[str, Json]) -> Json:
    ref = Ref.parse(value)
    if ref is None or ref.source != "user":
        return value
    try:
        return resolve_all(value, known)
    except KeyError:
        return value
