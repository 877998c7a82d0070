"""What a plan would do, shown before it does anything: a value that is worked out for free.

It is the same value wherever it is shown: on the command line, in Python, and in what a person is
asked. Whatever is not known before a plan runs is said to be unknown.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from plangate.plan.cuts import cuts
from plangate.plan.effects import expected_evidence
from plangate.plan.forecast import PlanEstimate, Range, StepEstimate
from plangate.plan.issue import Issue
from plangate.plan.value.frozen import Args, Frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from plangate.plan.catalog import ToolSpec
    from plangate.plan.facts import Facts
    from plangate.plan.issue import Report
    from plangate.plan.value.frozen import Json
    from plangate.plan.value.plan import Budget, Plan

Says: TypeAlias = Literal["yes", "no", "unknown"]
Question: TypeAlias = Literal["C_max", "T_max", "Q_min"]


class Fits(Frozen):
    """One of the three questions of a budget, answered."""

    asks: Question
    """`C_max` money, tokens and calls; `T_max` time; `Q_min` how strongly the goal is checked."""

    says: Says
    why: tuple[str, ...]


class Evidence(Frozen):
    """What a step is expected to show, in the form in which it is cited."""

    refs: tuple[str, ...] = ()
    """As `order://ORD-1`; what only the call will tell stands in braces, `?version={version}`."""

    source: Literal["preview", "contract", "none"] = "none"
    """Who says so: the tool's `preview`, or the templates of its contract."""

    unknown: str = ""
    """Why it cannot be said before."""

    nothing: str = ""
    """Why none is expected."""


class StepPreview(Frozen):
    """What one step would do."""

    id: str
    objective: str
    capability: str
    effect: str | None
    external: bool | None
    args: Args
    """With inputs filled in; what an earlier step will give stays a reference."""

    args_known: bool
    reads: tuple[str, ...] = ()
    """Resources that it reads, as `order:ORD-1`; what an earlier step will give is a reference."""

    writes: tuple[str, ...] = ()
    estimate: StepEstimate
    evidence: Evidence
    checks: tuple[str, ...] = ()


class Alternative(Frozen):
    """What a step would take if it were cut finer or coarser."""

    step: str
    says: str
    calls: Range
    usd_p50: Decimal | None
    usd_p95: Decimal | None
    seconds: Range


class Preview(Frozen):
    """What a plan would do, what it would take, and whether it may be approved."""

    goal: str
    content_hash: str
    version: int
    steps: tuple[StepPreview, ...]
    estimate: PlanEstimate
    fits: tuple[Fits, ...]
    tier: str
    reasons: tuple[str, ...]
    confirm: tuple[str, ...]
    issues: tuple[Issue, ...]
    approvable: bool
    """False: it has errors, over budget among them, and no door takes an approval."""

    cuts: tuple[str, ...] = ()
    """What to do where it is over budget."""

    alternatives: tuple[Alternative, ...] = ()
    notes: tuple[str, ...] = ()
    """How far the figures can be trusted."""

    @property
    def evidence(self) -> tuple[str, ...]:
        """All references that the steps are expected to show."""
        return tuple(dict.fromkeys(ref for step in self.steps for ref in step.evidence.refs))


_OVER = {
    "C_max": ("over_usd", "unknown_price", "over_tokens", "over_calls"),
    "T_max": ("over_seconds", "over_deadline"),
    "Q_min": ("weak_criterion", "no_criteria", "uncheckable", "no_evidence"),
}
_LAYERS = {"C_max": 6, "T_max": 6, "Q_min": 7}
BUDGET_CODES = frozenset((*_OVER["C_max"], *_OVER["T_max"]))


def fits(report: Report, plan: Plan, facts: Facts) -> tuple[Fits, ...]:
    """Answer the three questions from what validation found; what it did not look at is unknown."""
    return tuple(_fit(asks, report, plan, facts) for asks in ("C_max", "T_max", "Q_min"))


def _fit(asks: Question, report: Report, plan: Plan, facts: Facts) -> Fits:
    if _LAYERS[asks] in report.not_evaluated:
        return Fits(asks=asks, says="unknown", why=("the plan could not be evaluated so far",))
    found = [each for each in report.errors if each.code in _OVER[asks]]
    no = [each.says for each in found if each.code != "unknown_price"]
    if no:
        return Fits(asks=asks, says="no", why=tuple(no))
    if found:
        return Fits(asks=asks, says="unknown", why=tuple(each.says for each in found))
    return Fits(asks=asks, says="yes", why=_within(asks, facts.limits(plan.budget), facts))


def _within(asks: Question, limits: Budget, facts: Facts) -> tuple[str, ...]:
    """Say under which limits a plan stays, and which there are not."""
    if asks == "Q_min":
        return (f"each criterion is checked at {limits.min_level} or above",)
    priced = facts.estimate
    if asks == "T_max":
        said: dict[str, object] = {"seconds": limits.max_seconds, "deadline": limits.deadline}
        high = "" if priced is None else f"up to {priced.seconds.p95:.1f} s (estimate, p95)"
    else:
        said = {
            "USD": limits.max_usd,
            "tokens": limits.max_tokens,
            "tool calls": limits.max_tool_calls,
            "model calls": limits.max_model_calls,
        }
        usd = None if priced is None else priced.usd_p95
        cost = "an unknown amount of" if usd is None else f"up to {usd:f}"
        high = f"{cost} USD (estimate, p95)"
    held = [f"{what} limit {limit}" for what, limit in said.items() if limit is not None]
    return (high, ", ".join(held) or "no limit is set")


def notes(estimate: PlanEstimate) -> tuple[str, ...]:
    """Say how far the figures of an estimate can be trusted."""
    said = [
        "These are estimates: the middle (p50) and the high end (p95), not a bill.",
        f"Tokens counted by {estimate.token_source}."
        if estimate.token_source
        else "No model is called, so no tokens are counted.",
        f"Prices: {estimate.price_table}"
        + (f", of {estimate.price_as_of}." if estimate.price_as_of else ", of an unknown day."),
    ]
    if estimate.price_is_old:
        why = "is older than 180 days" if estimate.price_as_of else "does not say its day"
        said.append(f"The price table {why}; pass prices of your own (--prices).")
    if estimate.unknown:
        said.append(f"Not known: {'; '.join(estimate.unknown[:5])}.")
    return tuple(said)


class Judged(NamedTuple):
    """What validation and the tier say of a plan."""

    report: Report
    tier: str
    reasons: tuple[str, ...]
    confirm: tuple[str, ...]


def preview_of(
    plan: Plan,
    facts: Facts,
    judged: Judged,
    steps: Iterable[StepPreview],
    alternatives: Iterable[Alternative] = (),
) -> Preview:
    """Put a preview together; pure.

    Args:
        plan: The plan.
        facts: With its estimate.
        judged: What was found.
        steps: What each step would do.
        alternatives: What finer and coarser cuts would cost.
    """
    priced = facts.estimate
    assert priced is not None, "a preview is of a plan that was estimated"  # noqa: S101 (ours)
    over = any(each.code in BUDGET_CODES for each in judged.report.errors)
    return Preview(
        goal=plan.goal,
        content_hash=plan.content_hash,
        version=plan.version,
        steps=tuple(steps),
        estimate=priced,
        fits=fits(judged.report, plan, facts),
        tier=judged.tier,
        reasons=judged.reasons,
        confirm=judged.confirm,
        issues=judged.report.issues,
        approvable=judged.report.valid,
        cuts=cuts(priced) if over else (),
        alternatives=tuple(alternatives),
        notes=notes(priced),
    )


def expected(spec: ToolSpec, args: Mapping[str, Json], *, known: bool) -> Evidence:
    """Return the evidence that a contract promises, as far as the arguments tell.

    Args:
        spec: The contract.
        args: As far as they are known.
        known: True if no argument waits for an earlier step.
    """
    if not spec.evidence:
        return Evidence(source="contract", nothing="its contract names no evidence")
    refs = expected_evidence(spec, args)
    why = "" if known and not any("{" in ref for ref in refs) else "part of it only the call tells"
    return Evidence(refs=refs, source="contract", unknown=why)


_HOLE = re.compile(r"\{[^{}]*\}")


def unforeseen(expected_refs: Iterable[str], cited: Iterable[str]) -> tuple[str, ...]:
    """Return what was cited and not expected, in order; empty if the preview foresaw it all.

    Example:
        >>> unforeseen(["order://A?version={version}"], ["order://A?version=8", "tx://9"])
        ('tx://9',)
    """
    forms = [re.compile(_pattern(ref)) for ref in expected_refs]
    return tuple(ref for ref in cited if not any(form.fullmatch(ref) for form in forms))


def _pattern(ref: str) -> str:
    parts = _HOLE.split(ref)
    return "[^/?#]+".join(re.escape(part) for part in parts)
