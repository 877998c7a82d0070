"""The draft of a report: claims, each with what it cites; and how one is written from findings.

A claim says how many transactions it cites and what they add up to, so that it can be recomputed
from the bank's books. Nothing that an outsider wrote goes into the text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from pydantic import Field

from plangate.examples.aml.finding import Finding, euros
from plangate.examples.aml.lookups import CaseInfo, FoundTexts, Profile, refs
from plangate.examples.aml.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from plangate.examples.aml.matching import Comparison

Section: TypeAlias = Literal[
    "subject", "alert", "activity", "typologies", "explanations", "recommendation"
]
SECTIONS: tuple[Section, ...] = (
    "subject",
    "alert",
    "activity",
    "typologies",
    "explanations",
    "recommendation",
)
Meant: TypeAlias = Literal[
    "none", "structuring", "fan_in", "fan_out", "rapid_movement", "round_trip"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim(Value):
    """One sentence of a draft."""

    section: Section
    typology: Meant
    """The typology that it says was found; `none`: it says no such thing."""

    text: Annotated[str, Field(min_length=1, max_length=600)]
    cites: Annotated[list[Annotated[str, Field(max_length=80)]], Field(max_length=200)]
    count: Annotated[int, Field(ge=0)]
    """How many transactions it cites."""

    total_cents: Annotated[int, Field(ge=0)]
    """What they add up to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft(Value):
    """A report before it is filed."""

    claims: Annotated[list[Claim], Field(max_length=40)]


def written(case: CaseInfo, profile: Profile, comparison: Comparison, texts: FoundTexts) -> Draft:
    """Write a draft from findings, in six sections, without a model."""
    return Draft(claims=[*_about(case, profile), *_found(comparison, texts)])


def _about(case: CaseInfo, profile: Profile) -> Iterator[Claim]:
    of = (f"kyc://{case.customer_id}", f"case://{case.case_id}")
    says = (
        f"The account {case.account_id} belongs to {case.customer_id}, a {profile.kind}"
        f" ({profile.occupation}, {profile.residence}); the record is {profile.kyc_status}."
    )
    yield _claim("subject", says, of)
    says = f"The alert was raised for {case.alert}, from {case.first_day} to {case.last_day}."
    yield _claim("alert", says, of[1:])


def _found(comparison: Comparison, texts: FoundTexts) -> Iterator[Claim]:
    matched = [each for each in comparison.findings if each.status == "matched"]
    for each in matched:
        says = (
            f"Between {each.first_day} and {each.last_day}, {len(each.transactions)} transactions"
            f" moved {euros(each.total_cents)} in all."
        )
        yield _claim("activity", says, (), each)
    for each in matched:
        name = each.typology.replace("_", " ")
        guide = [ref for ref in texts.refs if ref == f"typology://{each.typology}-signs"]
        yield _claim("typologies", f"This fits {name}: {each.reason}.", guide, each, meant=True)
    for each in comparison.findings:
        if each.status != "matched":
            name = each.typology.replace("_", " ")
            says = f"No {name}: {each.reason}."
            yield _claim("explanations", says, (f"case://{comparison.case_id}",), each)
    count = len(comparison.transactions)
    yield Claim(
        section="recommendation",
        typology="none",
        text=f"It is proposed to report {count} transactions of {euros(comparison.total_cents)}.",
        cites=list(refs("txn", comparison.transactions)),
        count=count,
        total_cents=comparison.total_cents,
    )


def _claim(
    section: Section,
    text: str,
    cites: Sequence[str],
    finding: Finding | None = None,
    *,
    meant: bool = False,
) -> Claim:
    ids = finding.transactions if finding is not None else []
    return Claim(
        section=section,
        typology=finding.typology if finding is not None and meant else "none",
        text=text,
        cites=[*refs("txn", ids), *cites],
        count=len(ids),
        total_cents=finding.total_cents if finding is not None else 0,
    )
