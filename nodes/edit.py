"""A person's edit: changes to a copy of the plan, as data, which make the next version or nothing.

It is not an approval: the new version is checked by the same layers and asked about again. What is
done cannot be edited away, and what the plan is about (goal, identity, version) is no part of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from pydantic import JsonValue, ValidationError

from plangate.graph.arguments import filled
from plangate.nodes.case import Case, literals_of
from plangate.nodes.undo import is_compensation
from plangate.plan.errors import ConfigError
from plangate.plan.joins import waits
from plangate.plan.layers.run import validate
from plangate.plan.revise.rewrite import reads_of
from plangate.plan.schedule import order
from plangate.plan.templates import choose
from plangate.plan.tier import acting
from plangate.plan.value.equal import same
from plangate.plan.value.frozen import canonical, parse, thaw
from plangate.plan.value.plan import Author, Plan
from plangate.plan.value.step import Step

MOST: Final = 200
"""Operations of one edit."""

LARGEST: Final = 64 * 1024
"""Bytes of one edit as JSON."""

OPERATIONS: Final = ("test", "replace", "add", "remove")
PARTS: Final = (
    "steps",
    "success_criteria",
    "abort_conditions",
    "replan_conditions",
    "assumptions",
    "constraints",
    "budget",
)
_HINT: Final = (
    'send JSON Patch operations as {"op": "replace", "path": "/steps/S6/args/amount_cents", '
    '"value": 5000}, or {"step": "S6", "args": {"amount_cents": 5000}}, or {"inputs": {...}}'
)


class Edited(NamedTuple):
    """What an edit makes."""

    plan: Plan | None = None
    """The next version; None where inputs were changed and the planner has to fill in anew."""

    inputs: Mapping[str, JsonValue] | None = None


def judged(case: Case, edits: Sequence[JsonValue], by: str) -> Edited | str:
    """Read an edit and check what it makes by all layers; a text says why it is refused."""
    if not edits:
        return f"an edit without a change; {_HINT}"
    if len(edits) > MOST or len(canonical(list(edits))) > LARGEST:
        return f"an edit has at most {MOST} operations and {LARGEST // 1024} kB"
    if any(isinstance(each, dict) and "inputs" in each for each in edits):
        return _inputs(case, edits)
    new = edited(case.plan, edits, by)
    if isinstance(new, str):
        return new
    return _fault(case, new) or Edited(plan=new)


def edited(plan: Plan, edits: Sequence[JsonValue], by: str) -> Plan | str:
    """Apply an edit to a copy of a plan; whether the result is a good plan is not asked here."""
    import jsonpatch  # noqa: PLC0415 - an edit is rare

    document = plan.model_dump(mode="json")
    for number, edit in enumerate(edits, 1):
        operations = _operations(edit, plan)
        if isinstance(operations, str):
            return f"edit {number}: {operations}"
        for operation in operations:
            path = _pointer(operation["path"], document)
            if path is None:
                return f"edit {number}: there is no {operation['path']!r} in the plan"
            try:
                jsonpatch.apply_patch(document, [{**operation, "path": path}], in_place=True)
            except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException) as exc:
                return f"edit {number}: {operation['op']} {operation['path']}: {exc}"
            except (TypeError, ValueError, KeyError, IndexError, AttributeError) as exc:
                return f"edit {number}: {operation['path']} cannot be changed like this: {exc}"
    return _made(plan, document, by)


def carried(case: Case, new: Plan) -> tuple[str, ...]:
    """Return the ended steps that keep their result: unchanged, and so is all they rest on."""
    keeps, before_it = set[str](), waits(new)
    for step_id in order(new):
        step, before = new.by_id[step_id], case.plan.by_id.get(step_id)
        rests = (before_it[step_id] | reads_of(step)) & new.by_id.keys()
        if step_id in case.settled and before is not None and same(before, step) and rests <= keeps:
            keeps.add(step_id)
    return tuple(step.id for step in new.steps if step.id in keeps)


def told(old: Plan, new: Plan, by: str) -> list[str]:
    """Say in words what a person changed, for whoever plans later."""
    lines = []
    for step in new.steps:
        before = old.by_id.get(step.id)
        if before is None:
            lines.append(f"{by} added step {step.id} ({step.capability})")
            continue
        for name in dict.fromkeys((*before.args, *step.args)):
            was, now = _word(before, old, name), _word(step, new, name)
            if was != now:
                lines.append(f"{by} changed {step.id}.{name}: {was} -> {now}")
        if before.model_copy(update={"args": step.args}) != step:
            lines.append(f"{by} changed step {step.id} beside its arguments")
    lines += [
        f"{by} removed step {s.id} ({s.capability})" for s in old.steps if s.id not in new.by_id
    ]
    return lines or [f"{by} changed the plan beside its steps"]


def _word(step: Step, plan: Plan, name: str) -> str:
    """Show an argument, and what it stands for where the inputs say so."""
    if name not in step.args:
        return "nothing"
    said = canonical(step.args[name]).decode()
    meant = canonical(filled(step.args[name], {"inputs": plan.inputs})).decode()
    return said if meant == said else f"{meant} (from {said})"


def _operations(edit: JsonValue, plan: Plan) -> list[dict[str, Any]] | str:
    """Bring one edit into the form of JSON Patch."""
    if not isinstance(edit, dict):
        return f"{type(edit).__name__} is no edit; {_HINT}"
    if set(edit) != {"step", "args"} or not isinstance(edit["args"], dict):
        return _unfit(edit) or [edit]
    if edit["step"] not in plan.by_id:
        return f"there is no step {edit['step']!r} in the plan"
    return [
        {"op": "add", "path": f"/steps/{edit['step']}/args/{_escaped(name)}", "value": value}
        for name, value in edit["args"].items()
    ]


def _unfit(edit: Mapping[str, JsonValue]) -> str:
    """Say why something is no operation on the parts of a plan that a person may edit."""
    op, path = edit.get("op"), edit.get("path")
    if "action" in edit or "name" in edit:
        return f"values from this client are texts and are not taken; {_HINT}"
    if op not in OPERATIONS or not isinstance(path, str):
        return f"an operation is one of {', '.join(OPERATIONS)} with a path; {_HINT}"
    if set(edit) - {"op", "path", "value"} or ("value" not in edit) != (op == "remove"):
        return f"{op} takes op, path{'' if op == 'remove' else ' and value'}, and nothing else"
    _, *parts = path.split("/")
    if path[:1] != "/" or parts[0] not in PARTS:
        return f"{path!r} cannot be edited; only {', '.join(PARTS)} can, and inputs by name"
    return "" if len(parts) > 1 else f"{path!r} is too much at once; name what is in it"


def _pointer(path: str, document: Mapping[str, Any]) -> str | None:
    """Return the path with the id of a step replaced by its place; None: no such step."""
    _, part, place, *rest = path.split("/")
    if part == "steps" and place != "-" and not place.isdecimal():
        ids = [step.get("id") if isinstance(step, dict) else None for step in document["steps"]]
        if place not in ids:
            return None
        place = str(ids.index(place))
    return "/".join(("", part, place, *rest))


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _made(plan: Plan, document: dict[str, Any], by: str) -> Plan | str:
    document |= {
        "author": Author(kind="human", name=by[:200]).model_dump(mode="json"),
        "version": plan.version + 1,
        "parent_hash": plan.content_hash,
    }
    try:
        new = parse(Plan, document)
    except ValidationError as exc:
        first = exc.errors(include_input=False, include_url=False)[0]
        return f"the edited plan is malformed at {'.'.join(map(str, first['loc']))}: {first['msg']}"
    except ValueError as exc:
        return f"the edited plan cannot be read: {exc}"
    if new.content_hash == plan.content_hash:
        return "the edit changes nothing"
    return new


def _fault(case: Case, new: Plan) -> str:
    """Say why an edited plan is not taken; empty if it is."""
    view = case.view
    if new.content_hash in view.rejected:
        return "a plan with this content was rejected, and that is final"
    for step in case.plan.steps:
        seen = view.steps.get(step.id)
        if seen is not None and seen.status not in ("pending", "waiting"):
            after = new.by_id.get(step.id)
            if after is None or not same(step, after):
                return f"{step.id} is {seen.status}; only steps that have not run can be edited"
    sourced = [*case.literals(), *literals_of(new)]
    report = validate(new, case.facts(new), sourced=sourced)
    errors = [each for each in report.issues if each.severity == "error"]
    shown = "; ".join(f"{e.code} {e.step or 'plan'}: {e.says}" for e in errors[:5])
    return f"the edited plan is not valid: {shown}" if errors else ""


def _inputs(case: Case, edits: Sequence[JsonValue]) -> Edited | str:
    only = edits[0] if len(edits) == 1 else None
    given = only["inputs"] if isinstance(only, dict) and set(only) == {"inputs"} else None
    if not isinstance(given, dict) or not given:
        return 'changed inputs make a new plan: they stand alone, as {"inputs": {"name": value}}'
    if is_compensation(case.view):
        return "an undo takes back what is recorded; its inputs cannot be changed"
    why = _inputs_fault(case, given)
    return why or Edited(inputs={name: thaw(value) for name, value in given.items()})


def _inputs_fault(case: Case, given: Mapping[str, JsonValue]) -> str:
    old, new = case.inputs(), {**case.inputs(), **given}
    acted = [
        step.id
        for step in acting(case.plan, case.catalog)
        if step.id in case.view.steps
        and case.view.steps[step.id].status not in ("pending", "waiting", "cancelled")
    ]
    if acted:
        return f"{', '.join(acted)} acted on the inputs as they were; start a new goal instead"
    if canonical(old) == canonical(new):
        return "the edit changes nothing"
    if case.can_use_comments:
        unknown = [name for name in given if name not in old]
        return f"there is no input {unknown[0]!r}; inputs: {', '.join(old)}" if unknown else ""
    try:
        choose(case.kit.templates, case.view.task).fill(case.run.goal, new, case.run.goal_id)
    except ConfigError as exc:
        return f"{exc} {exc.hint}".strip()
    return ""
