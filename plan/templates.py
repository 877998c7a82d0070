"""A plan with typed parameters, for tasks that recur. Filling one in is deterministic.

The file is YAML. Steps, checks, conditions and constraints have the very fields of
`plangate.plan.value`; a parameter is read as `${inputs.name}` in arguments and as `inputs.name` in
rules, and is never pasted into a text except the goal's, which only people read. A template whose
argument values are mostly parameters fixes little, and `fixes_little` says so: a warning where a
person wrote it (a first template of three values may well have two), no more.

    template: refund                     # the id, and the plan's task_type
    version: 3
    summary: Refund one order after checking that it is eligible.
    goal: Refund order {order_id}        # used where the caller gives no goal
    parameters:
      - {name: order_id, type: string, pattern: "^ORD-", max_length: 40}
      - {name: limit_cents, type: integer, default: 10000, min: 1, max: 100000}
      - {name: channel, type: string, default: chat, enum: [chat, mail]}
    constraints:
      - {id: one_payment, text: At most one refund per order, source: template}
    assumptions:
      - {id: paid, statement: The order was paid, source: user}
    steps:
      - id: S1
        objective: Read the order
        tool: query_order
        args: {order_id: "${inputs.order_id}"}
        success:
          - {id: order_found, level: L1, claim: It exists, rule: "result.order.id != ''"}
        routes:
          - {on: order_not_found, action: abort}
      - id: S2
        objective: Find the policy that held when the order was made
        tool: search_policy
        args: {topic: refund, day: "${S1.order.day}", limit_cents: "${inputs.limit_cents}"}
      - id: S3
        objective: Ask the customer
        kind: human
        after: [S2]
        question:
          audience: customer
          type: confirm
          text: Shall we refund this order?
          details: {order_id: "${S1.order.id}"}
    success_criteria:
      - {id: refunded, level: L1, claim: The order is refunded, rule: "steps.S3.output.yes"}
    abort_conditions:
      - {id: too_many, text: Three failures, rule: "run.failures >= 3"}
    budget: {max_usd: "0.50", max_seconds: 120}

A parameter's `type` is string, integer, number or boolean. One without `default` must be given;
`default: null` makes it nullable. `min` and `max` bound numbers, `pattern` (anchored only where it
says so) and `max_length` strings.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, JsonValue, ValidationError

from plangate.plan.document import read_yaml
from plangate.plan.effects import fill
from plangate.plan.errors import ConfigError
from plangate.plan.parameter import Parameter
from plangate.plan.value.frozen import Frozen, digest, first_fault
from plangate.plan.value.plan import (
    Assumption,
    Author,
    Budget,
    Condition,
    Constraint,
    Plan,
    Text,
)
from plangate.plan.value.refs import Ref, leaves, refs_in
from plangate.plan.value.step import Check, Line, Name, Step

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from plangate.plan.value.frozen import Json


class Template(Frozen):
    """A plan but for its parameters."""

    template: Name
    version: int = Field(default=1, ge=1)
    summary: Line = ""
    goal: Text
    parameters: tuple[Parameter, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    assumptions: tuple[Assumption, ...] = ()
    steps: Annotated[tuple[Step, ...], Field(min_length=1)]
    success_criteria: tuple[Check, ...] = ()
    abort_conditions: tuple[Condition, ...] = ()
    replan_conditions: tuple[Condition, ...] = ()
    budget: Budget = Field(default_factory=Budget)

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 over the template."""
        return digest(self.model_dump(mode="json"))

    @classmethod
    def from_yaml(cls, text: str) -> Template:
        """Read a template.

        Raises:
            ConfigError: The file does not fit, or a hole has no parameter.
        """
        template = read_yaml(cls, text, "template")
        for says, hint in _faults(template):
            raise ConfigError(f"template {template.template!r} {says}", hint=hint)
        return template

    def fill(
        self,
        goal: str | None,
        inputs: Mapping[str, Json],
        goal_id: str,
        *,
        catalog_hash: str = "",
        policy_hash: str = "",
    ) -> Plan:
        """Return the plan for given inputs.

        Args:
            goal: What the user asked for; None or empty: the template's own goal.
            inputs: By parameter; nothing else is accepted.
            goal_id: Identity of the goal.
            catalog_hash: The contracts planned against.
            policy_hash: The policy planned under.

        Raises:
            ConfigError: Names every input that is missing, unknown or ill-typed.
        """
        given = self._checked(inputs)
        try:
            return Plan(
                goal_id=goal_id,
                goal=goal or fill(self.goal, given),
                task_type=self.template,
                inputs=given,  # type: ignore[arg-type]
                input_schema=self.input_schema,
                **{name: getattr(self, name) for name in _CARRIED},
                author=Author(kind="template", name=f"{self.template}@{self.version}"),
                catalog_hash=catalog_hash,
                policy_hash=policy_hash,
            )
        except ValidationError as exc:
            raise ConfigError(
                f"template {self.template!r} makes no plan: {first_fault(exc)}",
                hint="Give a goal and a goal id of the allowed length.",
            ) from exc

    @property
    def input_schema(self) -> dict[str, JsonValue]:
        """JSON Schema of the inputs of a filled plan: every parameter is there."""
        return {
            "type": "object",
            "properties": {each.name: each.json_schema for each in self.parameters},
            "required": [each.name for each in self.parameters],
            "additionalProperties": False,
        }

    @property
    def fixes_little(self) -> str:
        """Say that more than half of the argument values are parameters; empty: they are not."""
        values = [value for step in self.steps for _, value in leaves(step.args)]
        holes = [ref for ref in map(Ref.parse, values) if ref and ref.source == "user"]
        if 2 * len(holes) <= len(values):
            return ""
        says = f"template {self.template!r} has parameters in {len(holes)} of {len(values)}"
        return f"{says} argument values: it is more a form than a plan"

    def _checked(self, inputs: Mapping[str, Json]) -> dict[str, Json]:
        known = {each.name for each in self.parameters}
        faults = [f"{name!r} is not a parameter" for name in inputs.keys() - known]
        given: dict[str, Json] = {}
        for each in self.parameters:
            if each.name in inputs:
                given[each.name] = inputs[each.name]
                if fault := each.fault(inputs[each.name]):
                    faults.append(f"{each.name!r} {fault}")
            elif each.has_default:
                given[each.name] = each.default
            else:
                faults.append(f"{each.name!r} is missing")
        if faults:
            takes = ", ".join(each.shown for each in self.parameters)
            raise ConfigError(
                f"inputs of template {self.template!r}: " + "; ".join(sorted(faults)),
                hint=f"It takes {takes or 'no inputs'}.",
            )
        return given


def choose(templates: Sequence[Template], task: str) -> Template:
    """Pick the template that the caller named, or the only one there is.

    Raises:
        ConfigError: There is none, none has that name, or several could be meant.
    """
    if not templates:
        raise ConfigError(
            "there is no model and no template to plan with", hint="Give the agent one of the two."
        )
    meant = [each for each in templates if task in ("", each.template)]
    if len(meant) != 1:
        names = ", ".join(each.template for each in templates)
        what = f"no template named {task!r}" if task else "several templates could be meant"
        raise ConfigError(what, hint=f"Name the task; there are: {names}.")
    return meant[0]


_CARRIED = (
    "constraints",
    "assumptions",
    "steps",
    "success_criteria",
    "abort_conditions",
    "replan_conditions",
    "budget",
)


def _faults(template: Template) -> Iterator[tuple[str, str]]:
    known = {each.name for each in template.parameters}
    if len(known) < len(template.parameters):
        yield "has two parameters of one name", "Give each parameter its own name."
    read = [ref for ref in refs_in(template.model_dump(mode="json")) if ref.source == "user"]
    if stray := sorted({".".join(ref.path) for ref in read if not set(ref.path[:1]) & known}):
        yield (
            f"reads inputs without a parameter: {', '.join(stray) or 'inputs'}",
            "Declare each under `parameters:`, or correct the name.",
        )
