"""Sample plans as data: a sound base, a JSON Patch, and what has to be found.

A path may name an element of a list by its `id`: `/steps/S3/args/x`.
"""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, Field

from plangate.agent import load_agent
from plangate.plan.document import read_yaml
from plangate.plan.facts import Facts
from plangate.plan.issue import Report
from plangate.plan.layers.run import read_plan, validate
from plangate.plan.templates import Template
from plangate.plan.value.frozen import Frozen
from plangate.plan.value.plan import Plan
from tests.samples.catalogs import Desk, desk, with_specs

HERE = Path(__file__).parent
BAD = ("structure", "dependency", "business")
Data = dict[str, Any]


class Op(Frozen):
    op: Literal["add", "remove", "replace"]
    path: str
    value: Any = None


class Expect(Frozen):
    layer: int
    code: str
    step: str | None = None
    names: tuple[str, ...] = ()
    """What the message must name; empty: the step."""


class Sample(Frozen):
    id: str
    says: str = ""
    base: str = ""
    change: tuple[Op, ...] = ()
    plan: Any = None
    text: str | None = None
    """Raw text in place of a plan."""

    facts: dict[str, Any] = Field(default_factory=dict)
    """Changes to who checks: roles, scopes, spent_usd, spent_tokens, step_model, policy,
    more_policy."""

    versions: dict[str, str] = Field(default_factory=dict)
    """Tools that were released anew."""

    expect: tuple[Expect, ...] = ()
    """All errors there are; empty: the plan is sound."""

    xfail: str = ""
    """Why the validator does not find this yet."""

    unreachable: tuple[str, ...] = ()
    """Steps behind the fault, which can never start: an error each."""

    warns: tuple[str, ...] = ()
    """Codes of all warnings there are."""

    @property
    def errors(self) -> tuple[Expect, ...]:
        """All errors there are, those of steps that can never start among them."""
        lost = (Expect(layer=2, code="unreachable_step", step=each) for each in self.unreachable)
        return (*self.expect, *lost)

    @property
    def on(self) -> Desk:
        name = self.base.partition("-")[0]
        return with_specs(name, **self.versions) if self.versions else desk(name)

    @property
    def source(self) -> object:
        """What is read: text, or plain data."""
        if self.text is not None:
            return self.text
        return patched(self.plan if self.plan is not None else base(self.base), self.change)

    def report(self) -> Report:
        plan = read_plan(self.source)
        return validate(plan, self.facts_for(plan)) if isinstance(plan, Plan) else plan

    def facts_for(self, plan: Plan) -> Facts:
        return self.on.facts(plan, self.facts)


class _File(Frozen):
    samples: tuple[Sample, ...]


@cache
def samples(name: str) -> tuple[Sample, ...]:
    return read_yaml(_File, (HERE / f"{name}.yaml").read_text("utf-8"), name).samples


class Document(Frozen):
    """Any mapping."""

    model_config = ConfigDict(extra="allow")


def base(name: str) -> Data:
    """A sound plan as plain data; changed freely by the caller."""
    return deepcopy(_base(name))


@cache
def _base(name: str) -> Data:
    file = HERE / "bases" / f"{name}.yaml"
    if file.exists():
        return dict(read_yaml(Document, file.read_text("utf-8"), name).model_extra or {})
    agent = load_agent("refund")
    inputs = {"order_id": "ORD-A1B2C3D4", "line": 1, "amount_cents": 8900}
    filled = Template.from_yaml(agent.templates[0]).fill(None, inputs, "g-refund")
    said = filled.model_dump(mode="json", exclude_defaults=True)
    if name != "refund-template":
        said["author"] = {"kind": "planner", "name": "some-model"}
    return said


def patched(data: Any, change: tuple[Op, ...]) -> Any:
    data = deepcopy(data)
    for op in change:
        *parents, last = op.path.removeprefix("/").split("/")
        here = data
        for part in parents:
            here = here[_key(here, part)]
        if op.op == "remove":
            del here[_key(here, last)]
        elif isinstance(here, list) and op.op == "add":
            here.insert(len(here) if last == "-" else _key(here, last), deepcopy(op.value))
        else:
            here[_key(here, last)] = deepcopy(op.value)
    return data


def _key(here: Any, part: str) -> Any:
    if not isinstance(here, list):
        return part
    ids = [each.get("id") if isinstance(each, dict) else None for each in here]
    return ids.index(part) if part in ids else int(part)
