"""Layer 3, arguments: each fits its tool, has a type all the way, and comes from somewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plangate.plan.codes import issue
from plangate.plan.contract import RESERVED
from plangate.plan.joins import is_strict
from plangate.plan.layers.ground import Ground, Use, dotted
from plangate.plan.secrets import secret_in
from plangate.plan.shape.misfit import shown
from plangate.plan.shape.shape import compile_shape
from plangate.plan.shape.value import ANY, Missing, Shape
from plangate.plan.value.each import each_of, items_of
from plangate.plan.value.equal import equal
from plangate.plan.value.refs import Ref, leaves

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plangate.plan.issue import Issue
    from plangate.plan.layers.ground import LayerCheck
    from plangate.plan.value.frozen import Json

_CODES = {
    "missing": "missing_argument",
    "surplus": "surplus_argument",
    "type": "wrong_type",
    "range": "out_of_range",
}


def inputs_fit(ground: Ground) -> Iterator[Issue]:
    """The inputs are what their schema promises to every reference."""
    if ground.plan.input_schema is not None:
        for misfit in ground.shapes.inputs.accepts(ground.plan.inputs):
            field = dotted("inputs", (misfit.path,))
            yield issue("bad_input", f"{field} {misfit.says}", field=field)


def arguments_fit(ground: Ground) -> Iterator[Issue]:
    """Each literal argument is accepted by the tool's schema, and none is missing or spare."""
    for site in ground.sites:
        if site.spec is None:
            continue
        params = compile_shape(site.spec.params)
        for misfit in params.accepts(site.args, hole=_is_reference):
            field = f"{site.prefix}args.{misfit.path}"
            says = f"argument {misfit.path!r} of {site.tool!r} {misfit.says}"
            yield issue(_CODES[misfit.kind], says, step=site.id, field=field)
        for name in site.args:
            if params.child(name) is None and not params.closed:
                says = f"{site.tool!r} has no argument {name!r}"
                field, hint = f"{site.prefix}args.{name}", ground.nearest(name, params.fields)
                yield issue("surplus_argument", says, step=site.id, field=field, hint=hint)


def whole_references(ground: Ground) -> Iterator[Issue]:
    """A reference fills a whole value or none of it."""
    refs = {(use.step, use.field) for use in ground.uses}
    for each in ground.values:
        text = each.value
        if isinstance(text, str) and "${" in text and (each.step, each.field) not in refs:
            says = f"{shown(text)} holds a reference inside a longer string"
            yield issue("embedded_reference", says, step=each.step, field=each.field)


def references_fit(ground: Ground) -> Iterator[Issue]:
    """Each reference leads to a value of the type that its argument takes."""
    for use in ground.uses:
        found = _target(ground, use)
        if isinstance(found, Shape):
            yield from _typed(ground, use, found)
        else:
            yield found


def joins_leave_enough(ground: Ground) -> Iterator[Issue]:
    """What a call cannot do without comes from a step that is done by then."""
    for use in ground.uses:
        site = use.site
        if site is None or site.step is None or site.prefix or site.spec is None or not use.path:
            continue
        open_ended = not is_strict(site.step) and use.ref.step in site.step.needs
        if open_ended and use.path[0] in compile_shape(site.spec.params).required:
            says = f"argument {use.path[0]!r} reads {use.ref.head}, and the join does not wait for "
            says += f"{use.ref.head} to be done"
            yield issue("may_be_missing", says, step=use.step, field=use.field)


def checked_shapes(ground: Ground) -> Iterator[Issue]:
    """What a tool takes can be checked; once for each tool."""
    seen: set[str] = set()
    for site in ground.sites:
        if site.spec is None or site.tool in {
            *seen,
            *RESERVED,
        }:  # models read anything
            continue
        seen.add(site.tool)
        for why in compile_shape(site.spec.params).unchecked:
            says = f"arguments of {site.tool!r} are not fully checked: {why}"
            field = f"{site.prefix}tool"
            yield issue("unchecked_shape", says, step=site.id, field=field, severity=site.severity)


def sourced(ground: Ground) -> Iterator[Issue]:
    """No literal is invented: it stands in inputs, policy, schema, or an accepted version."""
    if ground.plan.author.kind == "template":
        return
    known = {_key(value) for _, value in leaves(ground.plan.inputs)}
    known |= {_key(value) for value in (*ground.facts.policy.constants, *ground.sourced)}
    for each in ground.values:
        spec = each.site.spec if each.site else None
        if spec is None or not _is_literal(each.value) or _key(each.value) in known:
            continue
        if not _said(compile_shape(spec.params), each.path, each.value):
            says = f"{shown(each.value)} has no source: no input, constant or earlier output"
            severity = each.site.severity if each.site else None
            yield issue(
                "unsourced_argument", says, step=each.step, field=each.field, severity=severity
            )


def no_secrets(ground: Ground) -> Iterator[Issue]:
    """Nothing in the plan is a secret: it is stored and shown exactly as it is."""
    if where := secret_in(ground.plan.model_dump(mode="json", exclude={"steps"})):
        yield issue("secret_in_plan", f"{where} holds what looks like a secret", field=where)
    for step in ground.plan.steps:
        if where := secret_in(step.model_dump(mode="json")):
            says = f"{where} holds what looks like a secret"
            yield issue("secret_in_plan", says, step=step.id, field=where)


CHECKS: tuple[LayerCheck, ...] = (
    inputs_fit,
    arguments_fit,
    whole_references,
    references_fit,
    joins_leave_enough,
    checked_shapes,
    sourced,
    no_secrets,
)


def _target(ground: Ground, use: Use) -> Shape | Issue:
    """Return the shape of what a reference gives, or what is wrong with the reference."""
    if (wrong := _unusable(ground, use)) is not None:
        return wrong
    ref, output = use.ref, _source(ground, use)
    if output is None:
        return ANY  # what is wrong with the list was said of for_each
    found = output.at(ref.path)
    if isinstance(found, Missing):
        where = ".".join(filter(None, (ref.head, found.where)))
        says = f"{ref}: {where} has no {found.part!r}"
        hint = ground.nearest(found.part, found.known)
        return issue("bad_reference_path", says, step=use.step, field=use.field, hint=hint)
    return found


def _unusable(ground: Ground, use: Use) -> Issue | None:
    """Say why nothing stands where a reference begins; None: something does."""
    ref = use.ref
    if ref.source == "memory":
        says = f"{ref} cannot be used by this version"
        return issue("not_supported", says, step=use.step, field=use.field)
    if ref.source == "item" and _loop(ground, use) is None:
        says = f"{ref} is an element of for_each, which {use.step or 'the goal'} does not have"
        hint = "Add for_each and max_items to the step, or refer to a step or an input."
        return issue("unknown_reference", says, step=use.step, field=use.field, hint=hint)
    if ref.step is not None and ref.step not in ground.plan.by_id:
        says = f"{ref} refers to {ref.head!r}, which is neither a step nor an input"
        hint = ground.nearest(ref.head, ground.plan.by_id)
        return issue("unknown_reference", says, step=use.step, field=use.field, hint=hint)
    if not _settled(ground, use):
        says = f"{ref} is read by a check of {use.step!r}, which does not wait for {ref.head!r}"
        return issue("not_ancestor", says, step=use.step, field=use.field)
    return None


def _source(ground: Ground, use: Use) -> Shape | None:
    """Return the shape of what stands under the head of a reference, as its reader sees it."""
    head = use.ref.step
    if use.ref.source == "item":
        return ground.shapes.item(use.step)
    if head is None:
        return ground.shapes.inputs
    # A check of a step over a list looks at the result of one element.
    return ground.shapes.call(head) if head == use.step else ground.shapes.output(head)


def _loop(ground: Ground, use: Use) -> Ref | None:
    return each_of(ground.plan.by_id.get(use.step or ""))


def _settled(ground: Ground, use: Use) -> bool:
    step, site, head = use.step, use.site, use.ref.step
    if head is None or step is None or site is None or not site.prefix or ground.cyclic:
        return True  # a step waits for what its own arguments read
    return head == step or head in ground.shapes.ancestors.get(step, ())


def _typed(ground: Ground, use: Use, found: Shape) -> Iterator[Issue]:
    if use.site is None or use.site.spec is None:
        return
    wanted = compile_shape(use.site.spec.params).at(use.path)
    if isinstance(wanted, Missing):
        return  # reported as surplus
    if (given := _of_user(ground, use)) is None:
        yield from _output_fits(ground, use, found, wanted)
        return
    for ref in given:
        faults = list(_input_fits(ground, use._replace(ref=ref), wanted))
        yield from faults
        if faults:
            return  # the first element that does not fit stands for all


def _output_fits(ground: Ground, use: Use, found: Shape, wanted: Shape) -> Iterator[Issue]:
    if clash := wanted.clash(found):
        says = f"{use.ref} {clash}" if " " in clash else f"{use.ref}: {clash}"
        yield issue("reference_type", says, step=use.step, field=use.field)
        return
    output = _source(ground, use)
    gaps = list(output.gaps(use.ref.path) if output else ())
    gaps += [reason] if (reason := wanted.admits(found)) else []
    for gap in gaps:
        yield issue("reference_gap", f"{use.ref}: {gap}", step=use.step, field=use.field)
    severity = None if use.site is None else use.site.severity
    if found.unchecked and _is_known(ground, use):
        says = f"{use.ref} has no fully known type: {found.unchecked[0]}"
        yield issue("unchecked_shape", says, step=use.step, field=use.field, severity=severity)


def _input_fits(ground: Ground, use: Use, wanted: Shape) -> Iterator[Issue]:
    try:
        value = use.ref.resolve({"inputs": ground.plan.inputs})
    except KeyError:
        says = f"{use.ref} is allowed by the input schema, but this goal does not give it"
        yield issue("reference_gap", says, step=use.step, field=use.field, severity="error")
        return
    for misfit in wanted.accepts(value):
        code = "out_of_range" if misfit.kind == "range" else "reference_type"
        place = f" at {misfit.path}" if misfit.path else ""
        yield issue(code, f"{use.ref}{place} {misfit.says}", step=use.step, field=use.field)


def _of_user(ground: Ground, use: Use) -> list[Ref] | None:
    """Return what a reference may be, where the user gave it: each element of a list of theirs."""
    if use.ref.source == "user":
        return [use.ref]
    each = _loop(ground, use) if use.ref.source == "item" else None
    if each is None or each.source != "user":
        return None
    items = items_of(ground.plan.by_id[use.step or ""], {"inputs": ground.plan.inputs}) or ()
    return [Ref(each.head, (*each.path, str(at), *use.ref.path)) for at in range(len(items))]


def _is_known(ground: Ground, use: Use) -> bool:
    each = _loop(ground, use) if use.ref.source == "item" else None
    step = ground.plan.by_id.get((each or use.ref).head)
    tool = None if step is None else step.tool
    return tool is None or tool in ground.facts.catalog.tools


def _is_reference(value: Json) -> bool:
    return isinstance(value, str) and value.startswith("${") and Ref.parse(value) is not None


def _is_literal(value: Json) -> bool:
    return value is not None and not (isinstance(value, str) and "${" in value)


def _said(params: Shape, path: tuple[str, ...], value: Json) -> bool:
    """True if the tool's schema itself names the value (or has no such argument)."""
    shape = params.at(path)
    if isinstance(shape, Missing):
        return True
    return any(equal(value, each) for each in (*shape.enum, *shape.default))


def _key(value: Json) -> tuple[bool, Json]:
    return isinstance(value, bool), value  # in Python true is equal to 1
