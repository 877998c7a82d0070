"""Points references of a plan from steps that leave to the steps that take their place.

A reference that the map does not cover is a fault and never a guess. Rules are rewritten name by
name; text inside quotes is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from plangate.plan.issue import Issue
from plangate.plan.value.plan import Plan
from plangate.plan.value.refs import Ref, refs_in, rename
from plangate.plan.value.step import Step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plangate.plan.value.frozen import Frozen, Json

_TOKEN = re.compile(
    r"""
    [rR][bB]?(?:"[^"]*"|'[^']*')                            # raw text: a backslash is itself
  | [bB]?(?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')            # text
  | //[^\n]*
  | (?P<dot>\.\s*)?(?P<name>[A-Za-z_]\w*(?:\s*\.\s*[A-Za-z_]\w*)*)
    """,
    re.VERBOSE,
)


def steps_in(rule: str) -> frozenset[str]:
    """Return the ids of the steps that a CEL rule reads as `steps.<id>...`."""
    names = (_parts(match) for match in _TOKEN.finditer(rule))
    return frozenset(parts[1] for parts in names if parts[:1] == ["steps"] and len(parts) > 1)


def reads_of(step: Step) -> frozenset[str]:
    """Return the steps that a step's result rests on: what its arguments, rules and checks read.

    A person's answer rests on everything that stood before the question.
    """
    rules = [step.when, step.join.rule, *step.preconditions, *(c.rule for c in step.success)]
    read = {each for rule in rules if rule for each in steps_in(rule)}
    for check in step.success:
        read |= {ref.step for ref in refs_in(check.args) if ref.step}  # type: ignore[arg-type]
    before = step.needs if step.question is not None else step.data_needs
    return (frozenset(read) | before) - {step.id}


class Rewriting:
    """One walk over a plan, with what it could not cover.

    Args:
        heads: By dotted reference into a leaving step, the dotted new one: `S2.shipped` to
            `S2b.shipped`, `S2` to `S2b` for all of it, `steps.S2.status` for its status.
        ends: By leaving step, the last of the steps that take its place.
        all_of: By leaving step, all of them.
    """

    def __init__(
        self,
        heads: Mapping[str, str],
        ends: Mapping[str, tuple[str, ...]],
        all_of: Mapping[str, tuple[str, ...]],
    ) -> None:
        self._heads, self._ends, self._all = dict(heads), ends, all_of
        self._gone = frozenset(old for old, new in all_of.items() if old not in new)
        self.issues: list[Issue] = []

    def step(self, step: Step) -> Step:
        """Return a step with every reference pointing at what is there now."""
        said = step.model_dump(mode="json")
        said["args"] = self._value(said["args"], step.id, "args")
        said["after"] = list(dict.fromkeys(self._order(step.after)))
        said["for_each"] = self._value(said["for_each"], step.id, "for_each")
        for field in ("when",):
            said[field] = self._rule(said[field], step.id, field)
        said["join"]["rule"] = self._rule(said["join"]["rule"], step.id, "join.rule")
        said["preconditions"] = [
            self._rule(rule, step.id, f"preconditions[{at}]")
            for at, rule in enumerate(step.preconditions)
        ]
        said["success"] = self._checks(said["success"], step.id, "success")
        for at, route in enumerate(said["routes"]):
            route["step"] = self._target(route["step"], step.id, f"routes[{at}].step")
        said["compensation"] = self._target(step.compensation, step.id, "compensation")
        if step.question is not None:
            details = said["question"]["details"]
            said["question"]["details"] = self._value(details, step.id, "question.details")
        return _as(step, said)

    def plan_rules(self, plan: Plan) -> dict[str, list[dict[str, Json]]]:
        """Return the parts of a plan that stand beside its steps, as plain data."""
        parts: dict[str, list[dict[str, Json]]] = {}
        for field in ("constraints", "abort_conditions", "replan_conditions"):
            parts[field] = [each.model_dump(mode="json") for each in getattr(plan, field)]
            for at, each in enumerate(parts[field]):
                each["rule"] = self._rule(each["rule"], None, f"{field}[{at}].rule")
        criteria = [each.model_dump(mode="json") for each in plan.success_criteria]
        parts["success_criteria"] = self._checks(criteria, None, "success_criteria")
        parts["assumptions"] = [each.model_dump(mode="json") for each in plan.assumptions]
        for assumed in parts["assumptions"]:
            fall = [new for each in assumed["invalidates"] for new in self._all.get(each, (each,))]
            assumed["invalidates"] = list(dict.fromkeys(fall))
        return parts

    def _checks(self, checks: list, step: str | None, field: str) -> list:
        for at, check in enumerate(checks):
            check["rule"] = self._rule(check["rule"], step, f"{field}[{at}].rule")
            check["args"] = self._value(check["args"], step, f"{field}[{at}].args")
        return checks
