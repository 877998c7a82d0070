"""Layer 5, information flow: untrusted or confidential data stays out of arguments that forbid it.

The labels are those of `plangate.plan.flow`. A refusal names the way of the value, step by step:
`bank_search.memo → extract.account → pay.to`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from plangate.plan.catalog import UNTRUSTED
from plangate.plan.codes import issue
from plangate.plan.flow.labels import breaches
from plangate.plan.flow.trace import Trace, told, way_of
from plangate.plan.shape.tokens import tokens_of
from plangate.plan.value.refs import Ref

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plangate.plan.flow.labels import Hop, Marks
    from plangate.plan.issue import Issue
    from plangate.plan.layers.ground import Ground, LayerCheck, Use
    from plangate.plan.value.plan import Plan


class Sink(NamedTuple):
    """A labelled value that reaches an argument which does not allow it."""

    use: Use
    label: str
    way: Hop


def flows(ground: Ground) -> Iterator[Issue]:
    """No value reaches an argument whose rule forbids one of its labels."""
    if any(site.acts or (site.spec and site.spec.arg_rules) for site in ground.sites):
        facts = ground.facts
        trace = Trace(ground.plan, facts.catalog, facts.policy, ground.order)
        yield from _sinks(ground, trace)
        yield from _conditions(ground, trace)


CHECKS: tuple[LayerCheck, ...] = (flows,)


def _sinks(ground: Ground, trace: Trace) -> Iterator[Issue]:
    for use in ground.uses:
        for sink in _breaches(trace, use):
            yield _refusal(ground.plan, sink)


def _conditions(ground: Ground, trace: Trace) -> Iterator[Issue]:
    """Whether something acts is better not decided by what an outsider wrote; a note, no more."""
    for step, spec in ground.calls:
        rules = (("when", step.when), *_numbered(step.preconditions))
        for field, rule in rules if spec.effect.acts else ():
            for ref in _read_by(rule):
                if UNTRUSTED in (marks := trace.read(ref, step)):
                    way = way_of(ground.plan, marks[UNTRUSTED])
                    says = f"whether {spec.name!r} runs is decided by untrusted data: {way}"
                    yield issue("untrusted_condition", says, step=step.id, field=field)


def _breaches(trace: Trace, use: Use) -> Iterator[Sink]:
    spec = use.site.spec if use.site is not None else None
    rule = spec.arg_rules.get(use.path[0]) if spec is not None and use.path else None
    if rule is None or use.site is None:
        return
    marks: Marks = trace.read(use.ref, use.site.step)
    for label in breaches(rule, marks):
        yield Sink(use, label, marks[label])


def _refusal(plan: Plan, sink: Sink) -> Issue:
    use, code = sink.use, "untrusted_flow" if sink.label == UNTRUSTED else "confidential_flow"
    tool = use.site.tool if use.site is not None else ""
    says = told(plan, sink.label, sink.way, f"{tool}.{use.path[0]}", use.step or "goal")
    return issue(code, says, step=use.step, field=use.field)


def _numbered(rules: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    return ((f"preconditions[{at}]", rule) for at, rule in enumerate(rules))


def _read_by(rule: str | None) -> Iterator[Ref]:
    tokens = tokens_of(rule or "")
    for at in range(tokens.size):
        chain = tokens.chain_at(at)
        if chain is not None and chain.parts[0] == "steps" and chain.parts[2:3] == ("output",):
            yield Ref(chain.parts[1], chain.parts[3:])
