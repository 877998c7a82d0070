"""What a run is made of beside its journal, as hashes; and whether it may go on after a change.

Pure. What the rest of the plan relies on decides: a wording changes nothing that was approved, a
contract or a rule has to be checked again, and a plan that cannot be carried out any more has to be
made anew. Nothing here says that a change is harmless which it does not know.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from pydantic import Field

from plangate.plan.catalog import ToolPrint
from plangate.plan.contract import MODEL
from plangate.plan.value.frozen import Frozen, FrozenMap

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping


Word: TypeAlias = Literal["same", "compatible", "revalidate", "replan"]
"""`compatible`: go on and say so. `revalidate`: check the plan again; no approval covers it any
more. `replan`: make a new version; what was done stays on the record."""

_ORDER: Final[tuple[Word, ...]] = ("same", "compatible", "revalidate", "replan")


class Fingerprint(Frozen):
    """Everything outside the journal that a run depends on. Equal prints, equal behaviour."""

    plangate: str
    """Version of this package."""

    plan_schema: str
    graph: str
    """Of the wiring: which node may follow which."""

    policy: str
    repairs: str
    prompts: FrozenMap[str] = Field(default_factory=dict, validate_default=True)
    templates: FrozenMap[str] = Field(default_factory=dict, validate_default=True)
    tools: FrozenMap[ToolPrint] = Field(default_factory=dict, validate_default=True)
    """Those that the run's principal sees; the model of model steps, by its name, as `model`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """What the rest of a plan relies on.

    Args:
        tools: Names that its open steps and its checks use.
        refused: Tools that exist and that the principal may not use now: a denial, not a change.
        readable: False if this code cannot read the plan at all.
    """

    tools: Collection[str] = ()
    refused: Collection[str] = ()
    readable: bool = True


@dataclass(frozen=True, slots=True)
class Change:
    """One part that is not as it was."""

    part: str
    """`policy`, `plan_schema`, `graph`, `repairs`, `plangate`, `prompt:<name>`,
    `template:<name>`, `tool:<name>`."""

    says: str
    asks: Word
    """What this part alone asks for."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Whether a run may go on, and why not."""

    word: Word
    changes: tuple[Change, ...] = ()

    @property
    def reasons(self) -> tuple[str, ...]:
        """One line for each part that changed, the gravest first."""
        return tuple(each.says for each in self.changes)


def compare(was: Fingerprint, now: Fingerprint, rest: Rest) -> Compared:
    """Decide whether a run that was made under `was` may go on under `now`.

    Args:
        was: Recorded when the run began, or when its plan was checked.
        now: Of today's code, agent and rules.
        rest: What is still to be done relies on this.
    """
    found = [*_plan(was, now, rest), *_tools(was.tools, now.tools, rest), *_others(was, now)]
    found.sort(key=lambda each: -_ORDER.index(each.asks))
    return Compared(found[0].asks if found else "same", tuple(found))


def _plan(was: Fingerprint, now: Fingerprint, rest: Rest) -> Iterator[Change]:
    if not rest.readable:
        says = "the plan is written in a form that this version cannot read"
        yield Change("plan_schema", says, "replan")
    elif was.plan_schema != now.plan_schema:
        yield Change("plan_schema", "the form of plans changed; this one can be read", "revalidate")
    if was.policy != now.policy:
        yield Change("policy", "the policy changed", "revalidate")


def _tools(
    was: Mapping[str, ToolPrint], now: Mapping[str, ToolPrint], rest: Rest
) -> Iterator[Change]:
    for name in sorted({*was, *now}):
        before, after = was.get(name), now.get(name)
        if before == after:
            continue
        used = name in rest.tools
        aside = "" if used else ", which the rest of the plan does not use,"
        if after is None:
            asks, how = _gone(name, rest, used=used)
        elif before is None:
            asks, how = "compatible", "is new"
        else:
            binding = _binding(before, after)
            asks = "revalidate" if binding and used else "compatible"
            how = f"has {' and '.join(binding)}" if binding else "is only described otherwise"
        what = "the model of model steps" if name == MODEL else f"tool {name}"
        yield Change(f"tool:{name}", f"{what}{aside} {how}", asks)


def _gone(name: str, rest: Rest, *, used: bool) -> tuple[Word, str]:
    if name in rest.refused:
        # A plan made anew would only look for a way around the refusal; its step says so, exactly.
        return "compatible", "may no longer be used by the principal"
    return ("replan" if used else "compatible"), "is gone"


def _binding(before: ToolPrint, after: ToolPrint) -> list[str]:
    return [
        what
        for differs, what in (
            (before.version != after.version, f"version {after.version}, was {before.version}"),
            (before.form != after.form, "another schema"),
            (before.powers != after.powers, "another contract"),
        )
        if differs
    ]


def _others(was: Fingerprint, now: Fingerprint) -> Iterator[Change]:
    """Parts that no step relies on: they count from the next plan on."""
    if was.graph != now.graph:
        says = "the wiring changed; the journal says where the run stands"
        yield Change("graph", says, "compatible")
    if was.repairs != now.repairs:
        yield Change("repairs", "the repair rules changed", "compatible")
    for kind, old, new in (
        ("prompt", was.prompts, now.prompts),
        ("template", was.templates, now.templates),
    ):
        for name in sorted({*old, *new}):
            if old.get(name) != new.get(name):
                how = "is new" if name not in old else "is gone" if name not in new else "changed"
                yield Change(f"{kind}:{name}", f"{kind} {name} {how}", "compatible")
    if was.plangate != now.plangate:
        says = f"plangate is {now.plangate}, was {was.plangate}"
        yield Change("plangate", says, "compatible")
