"""Layer 5, information flow: untrusted or confidential data stays out of arguments that forbid it.

Labels are those that tools declare for their outputs. A tool without any effect only computes, so
what comes out of it carries the labels of what went in; a person's answer carries none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from plangate.plan.catalog import Effect
from plangate.plan.codes import issue

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from plangate.plan.catalog import ArgRule, ToolSpec
    from plangate.plan.issue import Issue
    from plangate.plan.layers.ground import Ground, LayerCheck, Use

_UNTRUSTED = "untrusted"

Trail = tuple[str, ...]
"""Ids of steps from where a label was declared to where the value is read."""


class Sink(NamedTuple):
    """An argument with a rule, and a reference that fills it."""

    use: Use
    tool: str
    rule: ArgRule
    labels: Mapping[str, Trail]


def trusted(ground: Ground) -> Iterator[Issue]:
    """What must be trusted is not chosen by whoever wrote the data that we read."""
    for sink in _sinks(ground):
        trail = sink.labels.get(_UNTRUSTED)
        if sink.rule.requires_trusted and trail:
            says = f"untrusted data reaches {_end(sink)}: {_path(ground, trail, sink)}"
            yield issue("untrusted_flow", says, step=sink.use.step, field=sink.use.field)


def confidential(ground: Ground) -> Iterator[Issue]:
    """What is confidential goes only where it may."""
    for sink in _sinks(ground):
        cleared = sink.rule.max_confidentiality
        if cleared is None:
            continue
        for label in sorted(sink.labels.keys() - {*cleared, _UNTRUSTED}):
            path = _path(ground, sink.labels[label], sink)
            says = f"{label} data reaches {_end(sink)}, which is not cleared for it: {path}"
            yield issue("confidential_flow", says, step=sink.use.step, field=sink.use.field)


CHECKS: tuple[LayerCheck, ...] = (trusted, confidential)


def _sinks(ground: Ground) -> Iterator[Sink]:
    if not any(site.spec and site.spec.arg_rules for site in ground.sites):
        return
    labels = _labels(ground)
    for use in ground.uses:
        spec = use.site.spec if use.site else None
        rule = spec.arg_rules.get(use.path[0]) if spec and use.path else None
        if spec is not None and rule is not None:
            yield Sink(use, spec.name, rule, labels.get(use.ref.head, {}))


def _labels(ground: Ground) -> Mapping[str, Mapping[str, Trail]]:
    """Return, for each step, the labels of its output, each with the way that it came."""
    specs = {step.id: spec for step, spec in ground.calls}
    found: dict[str, dict[str, Trail]] = {}
    for step in ground.order:
        spec = specs.get(step)
        found[step] = {} if spec is None else _declared(step, spec)
        if spec is not None and spec.effect is Effect.NONE:
            for need in sorted(ground.plan.by_id[step].data_needs & found.keys()):
                for label, trail in found[need].items():
                    found[step].setdefault(label, (*trail, step))
    return found


def _declared(step: str, spec: ToolSpec) -> dict[str, Trail]:
    untrusted = (_UNTRUSTED,) if spec.labels.integrity == _UNTRUSTED else ()
    return dict.fromkeys((*spec.labels.confidentiality, *untrusted), (step,))


def _path(ground: Ground, trail: Trail, sink: Sink) -> str:
    steps = [f"{step} ({ground.plan.by_id[step].capability})" for step in trail]
    return " → ".join([*steps, f"{sink.use.ref} → {sink.use.step or 'goal'} {sink.use.field}"])


def _end(sink: Sink) -> str:
    return f"argument {sink.use.path[0]!r} of {sink.tool!r}"
