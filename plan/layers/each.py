"""Layers 1 and 3, loops: a bounded list, and an effect of its own for each element."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from plangate.plan.codes import issue
from plangate.plan.effects import holes
from plangate.plan.joins import is_strict
from plangate.plan.shape.value import Missing
from plangate.plan.value.each import each_of, items_of, uses_item

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plangate.plan.issue import Issue
    from plangate.plan.layers.ground import Ground, LayerCheck
    from plangate.plan.value.frozen import Json
    from plangate.plan.value.refs import Ref
    from plangate.plan.value.step import Step

MAX_ITEMS = 1_000
"""Elements that one step may run over at most: each is approved, recorded and checked by itself."""


def bounded(ground: Ground) -> Iterator[Issue]:
    """A step over a list says how long the list may be; nothing else has a bound."""
    for step in ground.plan.steps:
        most = step.max_items
        if step.for_each is None and most is not None:
            says = f"max_items {most} bounds nothing: the step has no for_each"
            yield issue("bad_max_items", says, step=step.id, field="max_items")
        elif step.for_each is not None and most is None:
            says = f"runs over {step.for_each} without max_items"
            yield issue("no_max_items", says, step=step.id, field="max_items")
        elif most is not None and not 1 <= most <= MAX_ITEMS:
            says = f"max_items is {most}; 1 to {MAX_ITEMS} are possible"
            yield issue("bad_max_items", says, step=step.id, field="max_items")


def over_lists(ground: Ground) -> Iterator[Issue]:
    """`for_each` is a reference to a list, of no more elements than allowed where that is known."""
    for step in ground.plan.steps:
        if step.for_each is not None:
            yield from _list_of(ground, step)


def done_once(ground: Ground) -> Iterator[Issue]:
    """What acts for each element has no stand-in: it would act again for those that are done."""
    for step, spec in ground.calls:
        for at, route in enumerate(step.routes):
            if step.for_each is not None and spec.effect.acts and route.action == "fallback":
                says = "a stand-in for an acting step with for_each cannot be run by this version"
                yield issue("not_supported", says, step=step.id, field=f"routes[{at}]")


def own_effects(ground: Ground) -> Iterator[Issue]:
    """What acts for each element has an identity for each: else all elements are one effect."""
    for step, spec in ground.calls:
        if step.for_each is None or not spec.effect.acts or spec.key is None:
            continue
        if not any(_from_item(hole, step.args) for hole in holes(spec.key)):
            says = (
                f"the effect key {spec.key!r} of {spec.name!r} takes nothing from ${{item}}, "
                "so all elements would be one effect"
            )
            yield issue("one_effect_for_all", says, step=step.id, field="args")


SHAPE: tuple[LayerCheck, ...] = (bounded,)
"""Of layer 1."""

CHECKS: tuple[LayerCheck, ...] = (over_lists, done_once, own_effects)
"""Of layer 3."""


def _list_of(ground: Ground, step: Step) -> Iterator[Issue]:
    ref = each_of(step)
    if ref is None:
        says = f"for_each is {step.for_each!r}, which is not a reference such as ${{S1.lines}}"
        yield issue("not_a_list", says, step=step.id, field="for_each")
        return
    if ref.source in ("item", "memory"):
        says = f"{ref} cannot be used by this version"
        yield issue("not_supported", says, step=step.id, field="for_each")
        return
    source = ground.shapes.inputs if ref.step is None else ground.shapes.output(ref.step)
    if source is None:
        says = f"{ref} refers to {ref.head!r}, which is neither a step nor an input"
        hint = ground.nearest(ref.head, ground.plan.by_id)
        yield issue("unknown_reference", says, step=step.id, field="for_each", hint=hint)
        return
    found = source.at(ref.path)
    if isinstance(found, Missing):
        where = ".".join(filter(None, (ref.head, found.where)))
        says = f"{ref}: {where} has no {found.part!r}"
        hint = ground.nearest(found.part, found.known)
        yield issue("bad_reference_path", says, step=step.id, field="for_each", hint=hint)
    elif found.kind not in ("array", "any"):
        yield issue("not_a_list", f"{ref} is {found}, not a list", step=step.id, field="for_each")
    else:
        yield from _known_list(ground, step, ref, source.gaps(ref.path))


def _known_list(ground: Ground, step: Step, ref: Ref, gaps: tuple[str, ...]) -> Iterator[Issue]:
    items = items_of(step, {"inputs": ground.plan.inputs})
    if not is_strict(step) and ref.step in step.needs:
        says = f"for_each reads {ref.head}, and the join does not wait for {ref.head} to be done"
        yield issue("may_be_missing", says, step=step.id, field="for_each")
    if ref.source == "user" and items is None:
        says = f"{ref} is not a list in the inputs of this goal"
        yield issue("not_a_list", says, step=step.id, field="for_each")
    for gap in gaps if ref.source != "user" else ():
        yield issue("reference_gap", f"{ref}: {gap}", step=step.id, field="for_each")
    count, most = len(items or ()), step.max_items
    if most is not None and count > most:
        says = f"{ref} has {count} elements, more than max_items {most}"
        yield issue("too_many_items", says, step=step.id, field="max_items")


def _from_item(hole: str, args: Mapping[str, Json]) -> bool:
    """True if what stands in a hole of the key template comes from the element."""
    head, *path = hole.split(".")
    here: Json = args.get(head)
    for part in path:
        if not isinstance(here, Mapping):
            break
        here = here.get(part)
    return uses_item(here)
