"""The rule engine as tools: one holds a typology against a case, one compares what was found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from plangate.examples.aml.engine import ENGINE, sight_of
from plangate.examples.aml.finding import Finding, Typology, euros
from plangate.examples.aml.lookups import CaseId, Screening, WindowDays, refs, subject_of
from plangate.examples.aml.rules import rules
from plangate.examples.aml.value import Value
from plangate.tools.tool import tool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plangate.examples.aml.books import Subject
    from plangate.examples.aml.world import AmlWorld
    from plangate.tools.context import ToolContext


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison(Value):
    """All typologies side by side, and what follows."""

    case_id: CaseId
    disposition: Literal["suspicious", "no_suspicion"] | None
    """Null: nothing was found, and not everything can be told. That is never taken for a no."""

    confidence_pct: int
    """Of the strongest match; of no suspicion 100, as every rule was decided; else 0."""

    matched: list[str]
    reasons: Annotated[list[str], Field(min_length=1, max_length=20)]
    """One line for each typology, and one for the watch list."""

    findings: list[Finding]
    transactions: list[str]
    """Of all matches and watch-list hits, each once, oldest first."""

    total_cents: int
    """Of those transactions, each counted once."""

    evidence: list[str]
    """All that a draft may cite, beside texts of the library."""

    query: str
    """Words to look the library up with."""


@tool(
    effect="read",
    reads=("case:{case_id}",),
    evidence=("txn://{transactions}",),
    scopes=("aml:read",),
    errors={"case_not_found": "permanent"},
    timeout_s=60,
    seconds=0.1,
    usd=0,
    output_tokens=150,
)
def match_typology(
    typology: Typology, case_id: CaseId, window_days: WindowDays, context: ToolContext
) -> Finding:
    """Hold one typology against a case: matched, explained, absent or undecided, and by what."""
    return judged(context.world, subject_of(context, case_id, window_days), typology)


@tool(
    effect="read",
    reads=("case:{case_id}",),
    evidence=("txn://{transactions}", "case://{case_id}"),
    scopes=("aml:read",),
    errors={"case_not_found": "permanent"},
    timeout_s=60,
    seconds=0.05,
    usd=0,
    output_tokens=700,
)
def compare_typologies(
    case_id: CaseId,
    window_days: WindowDays,
    findings: list[Finding],
    screening: Screening,
    context: ToolContext,
) -> Comparison:
    """Decide from all findings if the case is suspicious; what cannot be told is not guessed."""
    subject = subject_of(context, case_id, window_days)
    return compared(context.world, subject, findings, screening)


def compared(
    world: AmlWorld, subject: Subject, findings: Sequence[Finding], screening: Screening
) -> Comparison:
    """Return the comparison of findings; also for a preview."""
    matched = [each for each in findings if each.status == "matched"]
    wanted = {txn for each in matched for txn in each.transactions} | set(screening.transactions)
    known = world.bank.by_id(sorted(wanted))
    ordered = sorted(known.values(), key=lambda move: (move.at, move.txn_id))
    ids = [move.txn_id for move in ordered]
    explained = [txn for each in findings for txn in each.transactions]
    cited = list(dict.fromkeys((*ids, *explained)))
    about = (f"case://{subject.case_id}", f"kyc://{subject.customer_id}")
    is_open = any(each.status == "undecided" for each in findings)
    disposition: Literal["suspicious", "no_suspicion"] | None = None if is_open else "no_suspicion"
    if matched or screening.hits:
        disposition = "suspicious"
    return Comparison(
        case_id=subject.case_id,
        disposition=disposition,
        confidence_pct=max((each.strength_pct for each in matched), default=0 if is_open else 100),
        matched=[each.typology for each in matched],
        reasons=[*map(_reason, findings), f"watch list: {len(screening.hits)} hits"],
        findings=list(findings),
        transactions=ids,
        total_cents=sum(move.amount_cents for move in ordered),
        evidence=[*about, *refs("txn", cited)],
        query=" ".join(f"{each.typology} signs" for each in matched).replace("_", " "),
    )


def judged(world: AmlWorld, subject: Subject, typology: Typology) -> Finding:
    """Return what the engine says of one typology; also for a preview."""
    return ENGINE[typology](sight_of(world.bank, subject, rules()))


def _reason(finding: Finding) -> str:
    about = f"{finding.typology} {finding.status}: {finding.reason}"
    return f"{about} ({euros(finding.total_cents)})" if finding.transactions else about
