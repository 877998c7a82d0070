"""Tables of the refund world: a shop, its carrier's records, its policy book, a payment provider.

The provider's tables (`provider_…`) belong to another company: the shop reads and writes them only
through `plangate.examples.refund.provider`. Amounts are integer cents.
"""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    Boolean,
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    Integer,
    MetaData,
    Table,
    Text,
)

metadata = MetaData()

customers = Table(
    "customers",
    metadata,
    Column("customer_id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("email", Text, nullable=False),
    Column("note", Text, nullable=False, default=""),
)
"""`note` is what the customer wrote: free text from outside, which no tool returns."""

orders = Table(
    "orders",
    metadata,
    Column("order_id", Text, primary_key=True),
    Column("customer_id", Text, ForeignKey("customers.customer_id"), nullable=False),
    Column("status", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("fulfillment_type", Text, nullable=False),
    Column("placed_at", Text, nullable=False),
    Column("promised_ship_at", Text),
    Column("currency", Text, nullable=False),
    CheckConstraint("status in ('placed', 'packed', 'shipped', 'delivered', 'refunded')"),
    CheckConstraint("fulfillment_type in ('standard', 'presale', 'digital')"),
)
"""`version` grows with every change of the order or its lines."""

order_lines = Table(
    "order_lines",
    metadata,
    Column("order_id", Text, ForeignKey("orders.order_id"), primary_key=True),
    Column("line", Integer, primary_key=True),
    Column("sku", Text, nullable=False),
    Column("amount_cents", Integer, nullable=False),
    Column("refunded_cents", Integer, nullable=False, default=0),
    CheckConstraint("refunded_cents between 0 and amount_cents"),
)

shipments = Table(
    "shipments",
    metadata,
    Column("order_id", Text, ForeignKey("orders.order_id"), primary_key=True),
    Column("version", Integer, nullable=False),
    Column("state", Text, nullable=False),
    Column("carrier", Text, nullable=False),
    Column("tracking", Text, nullable=False),
    Column("delivered_at", Text),
    CheckConstraint("state in ('label_created', 'in_transit', 'delivered', 'lost')"),
)
"""One row an order from the moment its label is printed; before that there is none."""

policies = Table(
    "policies",
    metadata,
    Column("policy_id", Text, primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("rule_id", Text, primary_key=True),
    Column("applies", JSON, nullable=False),
    Column("refundable", Boolean, nullable=False),
    Column("window_days", Integer),
    Column("auto_limit_cents", Integer, nullable=False),
    Column("text", Text, nullable=False),
    Column("valid_from", Text, nullable=False),
)
"""Rows: one a rule. A version is never edited; the highest one that is in force holds."""

provider_captures = Table(
    "provider_captures",
    metadata,
    Column("order_id", Text, primary_key=True),
    Column("line", Integer, primary_key=True),
    Column("amount_cents", Integer, nullable=False),
)
"""What the customer paid; more than that cannot go back."""

provider_operations = Table(
    "provider_operations",
    metadata,
    Column("operation_id", Text, primary_key=True),
    Column("idempotency_key", Text, nullable=False, unique=True),
    Column("order_id", Text, nullable=False),
    Column("line", Integer, nullable=False),
    Column("amount_cents", Integer, nullable=False),
    Column("state", Text, nullable=False),
    Column("failure_code", Text, nullable=False, default=""),
    Column("created", Text, nullable=False),
    Column("completes_at", Float, nullable=False),
    CheckConstraint("state in ('accepted', 'completed', 'failed')"),
)
"""`completes_at` is in seconds since 1970."""

provider_payments = Table(
    "provider_payments",
    metadata,
    Column("refund_id", Text, primary_key=True),
    Column(
        "operation_id",
        Text,
        ForeignKey("provider_operations.operation_id"),
        nullable=False,
        unique=True,
    ),
    Column("amount_cents", Integer, nullable=False),
    Column("paid_at", Text, nullable=False),
)
"""Money that went back: exactly one row a completed operation."""

switches = Table(
    "switches",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", JSON, nullable=False),
)
"""How the world misbehaves in a scenario."""
