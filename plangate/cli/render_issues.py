"""Findings about a plan as lines, and the same as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plangate.cli.terminal import count, line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.text import Text

    from plangate.plan.foreign import Mapped
    from plangate.plan.issue import Issue, Report

_STYLE = {"error": "bold red", "warning": "yellow"}


def issue_lines(issues: Iterable[Issue]) -> Iterator[Text]:
    """Yield each finding with its hint below it."""
    for issue in issues:
        where = ".".join(part for part in (issue.step or "plan", issue.field) if part)
        yield line(
            (issue.severity, _STYLE[issue.severity]),
            (where, "bold"),
            issue.says,
            (f"[{issue.layer} {issue.code}]", "dim"),
        )
        if issue.hint:
            yield line("   ", (f"hint: {issue.hint}", "dim"))


def report_lines(report: Report) -> Iterator[Text]:
    """Yield what validation found, and what it could not look at."""
    yield from issue_lines(report.issues)
    if report.not_evaluated:
        layers = ", ".join(map(str, report.not_evaluated))
        yield line(("not evaluated", "yellow"), f"layers {layers}: their input is broken")
    if report.valid:
        yield line(
            ("valid", "bold green"),
            count(len(report.warnings), "warning"),
            report.content_hash[:12],
        )
    else:
        yield line(("not valid", "bold red"), count(len(report.errors), "error"))


def mapped_line(mapped: Mapped) -> Text:
    """Say in one line how a plan of a foreign form was read."""
    ids = ", ".join(f"{theirs} is {ours}" for theirs, ours in mapped.ids.items()) or "kept"
    fields = "; ".join(f"{theirs} is {ours}" for theirs, ours in mapped.fields.items())
    return line(("read as", "bold"), f"{mapped.form}. Ids: {ids}. Fields: {fields or 'kept'}.")


def report_json(report: Report) -> dict[str, Any]:
    """Return the report as JSON data."""
    issues = [
        issue.model_dump(
            mode="json",
            include={"layer", "code", "step", "field", "says", "hint", "severity"},
        )
        for issue in report.issues
    ]
    return {
        "valid": report.valid,
        "issues": issues,
        "warnings": [each for each in issues if each["severity"] == "warning"],
        "not_evaluated": list(report.not_evaluated),
        "unreachable_steps": list(report.unreachable_steps),
        "missing_verifiers": list(report.missing_verifiers),
        "content_hash": report.content_hash,
        "policy_hash": report.policy_hash,
        "catalog_hash": report.catalog_hash,
    }
