"""Agent steps: an envelope that is whole, that policy allows, and that nothing flows out of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plangate.plan.codes import issue
from plangate.plan.contract import AGENT, CALLS, tools_of
from plangate.plan.flow.envelope import beyond
from plangate.plan.flow.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plangate.plan.issue import Issue
    from plangate.plan.layers.ground import Ground, LayerCheck
    from plangate.plan.value.autonomy import Autonomy
    from plangate.plan.value.step import Step


def whole_envelopes(ground: Ground) -> Iterator[Issue]:
    """A step has an envelope if, and only if, a model of it may call tools."""
    for step in ground.plan.steps:
        if (step.kind == AGENT) != (step.autonomy is not None):
            verb = "needs" if step.autonomy is None else "cannot have"
            says = f"kind {step.kind!r} {verb} an envelope (`autonomy`)"
            yield issue("incomplete_step", says, step=step.id, field="autonomy")
        if step.kind == AGENT and step.output is None:
            says = "kind 'agent' needs an output schema"
            yield issue("incomplete_step", says, step=step.id, field="output")
        if step.kind == AGENT and CALLS in step.args:
            says = f"an argument of an agent step cannot be named {CALLS!r}"
            yield issue("incomplete_step", says, step=step.id, field="args")


def known_tools(ground: Ground) -> Iterator[Issue]:
    """Each tool of an envelope is in the catalog that the principal sees."""
    catalog, who = ground.facts.catalog, ground.facts.rights.principal
    for step, field, name in _named(ground):
        if name in catalog.tools:
            continue
        if reason := catalog.forbidden.get(name):
            says = f"tool {name!r} is not for {who!r}: {reason}"
            yield issue("forbidden_tool", says, step=step.id, field=field)
        else:
            hint = ground.nearest(name, catalog.tools)
            says = f"there is no tool named {name!r}"
            yield issue("unknown_tool", says, step=step.id, field=field, hint=hint)


def allowed(ground: Ground) -> Iterator[Issue]:
    """Policy lets the principal use each tool of an envelope."""
    policy, rights = ground.facts.policy, ground.facts.rights
    for step, field, name in _named(ground):
        spec = ground.facts.catalog.tools.get(name)
        reason = None if spec is None else policy.permits(spec, rights)
        if reason is not None:
            says = f"policy refuses {name!r} to {rights.principal!r}: {reason}"
            yield issue("policy_denied", says, step=step.id, field=field)


def within_caps(ground: Ground) -> Iterator[Issue]:
    """An envelope stays within what policy lets any step take."""
    caps, ceiling = ground.facts.policy.limits.step, ground.facts.policy.autonomy
    for step, envelope in _agents(ground):
        pairs = (
            ("max_steps", envelope.max_steps, caps.max_model_calls),
            ("max_seconds", envelope.max_seconds, caps.max_seconds),
            ("max_usd", envelope.max_usd, caps.max_usd),
        )
        for name, asked, most in pairs:
            if most is not None and asked is not None and asked > most:
                says = f"its envelope has {name} {asked}; policy lets no step take more than {most}"
                yield issue("over_autonomy", says, step=step.id, field=f"autonomy.{name}")
        for spec in tools_of(step, ground.facts.catalog):
            if spec.effect.rank > ceiling.max_effect.rank:
                says = f"{spec.name!r} has effect {spec.effect.value!r}; policy lets no plan go "
                says += f"beyond {ceiling.max_effect.value!r}"
                yield issue("over_autonomy", says, step=step.id, field="autonomy.tools")


def nothing_beyond(ground: Ground) -> Iterator[Issue]:
    """No tool of an envelope is above its ceiling, and no data flows into it that must not."""
    agents = _agents(ground)
    if not agents:
        return
    facts = ground.facts
    trace = Trace(ground.plan, facts.catalog, facts.policy, ground.order)
    for step, _ in agents:
        made = trace.outputs.get(step.id)
        for found in beyond(step, facts.catalog, facts.policy, made.read(()) if made else {}):
            yield issue(found.code, found.says, step=step.id, field=found.field)


SHAPE: tuple[LayerCheck, ...] = (whole_envelopes,)
TOOLS: tuple[LayerCheck, ...] = (known_tools,)
POLICY: tuple[LayerCheck, ...] = (allowed, within_caps)
FLOW: tuple[LayerCheck, ...] = (nothing_beyond,)


def _agents(ground: Ground) -> list[tuple[Step, Autonomy]]:
    return [
        (step, step.autonomy)
        for step in ground.plan.steps
        if step.kind == AGENT and step.autonomy is not None
    ]


def _named(ground: Ground) -> Iterator[tuple[Step, str, str]]:
    for step, envelope in _agents(ground):
        for at, name in enumerate(envelope.tools):
            yield step, f"autonomy.tools[{at}]", name
