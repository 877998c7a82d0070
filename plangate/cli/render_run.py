"""A run and its result for people: steps, verdict with evidence, estimate against actual."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE
from rich.table import Table
from rich.text import Text

from plangate.cli.render_diff import diff_lines
from plangate.cli.render_events import SAYS_STYLE, STATUS_STYLE
from plangate.cli.terminal import line, text, visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import RenderableType

    from plangate.journal.runs import Run

_RUN_STYLE = {"waiting": "yellow", "running": "cyan", "stopped": "yellow", "ended": "dim"}


def run_lines(shown: Mapping[str, Any]) -> Iterator[RenderableType]:
    """Yield a run at any moment.

    Args:
        shown: From `plangate.cli.snapshot`.
    """
    status = shown["status"]
    yield line((shown["run_id"], "bold"), (status, _RUN_STYLE.get(status, "")), shown["goal"])
    about = f"agent {shown['agent']} for {shown['principal']}, goal id {shown['goal_id']}"
    yield line("  ", (about, "dim"))
    yield from _kin_lines(shown)
    if shown["planner"]:
        yield line(
            "  ", ("planner", "dim"), f"{shown['planner']['kind']} {shown['planner']['name']}"
        )
    versions = ", ".join(f"v{each}" for each in shown["plan_versions"]) or "none"
    yield line("  ", ("plans", "dim"), versions, f"tier {shown['tier']}" if shown["tier"] else "")
    for change in shown["plan_diffs"]:
        yield from diff_lines(change["diff"])
    for step in shown["steps"]:
        yield _step_line(step)
    for effect in shown["effects"]:
        yield effect_line(effect)
    for question in shown["questions"]:
        if question["pending"]:
            asks = f"{question['audience']}: {question['kind']} {question['question_id']}"
            yield line(("waits for", "bold yellow"), asks)
    yield from _ending_lines(shown)


def result_lines(report: Mapping[str, Any]) -> Iterator[RenderableType]:
    """Yield the end of a run.

    Args:
        report: From `plangate.nodes.report`.
    """
    verdict = report["verdict"]
    yield line(
        ("verdict", "bold"), (verdict, SAYS_STYLE.get(verdict, "")), report["ending"], report["why"]
    )
    if stop := report.get("stopped"):
        yield from _stop_lines(stop)
    for check in report["verified"]:
        yield line("  ", (check["says"], SAYS_STYLE[check["says"]]), check["level"], check["claim"])
        for ref in check["evidence"]:
            yield line("     ", (f"evidence {ref}", "dim"))
        if check["why"] and check["says"] != "pass":
            yield line("     ", check["why"])
    for effect in report["effects"]:
        yield effect_line(effect)
    if report["estimate"]:
        yield bill(report["estimate"], report["actual"])


def _stop_lines(stop: Mapping[str, Any]) -> Iterator[RenderableType]:
    needs = f", {stop['needs']} more needed" if stop["needs"] else ""
    says = f"{stop['spent']} of {stop['allowed']} spent and reserved{needs}"
    yield line("  ", ("stopped at", "bold yellow"), stop["limit"], stop["step"] or "", says)
    yield line("  ", ("done", "dim"), ", ".join(stop["done"]) or "nothing")
    yield line("  ", ("not done", "dim"), ", ".join(stop["not_done"]) or "nothing")
    yield line("  ", ("what to do", "dim"), stop["what_to_do"])


def bill(estimate: Mapping[str, Any], actual: Mapping[str, Any]) -> Table:
    """Return the estimate against what was used."""
    table = Table(title="estimate against actual", title_justify="left", title_style="bold")
    for name in ("", "estimate", "95 % under", "actual"):
        table.add_column(name, justify="right" if name else "left")
    for name in ("seconds", "usd", "tokens", "calls"):
        said = estimate[name]
        middle, high = (said["p50"], said["p95"]) if isinstance(said, dict) else (said, "")
        table.add_row(name, _figure(middle), _figure(high), _figure(actual[name]))
    return table


def _figure(said: object) -> Text:
    if isinstance(said, float):
        return text(f"{said:.0f}" if said.is_integer() else f"{said:.2f}")
    return text(said)


def effect_line(effect: Mapping[str, Any]) -> Text:
    """Return an effect of the ledger."""
    state = effect["state"]
    return line(
        (effect["step"], "bold"),
        ("effect", "magenta"),
        effect["tool"],
        (state, STATUS_STYLE.get(state, "yellow")),
        effect["business_key"],
        effect["operation_id"] or "",
    )


def run_table(runs: Sequence[Run]) -> Table:
    """Return runs as a table, in the order given; where it is too narrow, the goal is cut."""
    table = Table(box=SIMPLE, padding=(0, 1, 0, 0))
    for name in ("run", "status", "agent", "updated", "goal"):
        # An id that was cut cannot be copied into the next command.
        table.add_column(name, no_wrap=name != "goal", overflow="fold")
    for run in runs:
        state = (run.ending or run.status, _RUN_STYLE.get(run.status, ""))
        verdict = run.verdict or ""
        table.add_row(
            text(run.run_id),
            line(state, (verdict, SAYS_STYLE.get(verdict, ""))),
            text(run.agent),
            text(f"{run.updated_at:%m-%d %H:%M:%S}"),
            Text(visible(run.goal), no_wrap=True, overflow="ellipsis"),
        )
    return table


def _kin_lines(shown: Mapping[str, Any]) -> Iterator[Text]:
    if cause := shown["cause"]:
        yield line("  ", ("follows", "dim"), f"run {cause['run_id']}: {cause['kind']}")
    for each in shown["followed_by"]:
        yield line("  ", ("followed by", "dim"), f"run {each['run_id']}: {each['kind']}")


def _step_line(step: Mapping[str, Any]) -> Text:
    status = step["status"]
    return line(
        (step["step"], "bold"),
        (status, STATUS_STYLE.get(status, "")),
        f"{step['elements']} elements" if step["elements"] else "",
        f"{step['attempts']} attempts" if step["attempts"] > max(1, step["elements"]) else "",
        step["error_code"],
        step["why"],
    )


def _ending_lines(shown: Mapping[str, Any]) -> Iterator[RenderableType]:
    found = [each for each in shown["issues"] if each["severity"] == "error"]
    for each in found:
        yield line((each["code"], "red"), each["step"] or "plan", each["says"])
        if each["hint"]:
            yield line("   ", (f"hint: {each['hint']}", "dim"))
    if shown["report"]:
        yield from result_lines({**shown["report"], "effects": []})
