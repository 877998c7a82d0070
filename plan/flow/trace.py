"""Labels of every value of a plan before anything runs: who may have chosen it, who may see it.

What is tracked is data: references, through models and `for_each`. What a `when` or a precondition
read is not a label of what follows (docs/decisions/0008). A person who confirms a value that is
shown in the question vouches for that value, and for no other, wherever the confirmation is sure to
come first.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from plangate.plan.catalog import UNTRUSTED
from plangate.plan.contract import contract_of, tools_of
from plangate.plan.flow.labels import MEMORY, Output, output_of
from plangate.plan.flow.sure import Sure
from plangate.plan.joins import stand_ins
from plangate.plan.value.refs import Ref, refs_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from plangate.plan.catalog import Catalog
    from plangate.plan.flow.labels import Hop
    from plangate.plan.policy import Policy
    from plangate.plan.value.plan import Plan
    from plangate.plan.value.step import Step

Place: TypeAlias = tuple[str, ...]
"""A step and a path below its output."""


class Trace:
    """The labels of a plan; linear in its steps and references.

    Args:
        plan: The plan.
        catalog: The contracts.
        policy: Its label rules raise what contracts say.
        order: Ids of the steps, each after all it needs.
        given: Outputs that are there already, by step: what they read is not asked of this plan.
    """

    def __init__(
        self,
        plan: Plan,
        catalog: Catalog,
        policy: Policy,
        order: Sequence[str],
        given: Mapping[str, Output] = MappingProxyType({}),
    ) -> None:
        self._shown = _shown(plan)
        asking = dict.fromkeys(step for steps in self._shown.values() for step in steps)
        self._sure = Sure(plan, order, tuple(asking))
        self._confirming = {at: self._sure.bits(steps) for at, steps in self._shown.items()}
        self.outputs: dict[str, Output] = {}
        principals = stand_ins(plan)
        for step in (plan.by_id[step_id] for step_id in order):
            if step.id in given:
                self.outputs[step.id] = given[step.id]
            elif step.question is None:  # what a person answers is that person's own word
                spec = contract_of(step, catalog)
                incoming = [self.read(ref, step) for ref in step.refs]
                incoming += [
                    output_of(each.name, each, policy.labels, ()).read(())
                    for each in tools_of(step, catalog)
                ]
                self.outputs[step.id] = output_of(step.id, spec, policy.labels, incoming)
            if principal := principals.get(step.id):
                self._take_over(principal, step.id)

    def _take_over(self, principal: str, stand_in: str) -> None:
        """Whoever reads a step may read its stand-in: both have their labels on it."""
        other = self.outputs.get(stand_in)
        if other is not None:
            own = self.outputs.get(principal, Output(principal))
            self.outputs[principal] = replace(own, others=(*own.others, other))

    def read(self, ref: Ref, step: Step | None) -> dict[str, Hop]:
        """Return the labels of a value as one step reads it.

        Args:
            ref: The reference.
            step: Who reads it; None: a criterion of the goal, for which nobody vouches.
        """
        meant = unrolled(ref, step)
        if meant is None or meant.source == "user":
            return {}
        if meant.source == "memory":
            return MEMORY.read(meant.path)
        source = self.outputs.get(meant.head)
        marks = {} if source is None else source.read(meant.path)
        if UNTRUSTED in marks and step is not None and self._is_confirmed(meant, step):
            del marks[UNTRUSTED]
        return marks

    def _is_confirmed(self, ref: Ref, step: Step) -> bool:
        """True if there are vouchers: by bits, since a thousand steps may show one value."""
        bits = (self._confirming.get(place, 0) for place in places_of(ref))
        return any(self._sure.holds(step.id, each) for each in bits)

    def vouchers(self, ref: Ref, step: Step) -> list[str]:
        """Return the steps that ask a person to confirm a value before a step reads it."""
        asking = (each for place in places_of(ref) for each in self._shown.get(place, ()))
        return [each for each in asking if self._sure.holds(step.id, self._sure.bits([each]))]


def told(plan: Plan, label: str, way: Hop, sink: str, reader: str) -> str:
    """Say what must not flow where, and by which way it does.

    Args:
        plan: The plan.
        label: What the value carries.
        way: How it came to be read.
        sink: `tool.argument`.
        reader: Id of the step that reads it.
    """
    said = "" if label == UNTRUSTED else ", which is not cleared for it"
    ids = " → ".join((*(hop.source for hop in way.way()), reader))
    return f"{label} data reaches {sink}{said}: {way_of(plan, way)} → {sink} ({ids})"


def way_of(plan: Plan, way: Hop) -> str:
    """Write a way with the names of the tools: `bank_search.memo → extract.account`."""
    return " → ".join(".".join((_name(plan, hop.source), *hop.path)) for hop in way.way())


def _name(plan: Plan, step_id: str) -> str:
    step = plan.by_id.get(step_id)
    return step.tool if step is not None and step.tool is not None else step_id


def places_of(ref: Ref) -> Iterator[Place]:
    """Yield a value and all that it is a part of, the whole output first."""
    return ((ref.head, *ref.path[:end]) for end in range(len(ref.path) + 1))


def shown_places(step: Step) -> Iterator[Place]:
    """Yield each value of an earlier step that a person is asked to confirm here."""
    if step.question is None or step.question.type != "confirm":
        return
    for ref in refs_in(step.question.details):
        if ref.step is not None:
            yield (ref.head, *ref.path)


def _shown(plan: Plan) -> Mapping[Place, list[str]]:
    found: dict[Place, list[str]] = {}
    for step in plan.steps:
        for place in shown_places(step):
            found.setdefault(place, []).append(step.id)
    return found


def unrolled(ref: Ref, step: Step | None) -> Ref | None:
    """Read `item` as what it is: an element of the list that `for_each` names."""
    if ref.source != "item":
        return ref
    each = Ref.parse(step.for_each) if step is not None else None
    return None if each is None else Ref(each.head, (*each.path, *ref.path))
