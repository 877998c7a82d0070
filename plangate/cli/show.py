"""What a person sees before they answer: the plan that is asked about, or what went wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plangate.cli.render_diff import diff_lines
from plangate.cli.render_gate import gate_lines
from plangate.cli.render_plan import Sheet, plan_tree, value
from plangate.cli.terminal import line, put

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.console import Console
    from rich.text import Text

    from plangate.journal.journal import Journal
    from plangate.journal.questions import (
        QuestionAsked,
    )
    from plangate.journal.view import RunView
    from plangate.plan.value.frozen import Json
    from plangate.plan.value.plan import Plan
    from plangate.runtime import Runtime


def show_question(
    console: Console, runtime: Runtime, question: QuestionAsked, view: RunView, plan: Plan
) -> None:
    """Print what is asked about."""
    if question.kind == "approval":
        console.print(plan_tree(sheet_of(runtime, view, plan)))
        changes = view.plans[question.plan_version].diff
        if changes is not None:
            put(console, diff_lines(_object(runtime.journal, changes)))
        put(console, gate_lines(_object(runtime.journal, question.payload)))
        return
    put(console, [line((f"{question.audience} is asked", "bold yellow"), question.step or "")])
    payload = _object(runtime.journal, question.payload)
    put(console, _question_lines(payload))
    put(console, gate_lines(payload))


def sheet_of(runtime: Runtime, view: RunView, plan: Plan) -> Sheet:
    """Gather what is shown of a plan of a run: tier and estimate as they were recorded."""
    run = runtime.journal.runs.get(view.run_id)
    checked = view.validated.get(plan.version)
    return Sheet(
        plan=plan,
        catalog=runtime.kit.registry.catalog(run.principal.scopes),
        tier=checked.tier if checked else "",
        reasons=checked.reasons if checked else (),
        confirm=checked.confirm if checked else (),
        estimate=checked.estimate if checked else None,
        outputs=_outputs(runtime.journal, view, plan),
    )


def _outputs(journal: Journal, view: RunView, plan: Plan) -> dict[str, Json]:
    """Load the results that some step reads: its arguments are shown as they will run."""
    read = {need for step in plan.steps for need in step.data_needs}
    refs = {name: seen.output for name, seen in view.steps.items() if name in read}
    return {name: journal.artifacts.get(ref) for name, ref in refs.items() if ref is not None}


def _object(journal: Journal, ref: str) -> Mapping[str, Any]:
    found = journal.artifacts.get(ref)
    return found if isinstance(found, dict) else {}


def _question_lines(payload: Mapping[str, Any]) -> Iterator[Text]:
    yield line("  ", payload.get("text", ""))
    details = payload.get("details") or {}
    for name, given in details.items():
        yield line("  ", (name, "bold"), given if isinstance(given, str) else value(given))
