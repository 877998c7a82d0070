"""Holds a draft against the bank's books: every id, every sum, every figure in its text.

The draft's own account proves nothing. Ids are looked up, sums are added up again, the rule engine
is run again for each typology that a claim says was found. What does not agree is named.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from plangate.examples.aml.draft import SECTIONS, Claim, Draft
from plangate.examples.aml.engine import ENGINE, sight_of
from plangate.examples.aml.finding import TYPOLOGIES, Finding
from plangate.examples.aml.rules import Rules, rules, typology_texts
from plangate.examples.aml.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from plangate.examples.aml.books import Move, Subject
    from plangate.examples.aml.world import AmlWorld

_ID = re.compile(r"\bT-[0-9A-Za-z]+")
_NAMED = re.compile(r"\b(?:T|ACC|CUS|CP|CASE|SAR|AML)-[0-9A-Za-z/]+|\d{4}-\d{2}-\d{2}")
_FIGURE = re.compile(r"\d[\d,]*\.\d{2}\b|\d{1,3}(?:,\d{3})+|\d{4,}")
_OUTSIDE = re.compile(r"https?:|www\.|\S@\S|[<>{}$`]", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimVerdict(Value):
    """What the books say to one claim."""

    section: str
    text: str
    verdict: Literal["supported", "unsupported"]
    confidence_pct: int
    """Of a supported claim: 100 for what was recomputed, the rule's strength for a typology. Of an
    unsupported one 0."""

    why: str
    cites: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined(Value):
    """A draft, claim by claim."""

    case_id: str
    holds: bool
    claims: list[ClaimVerdict]
    unknown: list[str]
    """References that lead nowhere in this case."""

    faults: list[str]
    transactions: list[str]
    """Ids that were found in the books."""


class _Books:
    """What a draft about one subject may cite, and what the engine says of it."""

    def __init__(self, world: AmlWorld, subject: Subject) -> None:

        self.rules: Rules = rules()
        sight = sight_of(world.bank, subject, self.rules)
        self.findings: Mapping[str, Finding] = {name: ENGINE[name](sight) for name in TYPOLOGIES}
        ways = [txn for each in self.findings.values() for txn in each.transactions]
        self.moves: Mapping[str, Move] = {
            **{move.txn_id: move for move in sight.now},
            **world.bank.by_id(ways),
        }
        self.others = {f"case://{subject.case_id}", f"kyc://{subject.customer_id}"}
        self.others |= {each.ref for each in typology_texts()}

    def knows(self, ref: str) -> bool:
        """True if a reference leads to something of this case."""
        return ref in self.others or ref.removeprefix("txn://") in self.moves


def examine(world: AmlWorld, subject: Subject, draft: Draft) -> Examined:
    """Decide on each claim of a draft."""
    books = _Books(world, subject)
    verdicts = [_verdict(books, claim) for claim in draft.claims]
    cited = list(dict.fromkeys(ref for claim in draft.claims for ref in claim.cites))
    faults = [f"{each.section}: {each.why}" for each in verdicts if each.why]
    missing = [name for name in SECTIONS if name not in {each.section for each in draft.claims}]
    faults += [f"there is no section {name!r}" for name in missing]
    return Examined(
        case_id=subject.case_id,
        holds=not faults,
        claims=verdicts,
        unknown=[ref for ref in cited if not books.knows(ref)],
        faults=faults,
        transactions=[
            ref.removeprefix("txn://")
            for ref in cited
            if ref.startswith("txn://") and books.knows(ref)
        ],
    )


def _verdict(books: _Books, claim: Claim) -> ClaimVerdict:
    faults = [*_citation_faults(books, claim), *_text_faults(books, claim)]
    faults += _typology_faults(books, claim)
    sure = books.findings[claim.typology].strength_pct if claim.typology != "none" else 100
    return ClaimVerdict(
        section=claim.section,
        text=claim.text,
        verdict="unsupported" if faults else "supported",
        confidence_pct=0 if faults else sure,
        why="; ".join(faults),
        cites=claim.cites,
    )


def _citation_faults(books: _Books, claim: Claim) -> Iterator[str]:
    if not claim.cites:
        yield "it cites nothing"
    if len(set(claim.cites)) != len(claim.cites):
        yield "it cites something twice"
    if unknown := [ref for ref in claim.cites if not books.knows(ref)]:
        yield f"not in the books of this case: {_shown(unknown)}"
        return
    moves = _cited(books, claim)
    if claim.count != len(moves):
        yield f"it counts {claim.count} transactions and cites {len(moves)}"
    total = sum(move.amount_cents for move in moves)
    if claim.total_cents != total:
        yield f"it says {claim.total_cents} cents, and they add up to {total}"


def _typology_faults(books: _Books, claim: Claim) -> Iterator[str]:
    if claim.typology == "none":
        return
    finding = books.findings[claim.typology]
    if finding.status != "matched":
        yield f"the rules say {finding.typology} is {finding.status}"
    elif not {move.txn_id for move in _cited(books, claim)} <= set(finding.transactions):
        yield f"it cites transactions that are no part of the {finding.typology}"


def _text_faults(books: _Books, claim: Claim) -> Iterator[str]:
    """Ids and figures in the words must be those that are cited; no orders from outside."""
    if any(unicodedata.category(each) in ("Cc", "Cf", "Co", "Cn") for each in claim.text):
        yield "its text holds control characters"
    if _OUTSIDE.search(claim.text):
        yield "its text holds an address or markup"
    moves = _cited(books, claim)
    ids = {move.txn_id for move in moves}
    if wrong := [each for each in _ID.findall(claim.text) if each not in ids]:
        yield f"its text names what it does not cite: {_shown(wrong)}"
    known = {move.amount_cents for move in moves} | {claim.total_cents} | _allowed(books, claim)
    said = _FIGURE.findall(_NAMED.sub(" ", claim.text))
    if wrong := [each for each in said if _cents(each) not in known]:
        yield f"its text holds figures that nothing supports: {_shown(wrong)}"


def _allowed(books: _Books, claim: Claim) -> set[int]:
    """Figures that the rule engine's own reasons hold, besides sums: thresholds, declarations."""
    allowed = {books.rules.structuring.threshold_cents}
    for finding in books.findings.values():
        if finding.reason in claim.text:
            allowed |= {_cents(each) for each in _FIGURE.findall(_NAMED.sub(" ", finding.reason))}
    return allowed


def _cited(books: _Books, claim: Claim) -> Sequence[Move]:
    ids = (ref.removeprefix("txn://") for ref in claim.cites if ref.startswith("txn://"))
    return [books.moves[each] for each in ids if each in books.moves]


def _cents(figure: str) -> int:
    whole, _, rest = figure.replace(",", "").partition(".")
    return int(whole) * 100 + int(rest or 0)


def _shown(found: Sequence[str]) -> str:
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""  # noqa: PLR2004
    return ", ".join(found[:3]) + more
