"""The tools that end a case: write a draft, check it, file it, or close the case without one.

`file_sar_draft` trusts no earlier check: it examines the draft itself, and files nothing that the
books do not support. Its effect key is the case, so that a case has one report, however often,
and by whatever plan, it is filed.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from pydantic import Field

from plangate.examples.aml.citations import ClaimVerdict, Examined, examine
from plangate.examples.aml.draft import SECTIONS, Draft, written
from plangate.examples.aml.lookups import (
    CaseId,
    CaseInfo,
    FoundTexts,
    Profile,
    WindowDays,
    subject_of,
)
from plangate.examples.aml.matching import Comparison  # noqa: TC001 - read at run time
from plangate.examples.aml.value import Value
from plangate.plan.catalog import ArgRule, Labels
from plangate.tools.answers import Found, ToolFailed
from plangate.tools.tool import tool

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from plangate.examples.aml.casefiles import Folder
    from plangate.examples.aml.world import AmlWorld
    from plangate.tools.context import ToolContext

_PII = Labels(confidentiality=("pii",))
_TRUSTED = ArgRule(requires_trusted=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filed(Value):
    """A draft that lies in the case file."""

    case_id: str
    draft_id: str
    sha256: str
    verdict: Literal["suspicious"]
    confidence_pct: int
    """The least of its claims'."""

    claims: list[ClaimVerdict]


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed(Value):
    """A case that ended without a report."""

    case_id: str
    verdict: Literal["no_suspicion"]
    reasons: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseFile(Value):
    """A case file, opened."""

    case_id: str
    state: Literal["open", "sar_filed", "closed"]
    draft_id: str
    """Empty: there is none."""

    sha256: str
    reasons: list[str]


@tool(
    effect="read",
    scopes=("aml:read",),
    labels=_PII,
    errors={"no_consent": "business_rejection"},
    timeout_s=10,
    seconds=0.05,
    usd=0,
    output_tokens=1_500,
)
def draft_sar(
    case: CaseInfo,
    profile: Profile,
    comparison: Comparison,
    texts: FoundTexts,
    consent: bool,  # noqa: FBT001 - called by name only
    context: ToolContext,
) -> Draft:
    """Write the draft of a report from the findings, in six sections, each claim with its cites."""
    if not consent:
        raise ToolFailed("no_consent", "nobody agreed to a draft")
    world: AmlWorld = context.world
    return _slipped(written(case, profile, comparison, texts), world.files.takes_invention())


@tool(
    effect="read",
    reads=("case:{case_id}",),
    evidence=("txn://{transactions}",),
    scopes=("aml:read",),
    labels=_PII,
    errors={"case_not_found": "permanent"},
    timeout_s=60,
    seconds=0.1,
    usd=0,
    output_tokens=900,
)
def check_citations(
    case_id: CaseId, window_days: WindowDays, draft: Draft, context: ToolContext
) -> Examined:
    """Recompute every id, sum and figure of a draft from the bank's books."""
    return examine(context.world, subject_of(context, case_id, window_days), draft)


def find_ending(effect_key: str, args: Mapping[str, Any], context: ToolContext) -> Found:
    """Ask the case files whether a case was ended by the effect with this key."""
    world: AmlWorld = context.world
    if world.files.by_key(effect_key) is None:
        return Found(happened=False)
    return Found(happened=True, output=asdict(_ended(world, args["case_id"])))


@tool(
    effect="write",
    idempotent=True,
    key="sar:{case_id}",
    scope="global",
    reconcile=find_ending,
    writes=("case:{case_id}",),
    evidence=("sar://{draft_id}", "case://{case_id}"),
    scopes=("aml:file",),
    labels=_PII,
    arg_rules={"case_id": _TRUSTED, "window_days": _TRUSTED},
    errors={
        "case_not_found": "permanent",
        "citations_do_not_hold": "business_rejection",
        "case_has_ended": "business_rejection",
        "no_effect_key": "permanent",
    },
    timeout_s=60,
    seconds=0.2,
    usd=0,
    output_tokens=900,
)
def file_sar_draft(
    case_id: CaseId, window_days: WindowDays, draft: Draft, context: ToolContext
) -> Filed:
    """Put the draft of a report into the case file, for the compliance officer to send."""
    examined = examine(context.world, subject_of(context, case_id, window_days), draft)
    if not examined.holds:
        raise ToolFailed("citations_do_not_hold", "; ".join(examined.faults)[:400])
    body = {
        "verdict": "suspicious",
        "confidence_pct": min(each.confidence_pct for each in examined.claims),
        "sections": [
            {
                "section": name,
                "claims": [asdict(each) for each in examined.claims if each.section == name],
            }
            for name in SECTIONS
        ],
    }

    def change(world: AmlWorld, key: str) -> Folder:
        return world.files.file(key, case_id, body, context.principal)

    return cast("Filed", _end(context, change, case_id))


@tool(
    effect="write",
    idempotent=True,
    key="close:{case_id}",
    scope="global",
    reconcile=find_ending,
    writes=("case:{case_id}",),
    evidence=("case://{case_id}",),
    scopes=("aml:file",),
    arg_rules={"case_id": _TRUSTED, "reasons": _TRUSTED},
    errors={"case_has_ended": "business_rejection", "no_effect_key": "permanent"},
    timeout_s=60,
    seconds=0.1,
    usd=0,
    output_tokens=120,
)
def close_case(
    case_id: CaseId,
    reasons: Annotated[list[str], Field(min_length=1, max_length=20)],
    context: ToolContext,
) -> Closed:
    """Close a case without a report, with the reason for each typology."""

    def change(world: AmlWorld, key: str) -> Folder:
        return world.files.close_case(key, case_id, reasons, context.principal)

    return cast("Closed", _end(context, change, case_id))


@tool(
    effect="read",
    reads=("case:{case_id}",),
    evidence=("case://{case_id}", "sar://{draft_id}"),
    scopes=("aml:read",),
    timeout_s=10,
    seconds=0.05,
    usd=0,
    output_tokens=80,
)
def open_case(case_id: CaseId, context: ToolContext) -> CaseFile:
    """Open the case file and see how the case stands."""
    world: AmlWorld = context.world
    folder = world.files.folder(case_id)
    return CaseFile(
        case_id=case_id,
        state=folder.state,
        draft_id=folder.draft_id or "",
        sha256=folder.sha256 or "",
        reasons=list(folder.reasons),
    )


def _end(
    context: ToolContext, change: Callable[[AmlWorld, str], Folder], case_id: str
) -> Filed | Closed:
    from plangate.examples.aml.casefiles import Refused  # noqa: PLC0415 - needs the database

    world: AmlWorld = context.world
    if context.effect_key is None:
        raise ToolFailed("no_effect_key", "a case ends under an effect key, so that it ends once")
    try:
        change(world, context.effect_key)
    except Refused as exc:
        raise ToolFailed(exc.code, str(exc)) from exc
    return _ended(world, case_id)


def _ended(world: AmlWorld, case_id: str) -> Filed | Closed:
    """Return how a case ended, as its file shows it."""
    for row in world.files.closures_of(case_id):
        return Closed(case_id=case_id, verdict="no_suspicion", reasons=list(row["reasons"]))
    row = world.files.drafts_of(case_id)[0]
    claims = [ClaimVerdict(**each) for part in row["body"]["sections"] for each in part["claims"]]
    return Filed(
        case_id=case_id,
        draft_id=row["draft_id"],
        sha256=row["sha256"],
        verdict="suspicious",
        confidence_pct=row["body"]["confidence_pct"],
        claims=claims,
    )


def _slipped(draft: Draft, invents: str) -> Draft:
    """Return a draft with something invented, where the world asks for it."""
    at = next((n for n, each in enumerate(draft.claims) if each.section == "activity"), None)
    if not invents or at is None:
        return draft
    claim = draft.claims[at]
    changed = {
        "id": replace(claim, cites=["txn://T-0000000000", *claim.cites[1:]]),
        "amount": replace(claim, total_cents=claim.total_cents + 1),
        "text": replace(claim, text=f"{claim.text} A further EUR 9,999,999.00 went abroad."),
    }[invents]
    return Draft(claims=[*draft.claims[:at], changed, *draft.claims[at + 1 :]])
