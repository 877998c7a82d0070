"""Which names a rule or a reference may see at a step, and the shape of each.

Before a step runs, its conditions see the steps it waits for. Its own checks also see `result`,
`observed` and the step itself. What is judged for the whole plan (success criteria, abort and
replan conditions, constraints) sees every step.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property, lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Literal, get_args

from plangate.plan.outcome import StepStatus
from plangate.plan.schedule import ancestors
from plangate.plan.shape.identity import Identity
from plangate.plan.shape.shape import compile_shape, unchecked
from plangate.plan.shape.value import ANY, Bounds, Missing, Shape, infer, object_of
from plangate.plan.value.each import each_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from plangate.plan.catalog import Catalog
    from plangate.plan.schedule import AncestorSet
    from plangate.plan.value.plan import Plan
    from plangate.plan.value.step import Step

_TEXT, _BOOL = Shape(kind="string"), Shape(kind="boolean")
_WHOLE, _NUMBER = Shape(kind="integer"), Shape(kind="number")
_STATUS = Shape(kind="string", enum=get_args(StepStatus))


def _record(**fields: Shape) -> Shape:
    return object_of(fields, required=fields, closed=True)


RUN = _record(spent_usd=_NUMBER, elapsed_s=_NUMBER, failures=_WHOLE, replans=_WHOLE)
"""What a rule may know of the run so far."""

_ANSWERS: Mapping[str, Shape] = {
    "confirm": _record(confirmed=_BOOL, by=_TEXT),
    "choice": _record(answer=_TEXT, by=_TEXT),
    "text": _record(answer=_TEXT, by=_TEXT),
    "number": _record(answer=_NUMBER, by=_TEXT),
}
_NEAR_LIMIT = 500


def output_shape(step: Step, catalog: Catalog) -> Shape:
    """Return the shape of what a step will give: of one over a list, the list of its results."""
    one = call_shape(step, catalog)
    if step.for_each is None or step.tool is None:
        return one
    inside = tuple(f"elements: {text}" for text in one.unchecked)
    bounds = Bounds(longest=step.max_items)
    return Shape(kind="array", items=one, bounds=bounds, unchecked=inside)


def call_shape(step: Step, catalog: Catalog) -> Shape:
    """Return the shape of what one call gives; an unchecked one where the tool is not known."""
    if step.question is not None:
        return _ANSWERS[step.question.type]
    if step.tool is not None:
        spec = catalog.tools.get(step.tool)
        return compile_shape(spec.output) if spec else unchecked(f"no tool named {step.tool!r}")
    return compile_shape(step.output) if step.output is not None else ANY


def near(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return the known names that a misspelt one may mean, best first; never a substitute."""
    among = list(known)
    return tuple(get_close_matches(name, among, 3, 0.6)) if len(among) <= _NEAR_LIMIT else ()


def did_you_mean(name: str, known: Iterable[str], what: str = "Known") -> str:
    """Return a hint: the nearest of the known names, or the first of them.

    No more than some hundred are looked at: a plan full of inventions must stay quick to check.
    """
    among = list(islice(known, _NEAR_LIMIT + 1))
    if close := near(name, among):
        return f"Did you mean {' or '.join(close)}?"
    if not among:
        return f"{what}: none."
    return f"{what}: {', '.join(among[:8])}{', …' if len(among) > 8 else ''}."  # noqa: PLR2004


class PlanShapes:
    """The shapes of everything that one plan names; each is looked up once."""

    def __init__(self, plan: Plan, catalog: Catalog) -> None:
        self.plan = plan
        self.catalog = catalog
        self._outputs: dict[str, Shape] = {}

    @cached_property
    def inputs(self) -> Shape:
        """The declared schema of the inputs, else what their values show."""
        schema = self.plan.input_schema
        return infer(self.plan.inputs) if schema is None else compile_shape(schema)

    @cached_property
    def ancestors(self) -> Mapping[str, AncestorSet]:
        """For each step, the steps that settle before it."""
        return ancestors(self.plan)

    def output(self, step: str) -> Shape | None:
        """Return the shape of a step's output; None where the plan has no such step."""
        if step not in self._outputs:
            found = self.plan.by_id.get(step)
            if found is None:
                return None
            self._outputs[step] = output_shape(found, self.catalog)
        return self._outputs[step]

    def call(self, step: str) -> Shape | None:
        """Return the shape of what one call of a step gives; None where there is no such step."""
        found = self.plan.by_id.get(step)
        return None if found is None else call_shape(found, self.catalog)

    def item(self, step: str | None) -> Shape | None:
        """Return the shape of `${item}` in a step; None where the step runs over no list."""
        ref = each_of(self.plan.by_id.get(step or ""))
        source = None if ref is None else self.inputs if ref.step is None else self.output(ref.head)
        found = None if source is None or ref is None else source.at(ref.path)
        return None if found is None or isinstance(found, Missing) else found.child("0")


@dataclass(frozen=True, slots=True)
class RuleFault:
    """What is wrong with a rule."""

    says: str
    hint: str = ""
    code: Literal["bad_rule", "not_ancestor"] = "bad_rule"


@dataclass(frozen=True, slots=True)
class RuleScope:
    """The names that one rule may use."""

    shapes: PlanShapes
    heads: Mapping[str, Shape]
    """All but `steps`."""

    step: str | None = None
    own: bool = False
    """True if the rule is judged after its own step has run."""

    absent: Mapping[str, str] = field(default_factory=dict)
    """Names that exist elsewhere, and why not here."""

    def find(self, parts: Sequence[str]) -> Shape | RuleFault:
        """Return the shape under a dotted name."""
        head = parts[0]
        if head == "steps":
            return self._step(parts)
        if head in self.heads:
            return _at(self.heads[head], parts, 1)
        why = self.absent.get(head, "")
        says = f"{head!r} is {why}" if why else f"{head!r} is not a name that a rule can use"
        return RuleFault(says, did_you_mean(head, ("steps", *self.heads), "Known here"))

    def _step(self, parts: Sequence[str]) -> Shape | RuleFault:
        step = parts[1] if len(parts) > 1 else "<id>"
        output = self.shapes.output(step)
        if output is None and len(parts) > 1:
            known = did_you_mean(step, (each.id for each in self.shapes.plan.steps), "Steps")
            return RuleFault(f"there is no step {step!r} in this plan", known)
        if fault := self._unsettled(step):
            return fault
        tail = tuple(parts[2:])
        if output is not None and tail[:1] == ("output",):
            return _at(output, parts, 3)
        if tail == ("status",):
            return _STATUS
        hint = f"Write steps.{step}.output.<field> or steps.{step}.status."
        return RuleFault(f"{'.'.join(parts)!r} names no value of a step", hint)

    def _unsettled(self, step: str) -> RuleFault | None:
        here = self.step
        if here is None or step not in self.shapes.plan.by_id:
            return None
        if step == here:
            says = f"step {step!r} has not run yet when this is judged"
            return None if self.own else RuleFault(says)
        if step in self.shapes.ancestors.get(here, ()):
            return None
        return RuleFault(
            f"step {step!r} need not have settled when this is judged",
            f"Add {step!r} to `after` of {here!r}, or leave it out of the rule.",
            "not_ancestor",
        )


def rule_scope(
    plan: Plan, catalog: Catalog, *, step: str | None, observed: str | None, before: bool = False
) -> RuleScope:
    """Return the names that a rule sees, for validation and for the run alike.

    Args:
        plan: The plan; kept by a small cache, by identity.
        catalog: The contracts that type its outputs.
        step: The step whose check or condition it is; None for rules about the whole plan.
        observed: Name of the tool whose output is `observed`; None: there is none.
        before: True for `when`, preconditions and joins, which are judged before the step runs.
    """
    shapes = plan_shapes(plan, catalog)
    heads = {"inputs": shapes.inputs, "run": RUN, "facts": ANY}
    absent = {"observed": "not there: the check names no tool"}
    own = step is not None and not before
    result = shapes.call(step) if own and step is not None else None
    if result is not None:
        heads["result"] = result
    else:
        absent["result"] = "there only in the checks of a step"
    if observed is not None:
        spec = catalog.tools.get(observed)
        heads["observed"] = compile_shape(spec.output) if spec else ANY
    # A check of one element is judged before the list of them is there.
    own = own and each_of(plan.by_id.get(step or "")) is None
    return RuleScope(shapes, heads, step, own, absent)


def plan_shapes(plan: Plan, catalog: Catalog) -> PlanShapes:
    """Return the shapes of a plan against a catalog, from a small cache."""
    return _shapes(Identity(plan), Identity(catalog))


@lru_cache(maxsize=16)
def _shapes(plan: Identity[Plan], catalog: Identity[Catalog]) -> PlanShapes:
    return PlanShapes(plan.value, catalog.value)


def _at(shape: Shape, parts: Sequence[str], start: int) -> Shape | RuleFault:
    found = shape.at(parts[start:])
    if not isinstance(found, Missing):
        return found
    where = ".".join(part for part in (*parts[:start], found.where) if part)
    hint = did_you_mean(found.part, found.known, f"Fields of {where}")
    return RuleFault(f"{'.'.join(parts)!r}: {where} has no {found.part!r}", hint)
