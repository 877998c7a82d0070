"""What an agent step may not have in its envelope: looked at before a plan runs, and as it starts.

The arguments of what an agent calls are written by a model that has read whatever the step reads.
So each argument of each of its tools is a sink of all that data, and of the model's own words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from plangate.plan.catalog import UNTRUSTED, Effect
from plangate.plan.contract import tools_of
from plangate.plan.flow.labels import breaches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plangate.plan.catalog import Catalog, ToolSpec
    from plangate.plan.flow.labels import Marks
    from plangate.plan.policy import Policy
    from plangate.plan.value.autonomy import Autonomy
    from plangate.plan.value.step import Step


class Beyond(NamedTuple):
    """One thing in an envelope that must not be there."""

    code: str
    field: str
    says: str


def beyond(step: Step, catalog: Catalog, policy: Policy, marks: Marks) -> Iterator[Beyond]:
    """Yield what an agent step must not be let do.

    Args:
        step: The step; one without an envelope has nothing in it.
        catalog: The contracts that its principal sees.
        policy: Its rules about single tools.
        marks: The labels of all that the step may read: those of its output.
    """
    if step.autonomy is None:
        return
    for spec in tools_of(step, catalog):
        field = f"autonomy.tools[{step.autonomy.tools.index(spec.name)}]"
        for code, says in (
            *_effects(step.autonomy, spec),
            *_guards(spec, policy),
            *_sinks(spec, marks),
        ):
            yield Beyond(code, field, says)
    for label in sorted(marks.keys() - {UNTRUSTED, *step.autonomy.labels}):
        says = f"its agent may read {label} data ({_way(marks, label)}), which its labels leave out"
        yield Beyond("outside_envelope", "autonomy.labels", says)


def _effects(envelope: Autonomy, spec: ToolSpec) -> Iterator[tuple[str, str]]:
    if spec.effect.rank > Effect(envelope.ceiling).rank:
        says = f"{spec.name!r} has effect {spec.effect.value!r}, above the ceiling "
        yield "outside_envelope", says + repr(envelope.ceiling)
    if spec.effect.acts:
        yield "not_supported", f"{spec.name!r} acts, and an agent step of this version only reads"


def _guards(spec: ToolSpec, policy: Policy) -> Iterator[tuple[str, str]]:
    """Rules about the place or the arguments of a tool hold for steps, which people see."""
    if any(rule.before == spec.name for rule in policy.requires):
        says = f"policy demands steps around {spec.name!r}, so it has to be a step of its own"
        yield "outside_envelope", says
    if any(rule.tool == spec.name for rule in policy.thresholds):
        says = f"policy looks at the arguments of {spec.name!r}, so it has to be a step of its own"
        yield "outside_envelope", says


def _sinks(spec: ToolSpec, marks: Marks) -> Iterator[tuple[str, str]]:
    for name, rule in spec.arg_rules.items():
        if rule.requires_trusted:
            says = f"{spec.name}.{name} takes trusted values only, and a model would write it"
            yield "untrusted_flow", says
        for label in breaches(rule, marks):
            if label != UNTRUSTED:
                says = f"{label} data may reach {spec.name}.{name}, which is not cleared for it: "
                yield "confidential_flow", says + _way(marks, label)


def _way(marks: Marks, label: str) -> str:
    return " → ".join(".".join((hop.source, *hop.path)) for hop in marks[label].way())
