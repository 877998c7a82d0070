"""Points references of a plan from steps that leave to the steps that take their place.

A reference that the map does not cover is a fault and never a guess. Rules are rewritten name by
name; text inside quotes is left alone.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from plangate.plan.codes import issue
from plangate.plan.shape.tokens import steps_in
from plangate.plan.value.frozen import parse, thaw
from plangate.plan.value.plan import Assumption
from plangate.plan.value.refs import refs_in, rename
from plangate.plan.value.step import Check, Step

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from plangate.plan.issue import Issue
    from plangate.plan.value.frozen import Json
    from plangate.plan.value.plan import Condition, Constraint, Plan

_TOKEN = re.compile(
    r"""
    [rR][bB]?(?:"[^"]*"|'[^']*')                            # raw text: a backslash is itself
  | [bB]?(?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')            # text
  | //[^\n]*                                                # a comment
  | (?P<dot>\.\s*)?(?P<name>[A-Za-z_]\w*(?:\s*\.\s*[A-Za-z_]\w*)*)
    """,
    re.VERBOSE,
)
_RULES = ("constraints", "abort_conditions", "replan_conditions")


def reads_of(step: Step) -> frozenset[str]:
    """Return the steps that a result rests on: what its arguments, rules and checks read.

    A person's answer rests on everything that stood before the question.
    """
    of_checks = (rule for check in step.success for rule in (check.rule, check.conflict))
    rules = [step.when, step.join.rule, *step.preconditions, *of_checks]
    read = {each for rule in rules if rule for each in steps_in(rule)}
    for check in step.success:
        read |= {ref.step for ref in refs_in(thaw(check.args)) if ref.step}
    before = step.needs if step.question is not None else step.data_needs
    return (frozenset(read) | before) - {step.id}


class Rewriting:
    """One walk over a plan, and what it could not cover.

    Args:
        heads: By dotted reference into a leaving step, the dotted new one: `S2.shipped` to
            `S2b.shipped`; `S2` to `S2b` for all of it; `steps.S2.status` for its status in rules.
        successors: By leaving step, those that take its place.
        ends: By leaving step, the last among those.
    """

    def __init__(
        self,
        heads: Mapping[str, str],
        successors: Mapping[str, tuple[str, ...]],
        ends: Mapping[str, tuple[str, ...]],
    ) -> None:
        self.issues: list[Issue] = []
        self._heads, self._successors, self._ends = heads, successors, ends
        self._gone = frozenset(old for old, new in successors.items() if old not in new)
        ids = "|".join(sorted(successors)) or r"(?!)"
        self._mentioned = re.compile(rf"\b(?:{ids})\b|\bsteps\s*\[")

    def step(self, step: Step) -> Step:
        """Return a step whose references all point at what is there now."""
        text = step.model_dump_json()
        if not self._mentioned.search(text):
            return step
        at = step.id
        said: dict[str, Any] = step.model_dump(mode="json")
        said["args"] = self._value(said["args"], at, "args")
        said["for_each"] = self._value(said["for_each"], at, "for_each")
        said["after"] = _unique(end for old in step.after for end in self._ends.get(old, (old,)))
        said["when"] = self._rule(said["when"], at, "when")
        said["join"]["rule"] = self._rule(said["join"]["rule"], at, "join.rule")
        said["preconditions"] = [
            self._rule(rule, at, f"preconditions[{n}]") for n, rule in enumerate(step.preconditions)
        ]
        said["success"] = self._checks(said["success"], at, "success")
        for n, route in enumerate(said["routes"]):
            route["step"] = self._target(route["step"], at, f"routes[{n}].step")
        said["compensation"] = self._target(step.compensation, at, "compensation")
        if step.question is not None:
            asked = said["question"]
            asked["details"] = self._value(asked["details"], at, "question.details")
        return parse(Step, said)

    def beside_steps(self, plan: Plan) -> dict[str, Any]:
        """Return the parts of a plan that stand beside its steps, by the plan's own names."""
        parts: dict[str, Any] = {}
        for field in _RULES:
            parts[field] = tuple(
                self._ruled(each, f"{field}[{n}]") for n, each in enumerate(getattr(plan, field))
            )
        criteria = [each.model_dump(mode="json") for each in plan.success_criteria]
        checks = self._checks(criteria, None, "success_criteria")
        parts["success_criteria"] = tuple(parse(Check, each) for each in checks)
        parts["assumptions"] = tuple(
            self._assumed(each, f"assumptions[{n}]") for n, each in enumerate(plan.assumptions)
        )
        return parts

    def _ruled(self, each: Constraint | Condition, field: str) -> Constraint | Condition:
        rule = self._rule(each.rule, None, f"{field}.rule")
        return parse(type(each), {**each.model_dump(mode="json"), "rule": rule})

    def _assumed(self, each: Assumption, field: str) -> Assumption:
        rule = self._rule(each.rule, None, f"{field}.rule")
        falls = (new for old in each.invalidates for new in self._successors.get(old, (old,)))
        said = each.model_dump(mode="json")
        return parse(Assumption, {**said, "rule": rule, "invalidates": _unique(falls)})

    def _checks(self, checks: list[dict[str, Any]], step: str | None, field: str) -> list[Any]:
        for n, check in enumerate(checks):
            for name in ("rule", "conflict"):
                check[name] = self._rule(check[name], step, f"{field}[{n}].{name}")
            check["args"] = self._value(check["args"], step, f"{field}[{n}].args")
        return checks

    def _value(self, value: Json, step: str | None, field: str) -> Json:
        for ref in refs_in(value):
            dotted = ".".join((ref.head, *ref.path))
            if ref.head in self._gone and self._covered(dotted) is None:
                self._uncovered(dotted, step, field)
        return rename(value, self._heads)

    def _rule(self, rule: str | None, step: str | None, field: str) -> str | None:
        if rule is None or not self._successors:
            return rule

        def renamed(match: re.Match[str]) -> str:
            parts = _parts(match)
            if parts == ["steps"] or (match["dot"] and set(parts[1:2]) & self._gone):
                self._uncovered(match[0].strip(), step, field)  # `steps[...]`: which, is not seen
            if match["dot"] or parts[:1] != ["steps"] or len(parts) < 2:  # noqa: PLR2004
                return match[0]
            return self._name(parts, step, field)

        return _TOKEN.sub(renamed, rule)

    def _name(self, parts: list[str], step: str | None, field: str) -> str:
        _, old, *rest = parts
        dotted = ".".join(parts)
        if rest[:1] == ["output"]:
            key = self._covered(".".join((old, *rest[1:])))
            if key is not None:
                head, *path = self._heads[key].split(".")
                left = rest[1:][key.count(".") :]
                return ".".join(("steps", head, "output", *path, *left))
        elif f"steps.{old}.{rest[0] if rest else ''}" in self._heads:
            return ".".join((self._heads[f"steps.{old}.{rest[0]}"], *rest[1:]))
        elif "." not in (whole := self._heads.get(old, ".")):
            return ".".join(("steps", whole, *rest))
        if old in self._gone:
            self._uncovered(dotted, step, field)
        return dotted

    def _target(self, old: str | None, step: str, field: str) -> str | None:
        if old not in self._gone or old is None:
            return old
        whole = self._heads.get(old, "")
        successors = (whole,) if whole and "." not in whole else self._successors[old]
        if len(successors) != 1:
            self._uncovered(old, step, field)
            return old
        return successors[0]

    def _covered(self, dotted: str) -> str | None:
        parts = dotted.split(".")
        keys = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
        return next((key for key in keys if key in self._heads), None)

    def _uncovered(self, dotted: str, step: str | None, field: str) -> None:
        self.issues.append(
            issue(
                "patch_uncovered_reference",
                f"{field} reads {dotted!r}, which leaves the plan and has no successor",
                step=step,
                field=field,
                hint=f"Map {dotted!r} in the references of the replacement.",
            )
        )


def _parts(match: re.Match[str]) -> list[str]:
    return [] if match["name"] is None else [each.strip() for each in match["name"].split(".")]


def _unique(ids: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(ids))


def uncovered_ids(steps: Iterable[Step], gone: frozenset[str]) -> Iterator[tuple[Step, str]]:
    """Yield each new step that still needs one that leaves, with the id of the latter."""
    for step in steps:
        for old in sorted((step.needs | reads_of(step)) & gone):
            yield step, old
