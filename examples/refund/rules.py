"""The shop's own rules, as pure functions: what a missing record means, what may be refunded.

Each answer is either a value or a `No` with a code; neither looks anything up.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

ShippingState: TypeAlias = Literal["not_shipped", "in_transit", "delivered", "lost", "digital"]
FulfillmentType: TypeAlias = Literal["standard", "presale", "digital"]
LineNumber: TypeAlias = Annotated[int, Field(ge=1)]
Cents: TypeAlias = Annotated[int, Field(ge=1, le=10_000_000)]
OrderStatus: TypeAlias = Literal["placed", "packed", "shipped", "delivered", "refunded"]


@dataclass(frozen=True, slots=True)
class No:
    """A reason why not."""

    code: str
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Classified:
    """What it means that the carrier has no record."""

    shipping_state: Literal["not_shipped", "digital"]
    rule_id: str
    reason: str
    conflict: str = ""
    """What in the order contradicts it; empty: nothing."""


def classify(
    status: OrderStatus, kind: FulfillmentType, promised_ship_at: str | None, now: datetime
) -> Classified | No:
    """Say where an order is that the carrier does not know.

    A missing record may mean that nothing was shipped; it may also mean that a record was lost.
    Only where the order's own data agree with the first is it taken for that.
    """
    if kind == "digital":
        return Classified(
            shipping_state="digital", rule_id="NL1", reason="digital goods have no parcel"
        )
    if status not in ("placed", "packed"):
        return No("fulfillment_conflict", f"the order is {status}, but the carrier has no record")
    if kind == "standard":
        return Classified(
            shipping_state="not_shipped", rule_id="NL2", reason=f"{status}, and no label printed"
        )
    if promised_ship_at is not None and datetime.fromisoformat(promised_ship_at) > now:
        return Classified(
            shipping_state="not_shipped", rule_id="NL3", reason="a presale before its day"
        )
    return Classified(
        shipping_state="not_shipped",
        rule_id="NL4",
        reason="a presale that waits",
        conflict="its day of shipping is past or unknown, and it is still marked as not shipped",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """All that the decision on a refund rests on."""

    asked_cents: int
    line_cents: int
    refunded_cents: int
    refundable: bool
    rule_id: str
    window_days: int | None
    delivered_at: str | None


def eligible(case: Case, now: datetime) -> No | None:
    """Decide whether the line may be refunded; None: it may."""
    if case.refunded_cents >= case.line_cents:
        return No("already_refunded", "the line was refunded before")
    if case.asked_cents > case.line_cents - case.refunded_cents:
        return No("amount_differs", "more is asked back than is left of the line")
    if not case.refundable:
        return No("not_eligible", f"rule {case.rule_id} does not allow a refund")
    if case.window_days is not None and not _within(case.window_days, case.delivered_at, now):
        return No("not_eligible", f"rule {case.rule_id}: the return window is over")
    return None


def _within(days: int, delivered_at: str | None, now: datetime) -> bool:
    if delivered_at is None:
        return False
    return now - datetime.fromisoformat(delivered_at) <= timedelta(days=days)
