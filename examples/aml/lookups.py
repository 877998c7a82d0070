"""Tools that look things up: the case, the customer, the transactions, lists and texts.

What outsiders wrote is in one place only, `list_transactions`, and labelled untrusted there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from pydantic import Field

from plangate.examples.aml.bm25 import ranked
from plangate.examples.aml.books import day_of, others
from plangate.examples.aml.rules import typology_texts
from plangate.examples.aml.value import Value
from plangate.plan.catalog import Labels
from plangate.tools.answers import ToolFailed
from plangate.tools.tool import tool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plangate.examples.aml.books import Subject
    from plangate.examples.aml.world import AmlWorld
    from plangate.tools.context import ToolContext

CaseId: TypeAlias = Annotated[str, Field(pattern=r"^CASE-[0-9]{4,8}$", max_length=13)]
WindowDays: TypeAlias = Annotated[int, Field(ge=7, le=92)]
_OUTSIDE = Labels(integrity="untrusted", confidentiality=("pii",))


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseInfo(Value):
    """What an alert is about."""

    case_id: CaseId
    account_id: str
    customer_id: str
    alert: str
    first_day: str
    last_day: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile(Value):
    """What a customer declared, and whether the record is current."""

    customer_id: str
    kind: Literal["person", "business"]
    occupation: str
    residence: str
    kyc_status: Literal["current", "expired"]
    monthly_income_cents: int
    monthly_cash_cents: int
    regular_payers: int
    regular_payees: int
    accounts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction(Value):
    """One transaction of the account, with what outsiders wrote."""

    txn_id: str
    day: str
    direction: Literal["in", "out"]
    channel: str
    other: str
    amount_cents: int
    memo: str
    other_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed(Value):
    """The transactions of a window."""

    case_id: CaseId
    count: int
    in_cents: int
    out_cents: int
    ids: list[str]
    transactions: list[Transaction]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit(Value):
    """A party that stands on the watch list."""

    party_id: str
    entry: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Screening(Value):
    """The other ends of a window's transactions, held against the watch list."""

    case_id: CaseId
    screened: int
    hits: list[Hit]
    transactions: list[str]
    """With those that are listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundText(Value):
    """A text of the compliance library."""

    ref: str
    title: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTexts(Value):
    """Texts, best first."""

    ids: list[str]
    refs: list[str]
    texts: list[FoundText]


@tool(
    effect="read",
    reads=("case:{case_id}",),
    evidence=("case://{case_id}",),
    scopes=("aml:read",),
    errors={"case_not_found": "permanent"},
    timeout_s=60,
    seconds=0.05,
    usd=0,
    output_tokens=90,
)
def query_case(case_id: CaseId, window_days: WindowDays, context: ToolContext) -> CaseInfo:
    """Read a case: the account it is about, why it was opened, and its window."""
    subject = subject_of(context, case_id, window_days)
    return CaseInfo(
        case_id=case_id,
        account_id=subject.account_id,
        customer_id=subject.customer_id,
        alert=subject.alert,
        first_day=day_of(subject.window.start),
        last_day=day_of(subject.window.end),
    )


@tool(
    effect="read",
    reads=("case:{case_id}",),
    evidence=("kyc://{customer_id}",),
    scopes=("aml:read",),
    labels=Labels(confidentiality=("pii",)),
    errors={"case_not_found": "permanent"},
    timeout_s=60,
    seconds=0.05,
    usd=0,
    output_tokens=120,
)
def customer_profile(case_id: CaseId, context: ToolContext) -> Profile:
    """Read what the customer of a case declared, and whether that record is current."""
    subject = subject_of(context, case_id, 30)
    return Profile(
        customer_id=subject.customer_id,
        kind="person" if subject.kind == "person" else "business",
        occupation=subject.occupation,
        residence=subject.residence,
        kyc_status="current" if subject.is_known else "expired",
        monthly_income_cents=subject.monthly_income_cents,
        monthly_cash_cents=subject.monthly_cash_cents,
        regular_payers=subject.regular_payers,
        regular_payees=subject.regular_payees,
        accounts=len(subject.own),
    )


@tool(
    effect="read",
    reads=("case:{case_id}",),
    evidence=("txn://{ids}",),
    scopes=("aml:read",),
    labels=Labels(confidentiality=("pii",)),
    field_labels={"transactions.memo": _OUTSIDE, "transactions.other_name": _OUTSIDE},
    errors={"case_not_found": "permanent"},
    timeout_s=60,
    seconds=0.05,
    usd=0,
    output_tokens=2_500,
)
def list_transactions(case_id: CaseId, window_days: WindowDays, context: ToolContext) -> Listed:
    """List the transactions of a case's account within its window, with memos and names."""
    world: AmlWorld = context.world
    subject = subject_of(context, case_id, window_days)
    rows = world.bank.rows(subject)
    ends = list(others(rows, subject))  # type: ignore[arg-type] # a row has a move's fields
    names = world.bank.names(ends)
    listed = [
        Transaction(
            txn_id=row.txn_id,
            day=day_of(row.at),
            direction="in" if row.target == subject.account_id else "out",
            channel=row.channel,
            other=end,
            amount_cents=row.amount_cents,
            memo=row.memo,
            other_name=names.get(end, ""),
        )
        for row, end in zip(rows, ends, strict=True)
    ]
    return Listed(
        case_id=case_id,
        count=len(listed),
        in_cents=sum(each.amount_cents for each in listed if each.direction == "in"),
        out_cents=sum(each.amount_cents for each in listed if each.direction == "out"),
        ids=[each.txn_id for each in listed],
        transactions=listed,
    )


@tool(
    effect="read",
    reads=("case:{case_id}",),
    evidence=("txn://{transactions}",),
    scopes=("aml:read",),
    errors={"case_not_found": "permanent"},
    timeout_s=60,
    seconds=0.05,
    usd=0,
    output_tokens=80,
)
def screen_counterparties(
    case_id: CaseId, window_days: WindowDays, context: ToolContext
) -> Screening:
    """Hold the other ends of the transactions against the watch list, by registered id."""
    world: AmlWorld = context.world
    subject = subject_of(context, case_id, window_days)
    return screened(world, subject)


@tool(
    effect="read",
    evidence=("typology://{ids}",),
    scopes=("aml:read",),
    timeout_s=10,
    seconds=0.02,
    usd=0,
    output_tokens=400,
    validity_s=3_600,
)
def search_typology_texts(query: str, most: Annotated[int, Field(ge=1, le=10)]) -> FoundTexts:
    """Find the texts of the compliance library that fit some words, best first."""
    texts = typology_texts()
    found = ranked(query, [f"{each.title} {each.text}" for each in texts])[:most]
    return FoundTexts(
        ids=[texts[at].ref.removeprefix("typology://") for at in found],
        refs=[texts[at].ref for at in found],
        texts=[
            FoundText(ref=texts[at].ref, title=texts[at].title, text=texts[at].text) for at in found
        ],
    )


def screened(world: AmlWorld, subject: Subject) -> Screening:
    """Return what screening says of a subject; also for a preview."""
    moves = [move for move in world.bank.moves(subject) if subject.window.holds(move)]
    ends = list(others(moves, subject))
    listed = world.bank.listed(sorted(set(ends)))
    return Screening(
        case_id=subject.case_id,
        screened=len(set(ends)),
        hits=[Hit(party_id=party, entry=listed[party]) for party in sorted(listed)],
        transactions=[move.txn_id for move, end in zip(moves, ends, strict=True) if end in listed],
    )


def subject_of(context: ToolContext, case_id: str, days: int) -> Subject:
    """Return who a case is about, or say that there is no such case."""
    world: AmlWorld = context.world
    subject = world.bank.subject(case_id, days)
    if subject is None:
        raise ToolFailed("case_not_found", f"there is no case {case_id}")
    return subject


def refs(scheme: str, ids: Sequence[str]) -> tuple[str, ...]:
    """Return ids in the form in which they are cited.

    Example:
        >>> refs("txn", ["T-1", "T-2"])
        ('txn://T-1', 'txn://T-2')
    """
    return tuple(f"{scheme}://{each}" for each in ids)
