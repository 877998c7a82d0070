"""Plans in the forms of other people, read as candidates of ours; what they only claim stays claim.

Three forms are told apart by the fields of their steps: `action` (goal, numbered actions, expected
outputs, fallbacks), `capability` (steps with `depends_on`), and `tool` with `depends_on`,
`args_from`, `success` or `risk`. Free text never becomes a rule: a success text is a check without
one, which layer 7 refuses until somebody writes it. Nothing is filled in that was not said.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from plangate.plan.codes import issue
from plangate.plan.issue import Report
from plangate.plan.layers.run import read_plan
from plangate.plan.layers.schema import RESERVED_IDS
from plangate.plan.shape.shape import compile_shape
from plangate.plan.value.frozen import Frozen, FrozenMap, parse

if TYPE_CHECKING:
    from plangate.plan.catalog import Catalog
    from plangate.plan.issue import Issue
    from plangate.plan.value.frozen import Json
    from plangate.plan.value.plan import Plan

Id: TypeAlias = int | float | str
Texts: TypeAlias = str | tuple[str, ...]
_OUR_ID = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,39}")
_RISKS = {"read_only": "read", "readonly": "read", "read-only": "read"}
_ONLY_OURS = frozenset({"goal_id", "task_type", "author", "schema_version"})
_NAMES = {"missing": "missing_field", "extra_forbidden": "unknown_field"}


class Cost(Frozen):
    """What somebody expects a step to take."""

    tokens: int | None = None
    time_sec: float | None = None
    usd: float | None = None


class _Step(Frozen):
    id: Id
    depends_on: tuple[Id, ...] = ()
    objective: str = ""
    expected_output: str = ""
    fallback: str = ""
    success: Texts = ()
    required_facts: tuple[str, ...] = ()
    risk: str | None = None
    side_effect: str | None = None
    reversible: bool | None = None
    max_attempts: int | None = None
    timeout_seconds: float | None = None
    estimated_cost: Cost | float | None = None


class _Action(_Step):
    action: str


class _Capability(_Step):
    capability: str


class _Tool(_Step):
    tool: str
    args_from: tuple[str, ...] | FrozenMap[str] = ()
    """Sources, or sources by argument: `user.x` is an input, all others begin with a step."""


class _Form(Frozen):
    goal: str
    plan_id: str = ""
    success_criteria: Texts = ()
    abort_conditions: Texts = ()


class ActionPlan(_Form):
    """Numbered actions in words, one after the other."""

    steps: tuple[_Action, ...]


class CapabilityPlan(_Form):
    """Steps that name a capability."""

    steps: tuple[_Capability, ...]


class ToolPlan(_Form):
    """Steps that name a tool and where its arguments come from."""

    steps: tuple[_Tool, ...]


def form_of(data: object) -> type[_Form] | None:
    """Return which foreign form plain JSON data has; None: none of them."""
    steps = data.get("steps") if isinstance(data, Mapping) else None
    if isinstance(steps, str) or not isinstance(steps, Sequence) or not steps:
        return None
    if isinstance(data, Mapping) and data.keys() & _ONLY_OURS:
        return None  # ours with a field of another form: an issue, and no guess at what is meant
    said = {name for step in steps if isinstance(step, Mapping) for name in step}
    if "action" in said:
        return ActionPlan
    if "capability" in said:
        return CapabilityPlan
    return ToolPlan if "tool" in said and said & {"depends_on", "args_from", "risk"} else None


class Mapped(Frozen):
    """How a plan of a foreign form is read as one of ours."""

    form: str
    ids: FrozenMap[str]
    """By id of a step there, the id here; only where they differ."""

    fields: FrozenMap[str]
    """By field that occurs there, where it stands here; only where they differ."""


def mapped(data: object) -> Mapped | None:
    """Say how `import_plan` reads plain JSON data; None: it has no foreign form."""
    form = form_of(data)
    if form is None or not isinstance(data, Mapping):
        return None
    steps = [step for step in data["steps"] if isinstance(step, Mapping)]
    said = {name for each in (data, *steps) for name in each}
    ids = [step["id"] for step in steps if isinstance(step.get("id"), (int, float, str))]
    return Mapped(
        form=form.__name__,
        ids={str(each): our_id(each) for each in ids if our_id(each) != each},
        fields={name: ours for name, ours in _OURS.items() if name in said},
    )


_OURS = {
    "plan_id": "author.name",
    "success_criteria": "success_criteria[].claim, without a rule",
    "abort_conditions": "success_criteria[].claim, as `It never came to`",
    "depends_on": "after",
    "action": "tool where it names one, else the objective of a milestone",
    "capability": "tool",
    "args_from": "args",
    "success": "success[].claim, without a rule",
    "fallback": "constraints[].text",
    "risk": "declared.side_effect",
    "side_effect": "declared.side_effect",
    "reversible": "declared.reversible",
    "max_attempts": "declared.max_attempts",
    "timeout_seconds": "declared.timeout_s",
    "estimated_cost": "declared",
}


def import_plan(
    data: object,
    catalog: Catalog,
    *,
    goal_id: str,
    inputs: Mapping[str, Json] | None = None,
    capabilities: Mapping[str, str] | None = None,
) -> Plan | Report:
    """Read a plan of a foreign form, or of ours.

    Args:
        data: Plain JSON data.
        catalog: Tells tools from words, and gives arguments their names.
        goal_id: Identity of the goal.
        inputs: What the user gave; foreign forms only refer to it.
        capabilities: By foreign name, the tool or `human:<audience>` that is meant.

    Returns:
        A candidate that no layer has looked at yet: each id that had to be changed, and the form,
        stand in its notes. Or a report with all that stops it from being read.
    """
    form = form_of(data)
    if form is None:
        return read_plan(data)
    try:
        said = parse(form, data)
    except ValidationError as exc:
        found = tuple(_misread(exc, form))
        return Report(issues=found, not_evaluated=(2, 3, 4, 5, 6, 7))
    except (ValueError, RecursionError, PydanticSerializationError):
        return read_plan(data)  # no JSON at all, which is said there
    return read_plan(_Reader(said, catalog, capabilities or {}).plan(goal_id, inputs or {}))


def our_id(given: Id) -> str:
    """Return a foreign id as one of ours; always the same one.

    >>> our_id("extract_a"), our_id(1), our_id("1.5"), our_id("inputs")
    ('extract_a', 'S1', 'S1_5', 'Sinputs')
    """
    text = str(given)
    if _OUR_ID.fullmatch(text) and text not in RESERVED_IDS:
        return text
    return ("S" + re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_"))[:40]


class _Reader:
    def __init__(self, said: _Form, catalog: Catalog, capabilities: Mapping[str, str]) -> None:
        self.said = said
        self.steps: Sequence[_Step] = getattr(said, "steps", ())
        self.catalog = catalog
        self.capabilities = capabilities

    def plan(self, goal_id: str, inputs: Mapping[str, Json]) -> dict[str, Any]:
        said, form = self.said, type(self.said).__name__
        criteria = [_claim(f"goal_{n}", text) for n, text in _numbered(said.success_criteria)]
        aborts = _numbered(said.abort_conditions)
        criteria += [_claim(f"abort_{n}", f"It never came to: {text}") for n, text in aborts]
        return {
            "goal_id": goal_id,
            "goal": said.goal,
            "task_type": "imported",
            "inputs": inputs,
            "constraints": [
                {"id": f"fallback_{our_id(each.id)}", "source": "user", "text": _fallback(each)}
                for each in self.steps
                if each.fallback
            ],
            "steps": [self._step(at, each) for at, each in enumerate(self.steps)],
            "success_criteria": criteria,
            "author": {"kind": "planner", "name": f"{form} {said.plan_id}".strip()[:500]},
            "catalog_hash": self.catalog.content_hash,
            "notes": [_note("form_read", form), *map(_renamed, filter(_is_renamed, self.steps))],
        }

    def _step(self, at: int, step: _Step) -> dict[str, Any]:
        name = our_id(step.id)
        does = self._does(step)
        said = _numbered(step.success)
        return {
            "id": name,
            "objective": step.objective or self._objective(step),
            "after": self._after(at, step),
            "expected_output": step.expected_output,
            "required_facts": step.required_facts,
            "success": [_claim(f"{name}_success_{n}", text) for n, text in said],
            "declared": _declared(step),
            **does,
        }

    def _does(self, step: _Step) -> dict[str, Any]:
        """Return what the step runs: a tool, a question, or (in words only) nothing yet."""
        if isinstance(step, _Tool):
            return {"tool": step.tool, "args": self._args(step)}
        said = _word(step)
        meant = self.capabilities.get(said, said)
        if meant.startswith("human:"):
            audience, text = meant.removeprefix("human:"), self._objective(step)
            question = {"audience": audience, "type": "confirm", "text": text}
            return {"kind": "human", "question": question}
        if isinstance(step, _Action) and meant not in self.catalog.tools:
            return {"kind": "milestone"}
        return {"tool": meant}

    def _objective(self, step: _Step) -> str:
        word = _word(step)
        spec = self.catalog.tools.get(self.capabilities.get(word, word))
        return word if spec is None or isinstance(step, _Action) else spec.summary

    def _after(self, at: int, step: _Step) -> list[str]:
        """Numbered actions wait for the one before; all others for what they name."""
        if step.depends_on or at == 0 or not isinstance(step, _Action):
            return [our_id(each) for each in step.depends_on]
        return [our_id(self.steps[at - 1].id)]

    def _args(self, step: _Tool) -> dict[str, str]:
        """Give each source to the argument of its name; a lone one to the lone one that is left.

        A source that fits no argument keeps a name of its own, so that layer 3 says so.
        """
        if isinstance(step.args_from, Mapping):
            return {name: _reference(source) for name, source in step.args_from.items()}
        spec = self.catalog.tools.get(step.tool)
        params = list(compile_shape(spec.params).fields) if spec else []
        ends = Counter(source.rpartition(".")[2] for source in step.args_from)
        given: dict[str, str] = {}
        for source in step.args_from:
            end = source.rpartition(".")[2]
            by_name = end in params and ends[end] == 1
            given[end if by_name else source.replace(".", "_")] = source
        stray = [name for name in given if name not in params]
        free = [name for name in params if name not in given]
        if len(stray) == len(free) == 1:
            given[free[0]] = given.pop(stray[0])
        return {name: _reference(source) for name, source in given.items()}


def _word(step: _Step) -> str:
    return str(
        getattr(step, "action", "") or getattr(step, "capability", "") or getattr(step, "tool", "")
    )


def _numbered(texts: Texts) -> Iterator[tuple[int, str]]:
    listed = (texts,) if isinstance(texts, str) else texts
    return ((n, text) for n, text in enumerate(listed, 1) if text.strip())


def _claim(name: str, text: str) -> dict[str, Any]:
    return {"id": name, "level": "L1", "claim": text}


def _fallback(step: _Step) -> str:
    return f"If {our_id(step.id)} fails: {step.fallback}"


def _reference(source: str) -> str:
    head, dot, rest = source.partition(".")
    return "${" + ("inputs" if head == "user" else our_id(head)) + dot + rest + "}"


def _declared(step: _Step) -> dict[str, Any] | None:
    """What the planner says of risk and cost: kept as its claim, compared with the contract."""
    cost = step.estimated_cost
    spent = cost if isinstance(cost, Cost) else Cost(usd=cost)
    risk = step.side_effect or step.risk
    said = {
        "side_effect": _RISKS.get(risk.strip().lower(), risk) if risk else None,
        "reversible": step.reversible,
        "max_attempts": step.max_attempts,
        "timeout_s": step.timeout_seconds,
        "estimated_cost": spent.usd,
        "seconds": spent.time_sec,
        "tokens": spent.tokens,
    }
    known = {name: value for name, value in said.items() if value is not None}
    return known or None


def _is_renamed(step: _Step) -> bool:
    return our_id(step.id) != step.id


def _renamed(step: _Step) -> dict[str, Any]:
    return _note("id_mapped", f"{step.id!r} is {our_id(step.id)}")


def _note(code: str, says: str) -> dict[str, Any]:
    return {"decision_code": code, "selected_capability": says[:500]}


def _misread(exc: ValidationError, form: type[_Form]) -> Iterator[Issue]:
    inside = form.model_fields["steps"].annotation
    step = getattr(inside, "__args__", (_Step,))[0]
    for found in exc.errors(include_url=False, include_context=False):
        where = found["loc"]
        field = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in where)
        field = field.removeprefix(".")
        kind = step if len(where) > 2 else form  # noqa: PLR2004 - steps, position, field
        says = f"`{field}` of a plan in the form {form.__name__}: {found['msg']}"
        hint = f"Fields there: {', '.join(kind.model_fields)}."
        yield issue(_NAMES.get(found["type"], "bad_value"), says, field=field, hint=hint)
