"""The tools around the money: is a refund due, pay it, is it paid, do all books agree.

`create_refund` is the only tool of this agent that acts. Its effect key is the provider's
idempotency key, so however often it is called for one order, line and amount, money moves once.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from plangate.examples.refund.lookups import find_order
from plangate.examples.refund.rules import (
    Case,
    Cents,
    LineNumber,
    OrderStatus,
    ShippingState,
    eligible,
)
from plangate.plan.catalog import ArgRule
from plangate.tools.answers import Found, Operation, ToolFailed
from plangate.tools.tool import tool

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plangate.examples.refund.provider import Operation as Refund
    from plangate.examples.refund.world import RefundWorld
    from plangate.tools.context import ToolContext


@dataclass(frozen=True, slots=True, kw_only=True)
class Eligibility:
    """A refund that is due."""

    check_id: Literal["refund_eligibility_v4"]
    eligible: bool
    order_id: str
    order_version: int
    line: int
    eligible_amount_cents: int
    over_auto_limit: bool
    """True if the policy wants a person to look at it."""

    policy_version: int
    rule_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RefundState:
    """A refund at the provider."""

    operation_id: str
    status: Literal["accepted", "completed", "failed"]
    order_id: str
    line: int
    amount_cents: int
    refund_id: str | None
    """Of the payment; null until it is made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalState:
    """What the shop's and the provider's books say, side by side."""

    order_id: str
    order_version: int
    order_status: OrderStatus
    line: int
    line_refunded_cents: int
    provider_state: Literal["completed"]
    refund_id: str
    paid_cents: int
    consistent: bool
    """True if the shop booked for this line exactly what the provider paid."""


@tool(
    effect="read",
    reads=("order:{order_id}",),
    evidence=(
        "order://{order_id}?version={order_version}",
        "policy://refund/v{policy_version}#{rule_id}",
    ),
    scopes=("orders:read", "policy:read"),
    errors={
        "not_eligible": "business_rejection",
        "already_refunded": "business_rejection",
        "amount_differs": "business_rejection",
        "order_not_found": "business_rejection",
        "order_changed": "unexpected_state",
        "no_policy_rule": "permanent",
    },
    timeout_s=10,
    seconds=0.03,
    usd=0,
    output_tokens=90,
)
def verify_eligibility(  # noqa: PLR0913, PLR0917 - a plan shows each of these values by its name
    order_id: str,
    order_version: int,
    line: LineNumber,
    amount_cents: Cents,
    shipping_state: ShippingState,
    policy_version: int,
    rule_id: str,
    context: ToolContext,
) -> Eligibility:
    """Decide by rule whether a line of an order may be refunded with this amount."""
    world: RefundWorld = context.world
    order, lines = find_order(context, order_id)
    if order.version != order_version:
        raise ToolFailed("order_changed", f"it is at version {order.version} by now")
    sold = next((each for each in lines if each.line == line), None)
    rules = world.shop.rules("refund", policy_version)
    rule = next((each for each in rules if each.rule_id == rule_id), None)
    if sold is None or rule is None:
        missing = "amount_differs" if sold is None else "no_policy_rule"
        raise ToolFailed(missing, "there is no such line of the order or rule of the policy")
    parcel = world.shop.parcel(order_id)
    case = Case(
        asked_cents=amount_cents,
        line_cents=sold.amount_cents,
        refunded_cents=sold.refunded_cents,
        refundable=rule.refundable and shipping_state in rule.applies["shipping_state"],
        rule_id=rule_id,
        window_days=rule.window_days,
        delivered_at=None if parcel is None else parcel.delivered_at,
    )
    no = eligible(case, datetime.now(UTC))
    if no is not None:
        seen = f"order://{order_id}?version={order_version}"
        raise ToolFailed(
            no.code, no.says, evidence=(seen, f"policy://refund/v{policy_version}#{rule_id}")
        )
    return Eligibility(
        check_id="refund_eligibility_v4",
        eligible=True,
        order_id=order_id,
        order_version=order_version,
        line=line,
        eligible_amount_cents=amount_cents,
        over_auto_limit=amount_cents > rule.auto_limit_cents,
        policy_version=policy_version,
        rule_id=rule_id,
    )


def find_refund(effect_key: str, _args: Mapping[str, Any], context: ToolContext) -> Found:
    """Ask the provider whether it ever accepted a refund with this idempotency key."""
    world: RefundWorld = context.world
    known = world.provider.by_key(effect_key)
    return Found(known is not None, None if known is None else known.operation_id)


def poll_refund(operation_id: str, context: ToolContext) -> Operation:
    """Ask the provider how far an accepted refund is."""
    refund = _look_up(context, operation_id)
    if refund.state == "failed":
        return Operation("failed", code="provider_declined", business_state=refund.failure_code)
    if refund.state == "accepted":
        return Operation("pending", business_state=refund.state)
    return Operation("done", output=_shown(refund), business_state=refund.state)


@tool(
    effect="irreversible",
    external=True,
    idempotent=True,
    key="refund:{order_id}:{line}:{amount_cents}",
    scope="global",
    reconcile=find_refund,
    status=poll_refund,
    writes=("order:{order_id}",),
    evidence=("operation://{operation_id}", "refund://{refund_id}"),
    scopes=("refund:create",),
    arg_rules={
        "order_id": ArgRule(requires_trusted=True),
        "line": ArgRule(requires_trusted=True),
        "amount_cents": ArgRule(requires_trusted=True),
    },
    errors={
        "amount_exceeds_payment": "business_rejection",
        "provider_declined": "business_rejection",
        "idempotency_key_reused": "permanent",
        "no_effect_key": "permanent",
    },
    timeout_s=2,
    seconds=0.4,
    usd=0,
    output_tokens=60,
)
def create_refund(
    order_id: str, line: LineNumber, amount_cents: Cents, context: ToolContext
) -> RefundState:
    """Pay the amount of an order's line back to the customer; the provider finishes it later."""
    from plangate.examples.refund.provider import Refused  # noqa: PLC0415 - needs the database

    if context.effect_key is None:
        raise ToolFailed("no_effect_key", "a refund needs an effect key to be paid once")
    world: RefundWorld = context.world
    try:
        accepted = world.provider.refund(context.effect_key, order_id, line, amount_cents)
    except Refused as exc:
        raise ToolFailed(exc.code, str(exc)) from exc
    context.progress(f"the provider accepted {accepted.operation_id}")
    return RefundState(**_shown(accepted))


@tool(
    effect="read",
    external=True,
    reads=("refund:{operation_id}",),
    evidence=("operation://{operation_id}", "refund://{refund_id}"),
    scopes=("refund:read",),
    errors={"operation_not_found": "permanent"},
    timeout_s=10,
    seconds=0.05,
    usd=0,
    output_tokens=60,
)
def query_refund(operation_id: str, context: ToolContext) -> RefundState:
    """Ask the provider for the state of a refund."""
    return RefundState(**_shown(_look_up(context, operation_id)))


@tool(
    effect="read",
    external=True,
    reads=("order:{order_id}", "refund:{operation_id}"),
    evidence=("order://{order_id}?version={order_version}", "refund://{refund_id}"),
    scopes=("orders:read", "refund:read"),
    errors={
        "order_not_found": "business_rejection",
        "operation_not_found": "permanent",
        "refund_not_settled": "transient",
        "another_order": "unexpected_state",
    },
    timeout_s=10,
    seconds=0.05,
    usd=0,
    output_tokens=90,
)
def verify_final_state(
    order_id: str, line: LineNumber, operation_id: str, context: ToolContext
) -> FinalState:
    """Compare what the shop booked for a line with what the provider paid."""
    world: RefundWorld = context.world
    refund = _look_up(context, operation_id)
    if (refund.order_id, refund.line) != (order_id, line):
        raise ToolFailed("another_order", "the operation is about another order or line")
    if refund.state != "completed" or refund.refund_id is None:
        raise ToolFailed("refund_not_settled", f"the provider says {refund.state}")
    order, lines = find_order(context, order_id)
    booked = sum(each.refunded_cents for each in lines if each.line == line)
    paid = [each for each in world.payments(order_id) if each["line"] == line]
    return FinalState(
        order_id=order_id,
        order_version=order.version,
        order_status=order.status,
        line=line,
        line_refunded_cents=booked,
        provider_state="completed",
        refund_id=refund.refund_id,
        paid_cents=refund.amount_cents,
        consistent=booked == sum(each["amount_cents"] for each in paid),
    )


def _look_up(context: ToolContext, operation_id: str) -> Refund:
    world: RefundWorld = context.world
    refund = world.provider.operation(operation_id)
    if refund is None:
        raise ToolFailed("operation_not_found", "the provider does not know this operation")
    return refund


def _shown(refund: Refund) -> dict[str, Any]:
    return {
        "operation_id": refund.operation_id,
        "status": refund.state,
        "order_id": refund.order_id,
        "line": refund.line,
        "amount_cents": refund.amount_cents,
        "refund_id": refund.refund_id,
    }
