"""What is known of a value, and how that goes with it from step to step; labels only ever gather.

The output of a step carries what its contract and the policy say of it, and the labels of all that
went in but for those that the contract promises to remove. One propagation serves the check of a
plan (`plangate.plan.flow.trace`) and the look at real values before a call
(`plangate.engine.labels`). What only *decided* whether a step runs leaves no label on its output.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from plangate.plan.catalog import UNTRUSTED

if TYPE_CHECKING:
    from plangate.plan.catalog import ArgRule, Labels, ToolSpec
    from plangate.plan.policy_rules import LabelRule


class Hop(NamedTuple):
    """Where a labelled value was read, and how the label came there."""

    source: str
    """Id of the step whose output was read, or `memory`."""

    path: tuple[str, ...]
    """Below that output."""

    before: Hop | None = None
    """How the label came into the source; None: its contract or the policy put it there."""

    first: Hop | None = None
    """Where the way began; None: here."""

    def onward(self, source: str, path: tuple[str, ...]) -> Hop:
        """Return the hop that follows this one."""
        return Hop(source, path, self, self.first or self)

    def way(self) -> tuple[Hop, ...]:
        """Return the hops, first one first; of a long way the first and the last ones."""
        hops, here = [self], self.before
        while here is not None and len(hops) < _MOST_HOPS:
            hops.append(here)
            here = here.before
        if here is not None:
            hops[-1:] = [Hop("…", ()), self.first or self]
        return tuple(reversed(hops))


_MOST_HOPS = 8

Marks: TypeAlias = Mapping[str, Hop]
"""Labels of a value that was read, each with the way that it came."""


class Mark(NamedTuple):
    """A label that stands on an output, or on one field of it."""

    field: tuple[str, ...]
    """Empty: on all of it."""

    label: str


@dataclass(frozen=True, slots=True)
class Output:
    """The output of one step, with all labels that are on it."""

    source: str
    own: tuple[Mark, ...] = ()
    gathered: Marks | None = None
    """What went in and was not removed."""

    others: tuple[Output, ...] = ()
    """Outputs of stand-ins, any of which may be read in place of this one."""

    def read(self, path: tuple[str, ...]) -> dict[str, Hop]:
        """Return the labels of the value at a path: its own, and of all that it holds."""
        names = [part for part in path if not part.isdecimal()]
        found = {
            mark.label: Hop(self.source, path)
            for mark in self.own
            if all(one == other for one, other in zip(names, mark.field, strict=False))
        }
        for label, way in (self.gathered or {}).items():
            found.setdefault(label, way.onward(self.source, path))
        for other in self.others:
            found = {**other.read(path), **found}
        return found


MEMORY = Output("memory", (Mark((), UNTRUSTED),))
"""A recorded fact: nobody knows any more who chose it."""


def output_of(
    step: str, spec: ToolSpec | None, raised: Iterable[LabelRule], incoming: Iterable[Marks]
) -> Output:
    """Return the labelled output of a step.

    Args:
        step: Its id.
        spec: The contract of its tool; None: an unknown tool, which removes nothing.
        raised: Label rules of the policy; those for other tools change nothing.
        incoming: The labels of each value that it reads.
    """
    removed = frozenset(spec.sanitises) if spec is not None else frozenset()
    gathered: dict[str, Hop] = {}
    for marks in incoming:
        for label, way in marks.items():
            if label not in removed:
                gathered.setdefault(label, way)
    own = () if spec is None else tuple(dict.fromkeys(_own(spec, raised)))
    return Output(step, own, gathered)


def breaches(rule: ArgRule, marks: Marks) -> Iterator[str]:
    """Yield each label that an argument must not carry."""
    if rule.requires_trusted and UNTRUSTED in marks:
        yield UNTRUSTED
    if rule.max_confidentiality is not None:
        yield from sorted(marks.keys() - {*rule.max_confidentiality, UNTRUSTED})


def _own(spec: ToolSpec, raised: Iterable[LabelRule]) -> Iterator[Mark]:
    yield from _marks("", spec.labels)
    for field, labels in spec.field_labels.items():
        yield from _marks(field, labels)
    for rule in raised:
        if rule.tool == spec.name:
            yield from _marks(rule.field, rule)


def _marks(field: str, labels: Labels | LabelRule) -> Iterator[Mark]:
    path = tuple(field.split(".")) if field else ()
    if labels.integrity == UNTRUSTED:
        yield Mark(path, UNTRUSTED)
    yield from (Mark(path, label) for label in labels.confidentiality)
