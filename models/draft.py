"""Compiles a model's draft to a plan, or says as issues why it is none.

Nothing is corrected and nothing raises for what a model wrote. What can be said only of a whole
plan (unknown steps and tools, types, cycles) is left to the validation layers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Required, TypedDict, Unpack

from plangate.models.reading import read_as
from plangate.models.wire import PlanDraft
from plangate.plan.codes import issue
from plangate.plan.contract import MODEL
from plangate.plan.layers.run import read_plan
from plangate.plan.value.frozen import canonical, digest, load_written
from plangate.plan.value.plan import Author, Budget, Constraint, Plan
from plangate.plan.value.refs import Ref, refs_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plangate.models.reading import Flaw
    from plangate.models.wire import DraftArg, DraftCheck, DraftStep
    from plangate.plan.catalog import Catalog
    from plangate.plan.issue import Issue
    from plangate.plan.value.frozen import Json


class About(TypedDict, total=False):
    """What a plan holds that no model writes."""

    goal: Required[str]
    """In the user's words."""

    goal_id: Required[str]
    inputs: Required[Json]
    """What the user gave: an object."""

    budget: Budget
    constraints: Sequence[Constraint]
    input_schema: Mapping[str, Json]
    policy_hash: str
    author: Author
    """Default: a planner without a name."""


def compile_draft(
    draft: PlanDraft | str, catalog: Catalog, **about: Unpack[About]
) -> Plan | tuple[Issue, ...]:
    """Turn a draft into a plan.

    Args:
        draft: As the model wrote it, or the text that should hold it.
        catalog: The contracts planned against; their versions go into the steps.
        **about: The rest of the plan.

    Returns:
        Issues, with the step and the field, where the draft says something that no plan can hold:
        text that is not JSON, an argument named twice, a literal that is a reference.
    """
    if isinstance(draft, str):
        read = read_as(PlanDraft, draft)
        if not isinstance(read, PlanDraft):
            return tuple(_issue_of(flaw) for flaw in read)
        draft = read
    writer = _Writer(catalog)
    data = {**writer.plan(draft), **_given(about), "catalog_hash": catalog.content_hash}
    if writer.issues:
        return tuple(writer.issues)
    read_back = read_plan(data)
    return read_back if isinstance(read_back, Plan) else read_back.issues


def task_type_of(tools: Sequence[str], catalog: Catalog) -> str:
    """Return the signature of a set of tools and their effects; never a model's text."""
    known = {name: spec.effect.value for name, spec in catalog.tools.items()} | {MODEL: "none"}
    used = {name: known.get(name, "unknown") for name in tools}
    return f"tools-{digest(used)[:12]}"


@dataclass(slots=True)
class _Writer:
    """Writes plan data and gathers what stands in the way."""

    catalog: Catalog
    issues: list[Issue] = field(default_factory=list)

    def plan(self, draft: PlanDraft) -> dict[str, Any]:
        tools = [step.tool or step.kind for step in draft.steps if step.kind != "human"]
        return {
            "task_type": task_type_of(tools, self.catalog),
            "steps": [self._step(step) for step in draft.steps],
            "success_criteria": [
                self._check(check, f"goal.c{n}", None, f"success_criteria[{n - 1}]")
                for n, check in enumerate(draft.success_criteria, 1)
            ],
            "abort_conditions": [
                {"id": f"abort.{n}", "text": each.text, "rule": each.rule}
                for n, each in enumerate(draft.abort_conditions, 1)
            ],
            "assumptions": [
                {"id": f"A{n}", "statement": each, "source": "model"}
                for n, each in enumerate(draft.assumptions, 1)
            ],
            "notes": [draft.notes.model_dump(mode="json")],
        }

    def _step(self, step: DraftStep) -> dict[str, Any]:
        spec = self.catalog.tools.get(step.tool or "")
        return {
            "id": step.id,
            "objective": step.objective,
            "kind": step.kind,
            "tool": step.tool,
            "tool_version": None if spec is None else spec.version,
            "args": self._args(step.args, step.id, "args"),
            "after": step.after,
            "when": step.when,
            "success": [
                self._check(check, f"{step.id}.c{n}", step.id, f"success[{n - 1}]")
                for n, check in enumerate(step.checks, 1)
            ],
            "question": self._question(step),
            "output": self._output(step),
            "expected_output": step.expected_output,
        }

    def _output(self, step: DraftStep) -> Any:
        if step.output_json is None:
            return None
        where, hint = "output_json", "Write one JSON Schema of an object, as JSON text."
        try:
            schema = load_written(step.output_json)
            canonical(schema)
        except ValueError:
            schema = None
        if not isinstance(schema, Mapping):
            self._say("bad_value", step.id, where, "output_json is not a JSON object", hint)
            return None
        return schema

    def _question(self, step: DraftStep) -> dict[str, Any] | None:
        if step.question is None:
            return None
        said = step.question.model_dump(mode="json", exclude={"details"})
        return {**said, "details": self._args(step.question.details, step.id, "question.details")}

    def _check(self, check: DraftCheck, name: str, step: str | None, at: str) -> dict[str, Any]:
        return {
            "id": name,
            "level": check.level,
            "claim": check.claim,
            "rule": check.rule,
            "tool": check.tool,
            "args": self._args(check.args, step, f"{at}.args"),
        }

    def _args(self, args: Sequence[DraftArg], step: str | None, at: str) -> dict[str, Any]:
        written: dict[str, Any] = {}
        for arg in args:
            where = f"{at}.{arg.name}"
            if arg.name in written:
                says = f"argument {arg.name!r} is given twice"
                self._say("duplicate_id", step, where, says, "Keep one of them.")
            written[arg.name] = (
                self._literal(arg, step, where)
                if arg.source == "literal"
                else self._reference(arg, step, where)
            )
        return written

    def _literal(self, arg: DraftArg, step: str | None, where: str) -> Any:
        try:
            value = load_written("" if arg.value_json is None else arg.value_json)
            canonical(value)  # refuses NaN and numbers that readers of JSON do not agree on
        except ValueError as exc:
            hint = 'Write JSON text: a text needs its quotes, as "\\"EUR\\"".'
            says = f": {exc}" if "occurs twice" in str(exc) else ""
            self._say("bad_value", step, where, f"value_json is not exact JSON{says}", hint)
            return None
        if next(refs_in(value), None) is not None:
            hint = "Use source `step` or `input`."
            self._say("bad_value", step, where, "the literal is written like a reference", hint)
        return value

    def _reference(self, arg: DraftArg, step: str | None, where: str) -> str:
        head = ["inputs", arg.input or ""] if arg.source == "input" else [arg.step or ""]
        path = [] if not arg.path else arg.path.split(".")
        written = "${" + ".".join((*head, *path)) + "}"
        ref = Ref.parse(written)
        if ref is None or (ref.source == "step") != (arg.source == "step"):
            says = f"source {arg.source!r} does not name one, or has a path that is none"
            hint = f"Fill `{arg.source}`, and `path` with dotted field names or null."
            self._say("bad_reference_path", step, where, says, hint)
        return written

    def _say(self, code: str, step: str | None, at: str, says: str, hint: str) -> None:
        self.issues.append(issue(code, says, step=step, field=at, hint=hint))


def _given(about: About) -> dict[str, Any]:
    return {
        "goal": about["goal"],
        "goal_id": about["goal_id"],
        "inputs": about["inputs"],
        "budget": about.get("budget", Budget()),
        "author": about.get("author", Author(kind="planner")),
        "constraints": about.get("constraints", ()),
        "input_schema": about.get("input_schema"),
        "policy_hash": about.get("policy_hash", ""),
    }


def _issue_of(flaw: Flaw) -> Issue:
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in flaw.path)
    return issue(flaw.code, flaw.says, field=where.removeprefix("."))
