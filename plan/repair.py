"""Known failures and their repairs, as data: what an agent's author knows, no model has to guess.

The file is YAML. In a repair `{step}` stands for the id of the failed step, and a text that is
exactly `{args.name}` for that argument of it, be it a literal or a reference.

    repairs:
      # The tool's error code, check_failed:CHECK_ID, or assumption:ID for one that proved false.
      - code: logistics_record_not_found
        tool: query_logistics                  # or "*" for any tool
        category: missing_external_record
        hypotheses: [No parcel was made yet, so not found may mean not shipped]
        confidence: 0.8
        lesson: Ask fulfilment before calling a missing record an error
        needs_person: false
        scope: local                           # or full, terminate
        replace:
          steps:
            - id: "{step}a"
              objective: Read how and when the order is to be fulfilled
              tool: query_fulfillment_details
              args: {order_id: "{args.order_id}"}
            - id: "{step}b"
              objective: Decide what a missing record means
              tool: classify_no_logistics_record
              args:
                order_id: "{args.order_id}"
                fulfillment_type: "${{step}a.fulfillment_type}"
          references: {"{step}.shipped": "{step}b.shipped"}
        updates:
          - capability: search_policy
            required_facts: [order, fulfilment class]

A replacement starts under the conditions of the step it replaces: `after`, `when` and
`preconditions` go over to the new steps that need no other new one. Every reference to the old step
anywhere in the plan must be covered by `references`, else there is no patch.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from plangate.plan.codes import issue
from plangate.plan.document import read_yaml
from plangate.plan.errors import ConfigError, PlanRejected
from plangate.plan.revise.operations import Keep, Patch, Replace, Update
from plangate.plan.value.frozen import Args, Frozen, FrozenMap, digest, first_fault, parse, thaw
from plangate.plan.value.step import Check, Line, Name, Step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plangate.plan.issue import Issue
    from plangate.plan.value.plan import Plan

_ARG = re.compile(r"\{args\.([A-Za-z_][A-Za-z0-9_]*)\}")
_TRIAL = "S1"


class Replacement(Frozen):
    """Steps in place of the failed one, with `{step}` and `{args.name}` open."""

    steps: Annotated[tuple[Args, ...], Field(min_length=1)]
    references: FrozenMap[str] = Field(default_factory=dict, validate_default=True)


class Consequence(Frozen):
    """A change to other steps of a plan, addressed by what they do."""

    capability: Annotated[str, Field(min_length=1, max_length=120)]
    """A tool, or `human:<audience>`. Steps of that kind that a plan lacks need no change."""

    args: Args | None = None
    success: tuple[Check, ...] | None = None
    required_facts: tuple[Line, ...] | None = None


class RepairRule(Frozen):
    """What a known failure means and what mends it."""

    code: Annotated[
        str, Field(pattern=r"^((check_failed|assumption):)?[A-Za-z][A-Za-z0-9_.-]{0,79}$")
    ]
    """An error code; `check_failed:ID`, a result that its check found wanting; `assumption:ID`."""

    tool: Annotated[str, Field(pattern=r"^(\*|[A-Za-z][A-Za-z0-9_.-]{0,79})$")] = "*"
    category: Name
    hypotheses: tuple[Line, ...] = ()
    confidence: float = Field(default=0.5, ge=0, le=1)
    lesson: Line = ""
    needs_person: bool = False
    scope: Literal["local", "full", "terminate"] = "local"
    replace: Replacement | None = None
    updates: tuple[Consequence, ...] = ()

    @model_validator(mode="after")
    def _can_be_read(self) -> RepairRule:
        if self.replace is None:
            if self.scope == "local" and not self.needs_person and not self.updates:
                msg = f"repair of {self.code!r} is local and changes nothing"
                raise ValueError(msg)
            return self
        for said in self.replace.steps:
            try:
                parse(Step, _filled(thaw(said), _TRIAL, None))
            except ValidationError as exc:
                msg = f"repair of {self.code!r}: step {said.get('id')!r}: {first_fault(exc)}"
                raise ValueError(msg) from exc
        return self

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 over the rule."""
        return digest(self.model_dump(mode="json"))

    def patch_for(self, plan: Plan, step_id: str) -> Patch:
        """Return the repair for one failed step of one plan.

        Raises:
            PlanRejected: The rule has no patch, or does not fit the step.
        """
        step = plan.by_id.get(step_id)
        if step is None:
            raise PlanRejected([_misfit(step_id, f"no step {step_id!r} in the plan")])
        changes: list[Replace | Update] = [*self._replacements(step)]
        changes += self._updates(plan, step_id)
        if not changes:
            raise PlanRejected([_misfit(step_id, f"repair of {self.code!r} changes nothing here")])
        touched = {op.step for op in changes}
        kept = [Keep(step=each.id) for each in plan.steps if each.id not in touched]
        return Patch(operations=(*kept, *changes), reasons=(f"error://{self.code}",))

    def _replacements(self, step: Step) -> Iterator[Replace]:
        if self.replace is None:
            return
        try:
            said = [_filled(thaw(each), step.id, step) for each in self.replace.steps]
            steps = [parse(Step, each) for each in said]
        except KeyError as exc:
            raise PlanRejected([_misfit(step.id, f"{step.id} has no argument {exc}")]) from exc
        except ValidationError as exc:
            says = f"repair of {self.code!r}: {first_fault(exc)}"
            raise PlanRejected([_misfit(step.id, says)]) from exc
        ids = {each.id for each in steps}
        yield Replace(
            step=step.id,
            steps=tuple(each if each.needs & ids else _begun(each, step) for each in steps),
            references={
                _filled(old, step.id, step): _filled(new, step.id, step)
                for old, new in self.replace.references.items()
            },
        )

    def _updates(self, plan: Plan, failed: str) -> Iterator[Update]:
        for rule in self.updates:
            for step in plan.steps:
                if step.id != failed and step.capability == rule.capability:
                    said = rule.model_dump(mode="json", exclude={"capability"})
                    yield parse(Update, _filled(said, failed, plan.by_id[failed], step=step.id))


class _File(Frozen):
    repairs: tuple[RepairRule, ...]


def load_repairs(yaml_text: str) -> tuple[RepairRule, ...]:
    """Read a file of repairs.

    Raises:
        ConfigError: The file does not fit, or two repairs are for the same code and tool.
    """
    rules = read_yaml(_File, yaml_text, "repairs").repairs
    seen: set[tuple[str, str]] = set()
    for rule in rules:
        if (rule.code, rule.tool) in seen:
            raise ConfigError(
                f"repairs: two for code {rule.code!r} of tool {rule.tool!r}",
                hint="Keep one; which is meant cannot be guessed.",
            )
        seen.add((rule.code, rule.tool))
    return rules


def find(rules: tuple[RepairRule, ...], code: str, tool: str) -> RepairRule | None:
    """Return the repair for an error code of a tool; one for that tool goes before one for any."""
    fitting = [rule for rule in rules if rule.code == code and rule.tool in (tool, "*")]
    return min(fitting, key=lambda rule: rule.tool == "*", default=None)


def _filled(value: Any, step_id: str, failed: Step | None, **more: str) -> Any:
    if isinstance(value, dict):
        return {key: _filled(item, step_id, failed) for key, item in value.items()} | more
    if isinstance(value, list):
        return [_filled(item, step_id, failed) for item in value]
    if not isinstance(value, str):
        return value
    if match := _ARG.fullmatch(value):
        return "trial" if failed is None else thaw(failed.args[match[1]])
    return value.replace("{step}", step_id)


def _begun(new: Step, old: Step) -> Step:
    said = new.model_dump(mode="json")
    said["after"] = list(dict.fromkeys((*old.after, *new.after)))
    said["when"] = new.when or old.when
    said["preconditions"] = list(dict.fromkeys((*old.preconditions, *new.preconditions)))
    return parse(Step, said)


def _misfit(step: str, says: str) -> Issue:
    return issue("repair_does_not_fit", says, step=step)
