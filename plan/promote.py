"""From a plan that a run has proved to a template for the next one: pure, and nothing is guessed.

What the plan read from its inputs becomes parameters. A value that merely equals an input stays as
it is, since nobody said that it comes from there; it is named, so that a person can decide.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml
from pydantic import ValidationError

from plangate.plan.errors import ConfigError
from plangate.plan.parameter import Parameter
from plangate.plan.templates import Template
from plangate.plan.value.frozen import canonical, first_fault, parse, thaw
from plangate.plan.value.refs import leaves

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from plangate.plan.value.plan import Plan

_TYPES: tuple[tuple[type, str], ...] = (
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (str, "string"),
)
_BOUNDS = {"enum": "enum", "minimum": "min", "maximum": "max", "pattern": "pattern"}
"""Words of an input's schema, and what a parameter calls them."""

_LEAST = 4
"""Letters of an input that is recognised in the text of a goal; shorter ones occur by chance."""


class Promoted(NamedTuple):
    """A template, and what somebody should look at before it is used."""

    template: Template
    remarks: tuple[str, ...]

    @property
    def text(self) -> str:
        """The template as a file."""
        said = self.template.model_dump(mode="json", exclude_defaults=True)
        dumped: str = yaml.safe_dump(said, sort_keys=False, allow_unicode=True, width=100)
        return dumped


def promoted(plan: Plan, name: str) -> Promoted:
    """Make a template of a plan.

    Args:
        plan: The last version of a run that reached its goal.
        name: Of the template, and so the task type of the plans that it makes.

    Raises:
        ConfigError: An input is no single value, or more is open than fixed: it is no template.
    """
    said: dict[str, Any] = {
        "template": name,
        "summary": f"From a run for: {plan.goal}"[:500],
        "goal": _goal(plan),
        "parameters": [_parameter(plan, key, value) for key, value in plan.inputs.items()],
        "steps": [{**thaw_model(step), "tool_version": None} for step in plan.steps],
        "assumptions": [
            {**thaw_model(each), "status": "unverified", "evidence": []}
            for each in plan.assumptions
        ],
        "budget": thaw_model(plan.budget),
    }
    for part in ("constraints", "success_criteria", "abort_conditions", "replan_conditions"):
        said[part] = [thaw_model(each) for each in getattr(plan, part)]
    try:
        template = parse(Template, said)
    except ValidationError as exc:
        raise ConfigError(
            f"the plan makes no template: {first_fault(exc)}", hint="Give another name."
        ) from exc
    if why := template.fixes_little:
        raise ConfigError(why, hint="Promote a plan that fixes more than it leaves open.")
    return Promoted(template, tuple(_remarks(plan)))


def thaw_model(value: Any) -> dict[str, Any]:
    """Return a frozen value as plain JSON data."""
    dumped: dict[str, Any] = value.model_dump(mode="json")
    return dumped


def _parameter(plan: Plan, name: str, value: Any) -> dict[str, Any]:
    kind = next((word for type_, word in _TYPES if isinstance(value, type_)), None)
    if kind is None:
        raise ConfigError(
            f"input {name!r} is no single value, and a template takes only these",
            hint="Write the template by hand, with the list or object as a value of a step.",
        )
    schema: Mapping[str, Any] = _schema(plan, name)
    bounds = {ours: thaw(schema[word]) for word, ours in _BOUNDS.items() if word in schema}
    kinds = {"string", "integer", "number", "boolean"}
    stated = schema.get("type")
    more = {"max_length": schema["maxLength"]} if "maxLength" in schema else {}
    said = {"name": name, "type": stated if stated in kinds else kind, **bounds, **more}
    try:
        parse(Parameter, said)
    except ValidationError:  # a bound that parameters do not have
        return {"name": name, "type": kind}
    return said


def _schema(plan: Plan, name: str) -> Mapping[str, Any]:
    properties: Any = (plan.input_schema or {}).get("properties")
    found = properties.get(name) if properties else None
    return found or {}


def _goal(plan: Plan) -> str:
    """Return the goal with inputs in the place of their values, as far as they are surely meant."""
    text = plan.goal.replace("{", "(").replace("}", ")")
    named = {
        value: name
        for name, value in plan.inputs.items()
        if isinstance(value, str) and len(value) >= _LEAST
    }
    if not named:
        return text
    longest_first = "|".join(re.escape(each) for each in sorted(named, key=len, reverse=True))
    return re.sub(longest_first, lambda found: f"{{{named[found[0]]}}}", text)


def _remarks(plan: Plan) -> Iterator[str]:
    for step in plan.steps:
        for path, value in leaves(step.args):
            for name, given in plan.inputs.items():
                if canonical(value) == canonical(given):
                    where = ".".join((step.id, *path))
                    yield f"{where} is {value!r}, as input {name!r}: it stays fixed"
