"""What all checks look at: the plan, the facts, and what follows from both, worked out once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from plangate.plan.contract import RESERVED, contract_of
from plangate.plan.joins import waits
from plangate.plan.schedule import order
from plangate.plan.shape.scope import did_you_mean, plan_shapes
from plangate.plan.shape.tokens import steps_in
from plangate.plan.value.refs import Ref, leaves

if TYPE_CHECKING:
    from plangate.plan.catalog import ToolSpec
    from plangate.plan.code import Severity
    from plangate.plan.facts import Facts
    from plangate.plan.issue import Issue
    from plangate.plan.shape.scope import PlanShapes
    from plangate.plan.value.frozen import Json
    from plangate.plan.value.plan import Plan
    from plangate.plan.value.step import Check, Step

_NEAREST_LOOKUPS = 100


@dataclass(frozen=True, slots=True)
class Site:
    """A place in the plan where a tool, a model or an agent is called: a step, or a check."""

    step: Step | None
    """None: a success criterion."""

    tool: str
    spec: ToolSpec | None
    """None: no such tool for this principal."""

    args: Mapping[str, Json]
    prefix: str = ""
    """Field of the check, as `success[0].`; empty for the step's own call."""

    @property
    def id(self) -> str | None:
        """Id of the step."""
        return self.step.id if self.step else None

    @property
    def acts(self) -> bool:
        """True if the call changes the world."""
        return self.spec is not None and self.spec.effect.acts

    @property
    def severity(self) -> Severity | None:
        """Of a doubt about what goes in: an error where the call acts, else the code's own."""
        return "error" if self.acts else None


class Value(NamedTuple):
    """A literal or a reference, and where it stands."""

    site: Site | None
    """None: in what a person is shown."""

    step: str | None
    field: str
    path: tuple[str, ...]
    """Below the arguments."""

    value: Json


class Use(NamedTuple):
    """A reference, and where it stands; as `Value`."""

    site: Site | None
    step: str | None
    field: str
    path: tuple[str, ...]
    ref: Ref


class Ground:
    """A plan and its facts, with everything that more than one check needs."""

    def __init__(self, plan: Plan, facts: Facts, sourced: Collection[Json] = ()) -> None:
        self.plan = plan
        self.facts = facts
        self.sourced = sourced
        self._lookups_left = _NEAREST_LOOKUPS
        self.read_by = cache(steps_in)
        """By rule, the ids of the steps that it reads. Its own cache: a plan with more rules than a
        common one holds would go round in that and never find anything."""

    @cached_property
    def shapes(self) -> PlanShapes:
        """Shapes of inputs and outputs."""
        return plan_shapes(self.plan, self.facts.catalog)

    @cached_property
    def order(self) -> tuple[str, ...]:
        """Ids in order of release, without those on a cycle or behind one."""
        return order(self.plan)

    @property
    def cyclic(self) -> bool:
        """True if some step waits for itself."""
        return len(self.order) < len(self.plan.by_id)

    @property
    def ambiguous(self) -> bool:
        """True if two steps share an id."""
        return len(self.plan.by_id) < len(self.plan.steps)

    @cached_property
    def needs(self) -> Mapping[str, frozenset[str]]:
        """For each step, what it waits for; not all of it need exist."""
        return waits(self.plan)

    def mask(self, steps: Iterable[str]) -> int:
        """Return the bits of some steps, to be compared with `ancestors[...].bits`."""
        bits = bytearray(len(self._position) // 8 + 1)
        for step in steps:
            at = self._position.get(step)
            if at is not None:
                bits[at // 8] |= 1 << at % 8
        return int.from_bytes(bits, "little")

    def holds(self, bits: int, step: str) -> bool:
        """True if a step is among those of a mask."""
        at = self._position.get(step)
        return at is not None and bool(bits >> at & 1)

    @cached_property
    def _position(self) -> Mapping[str, int]:
        return next((each.position for each in self.shapes.ancestors.values()), {})

    @cached_property
    def sites(self) -> tuple[Site, ...]:
        """Each call, in order of the plan."""
        return tuple(self._sites())

    @cached_property
    def calls(self) -> tuple[tuple[Step, ToolSpec], ...]:
        """The steps that call something known, with its contract."""
        return tuple((site.step, site.spec) for site in self.sites if _is_call(site))  # type: ignore[misc]

    @cached_property
    def values(self) -> tuple[Value, ...]:
        """Each value that holds no others, in arguments, checks and questions."""
        return tuple(self._values())

    @cached_property
    def uses(self) -> tuple[Use, ...]:
        """Each reference among them."""
        return tuple(
            Use(each.site, each.step, each.field, each.path, ref)
            for each in self.values
            if (ref := _ref(each.value)) is not None
        )

    def nearest(self, name: str, known: Collection[str]) -> str:
        """Return a hint with the nearest known names; after many lookups, nothing.

        Likeness is dear to compute; a plan full of inventions must not make validation slow.
        """
        self._lookups_left -= 1
        return did_you_mean(name, known) if self._lookups_left >= 0 else ""

    def _sites(self) -> Iterator[Site]:
        for step in self.plan.steps:
            if step.tool is not None or step.kind in RESERVED:
                spec = contract_of(step, self.facts.catalog)
                yield Site(step, step.tool or step.kind, spec, step.args)
            yield from self._check_sites(step, step.success, "success")
        yield from self._check_sites(None, self.plan.success_criteria, "success_criteria")

    def _check_sites(
        self, step: Step | None, checks: Sequence[Check], field: str
    ) -> Iterator[Site]:
        for at, check in enumerate(checks):
            if check.tool is not None:
                spec = self.facts.catalog.tools.get(check.tool)
                yield Site(step, check.tool, spec, check.args, f"{field}[{at}].")

    def _values(self) -> Iterator[Value]:
        for site in self.sites:
            for path, value in leaves(site.args):
                yield Value(site, site.id, site.prefix + dotted("args", path), path, value)
        for step in self.plan.steps:
            for path, value in leaves(step.question.details if step.question else {}):
                yield Value(None, step.id, dotted("question.details", path), path, value)


def _ref(value: Json) -> Ref | None:
    return Ref.parse(value) if isinstance(value, str) and value.startswith("${") else None


def _is_call(site: Site) -> bool:
    return not site.prefix and site.spec is not None


def dotted(start: str, path: Sequence[str]) -> str:
    """Return the name of a field for an issue: `args.order.id`."""
    return ".".join((start, *path))


LayerCheck: TypeAlias = Callable[[Ground], "Iterator[Issue]"]
"""One check: yields what it finds."""
