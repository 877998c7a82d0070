"""Tools that look something up in the shop; none of them changes anything.

What customers wrote themselves is in no result: text from outside stays outside of the plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from plangate.examples.refund.rules import (
    Classified,
    FulfillmentType,
    No,
    OrderStatus,
    ShippingState,
    classify,
)
from plangate.plan.catalog import Labels
from plangate.tools.answers import ToolFailed
from plangate.tools.tool import tool

if TYPE_CHECKING:
    from plangate.examples.refund.shop import Found
    from plangate.examples.refund.world import RefundWorld
    from plangate.tools.context import ToolContext


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderLine:
    """One article of an order."""

    line: int
    sku: str
    amount_cents: int
    refunded_cents: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """An order as the shop's books show it."""

    order_id: str
    version: int
    status: OrderStatus
    customer_id: str
    fulfillment_type: FulfillmentType
    currency: str
    total_cents: int
    refunded_cents: int
    lines: list[OrderLine]


@dataclass(frozen=True, slots=True, kw_only=True)
class Logistics:
    """Where the carrier says that a parcel is."""

    order_id: str
    version: int
    shipping_state: Literal["not_shipped", "in_transit", "delivered", "lost"]
    carrier: str
    tracking: str
    delivered_at: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fulfillment:
    """What the order itself says about its shipping."""

    order_id: str
    version: int
    status: OrderStatus
    fulfillment_type: FulfillmentType
    promised_ship_at: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRule:
    """The one rule of the policy in force that covers a case."""

    policy_id: str
    version: int
    rule_id: str
    refundable: bool
    window_days: int | None
    auto_limit_cents: int
    text: str


_STATES: dict[str, Literal["not_shipped", "in_transit", "delivered", "lost"]] = {
    "label_created": "not_shipped",
    "in_transit": "in_transit",
    "delivered": "delivered",
    "lost": "lost",
}


@tool(
    effect="read",
    reads=("order:{order_id}",),
    evidence=("order://{order_id}?version={version}",),
    scopes=("orders:read",),
    labels=Labels(confidentiality=("pii",)),
    errors={"order_not_found": "business_rejection"},
    timeout_s=10,
    seconds=0.02,
    usd=0,
    output_tokens=160,
)
def query_order(order_id: str, context: ToolContext) -> Order:
    """Read an order: status, version, and what was paid and refunded for each line."""
    order, lines = find_order(context, order_id)
    return Order(
        order_id=order.order_id,
        version=order.version,
        status=order.status,
        customer_id=order.customer_id,
        fulfillment_type=order.fulfillment_type,
        currency=order.currency,
        total_cents=sum(each.amount_cents for each in lines),
        refunded_cents=sum(each.refunded_cents for each in lines),
        lines=[
            OrderLine(
                line=each.line,
                sku=each.sku,
                amount_cents=each.amount_cents,
                refunded_cents=each.refunded_cents,
            )
            for each in lines
        ],
    )


@tool(
    effect="read",
    reads=("logistics:{order_id}",),
    evidence=("logistics://{order_id}?version={version}",),
    scopes=("logistics:read",),
    errors={"logistics_record_not_found": "permanent"},
    timeout_s=10,
    seconds=0.02,
    usd=0,
    output_tokens=80,
)
def query_logistics(order_id: str, context: ToolContext) -> Logistics:
    """Ask the carrier where the parcel of an order is."""
    world: RefundWorld = context.world
    parcel = world.shop.parcel(order_id)
    if parcel is None:
        raise ToolFailed("logistics_record_not_found", "the carrier has no record of this order")
    return Logistics(
        order_id=order_id,
        version=parcel.version,
        shipping_state=_STATES[parcel.state],
        carrier=parcel.carrier,
        tracking=parcel.tracking,
        delivered_at=parcel.delivered_at,
    )


@tool(
    effect="read",
    reads=("order:{order_id}",),
    evidence=("order://{order_id}?version={version}",),
    scopes=("orders:read",),
    errors={"order_not_found": "business_rejection"},
    timeout_s=10,
    seconds=0.02,
    usd=0,
    output_tokens=60,
)
def query_fulfillment_details(order_id: str, context: ToolContext) -> Fulfillment:
    """Read how an order is to be fulfilled, and which day of shipping was promised."""
    order, _ = find_order(context, order_id)
    return Fulfillment(
        order_id=order.order_id,
        version=order.version,
        status=order.status,
        fulfillment_type=order.fulfillment_type,
        promised_ship_at=order.promised_ship_at,
    )


@tool(
    effect="read",
    evidence=("rule://no-logistics-record/v1#{rule_id}",),
    errors={"fulfillment_conflict": "unexpected_state"},
    timeout_s=5,
    seconds=0.01,
    usd=0,
    output_tokens=40,
)
def classify_no_logistics_record(
    status: OrderStatus, fulfillment_type: FulfillmentType, promised_ship_at: str | None
) -> Classified:
    """Decide by rule what it means that the carrier has no record of an order."""
    answer = classify(status, fulfillment_type, promised_ship_at, datetime.now(UTC))
    if isinstance(answer, No):
        raise ToolFailed(answer.code, answer.says)
    return answer


@tool(
    effect="read",
    reads=("policy:{policy_id}",),
    evidence=("policy://{policy_id}/v{version}#{rule_id}",),
    scopes=("policy:read",),
    errors={"no_policy_rule": "permanent"},
    timeout_s=10,
    seconds=0.02,
    usd=0,
    output_tokens=90,
    validity_s=300,
)
def search_policy(
    policy_id: str,
    shipping_state: ShippingState,
    fulfillment_type: FulfillmentType,
    context: ToolContext,
) -> PolicyRule:
    """Find the rule of today's policy that covers a shipping state and a kind of order."""
    world: RefundWorld = context.world
    for rule in world.shop.rules(policy_id):
        applies = rule.applies
        if (
            shipping_state in applies["shipping_state"]
            and fulfillment_type in applies["fulfillment_type"]
        ):
            return PolicyRule(
                policy_id=rule.policy_id,
                version=rule.version,
                rule_id=rule.rule_id,
                refundable=rule.refundable,
                window_days=rule.window_days,
                auto_limit_cents=rule.auto_limit_cents,
                text=rule.text,
            )
    raise ToolFailed("no_policy_rule", f"no rule for {fulfillment_type} goods {shipping_state}")


def find_order(context: ToolContext, order_id: str) -> Found:
    """Return an order and its lines, or say that there is none."""
    world: RefundWorld = context.world
    found = world.shop.order(order_id)
    if found is None:
        raise ToolFailed("order_not_found", "there is no order with this id")
    return found
