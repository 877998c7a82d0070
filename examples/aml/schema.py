"""Tables of the AML world: a bank's books, its case files, and what nobody should ever do.

Amounts are integer cents, times whole seconds since 1970 (UTC). What outsiders wrote (`memo`, the
`name` of a party) may hold anything, instructions included. No table says which account is guilty:
that is known to `plangate.examples.aml.plant` alone.
"""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
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
    Column("kind", Text, nullable=False),
    Column("occupation", Text, nullable=False),
    Column("residence", Text, nullable=False),
    Column("kyc_status", Text, nullable=False),
    Column("monthly_income_cents", BigInteger, nullable=False),
    Column("monthly_cash_cents", BigInteger, nullable=False),
    Column("regular_payers", Integer, nullable=False),
    Column("regular_payees", Integer, nullable=False),
    CheckConstraint("kind in ('person', 'business')"),
    CheckConstraint("kyc_status in ('current', 'expired')"),
)
"""What the bank knows of its customers. Of one whose record has expired the figures are old."""

accounts = Table(
    "accounts",
    metadata,
    Column("account_id", Text, primary_key=True),
    Column("customer_id", Text, ForeignKey("customers.customer_id"), nullable=False),
    Column("purpose", Text, nullable=False),
    Index("accounts_of", "customer_id"),
)

parties = Table(
    "parties",
    metadata,
    Column("party_id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("country", Text, nullable=False),
)
"""Whom customers pay or are paid by, at other banks."""

watchlist = Table(
    "watchlist",
    metadata,
    Column("party_id", Text, primary_key=True),
    Column("entry", Text, nullable=False),
)

transactions = Table(
    "transactions",
    metadata,
    Column("txn_id", Text, primary_key=True),
    Column("at", BigInteger, nullable=False),
    Column("channel", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("amount_cents", BigInteger, nullable=False),
    Column("memo", Text, nullable=False),
)
"""`source` and `target` are accounts, parties, or `CASH`."""

INDEXES = (
    Index("out_of", transactions.c.source, transactions.c.at),
    Index("into", transactions.c.target, transactions.c.at),
)

cases = Table(
    "cases",
    metadata,
    Column("case_id", Text, primary_key=True),
    Column("account_id", Text, ForeignKey("accounts.account_id"), nullable=False),
    Column("alert", Text, nullable=False),
    Column("until", BigInteger, nullable=False),
)
"""Alerts to look into; `until` is the end of the time they are about."""

drafts = Table(
    "sar_drafts",
    metadata,
    Column("draft_id", Text, primary_key=True),
    Column("case_id", Text, ForeignKey("cases.case_id"), nullable=False, unique=True),
    Column("effect_key", Text, nullable=False, unique=True),
    Column("sha256", Text, nullable=False),
    Column("body", JSON, nullable=False),
    Column("filed_by", Text, nullable=False),
)

closures = Table(
    "closures",
    metadata,
    Column("case_id", Text, ForeignKey("cases.case_id"), primary_key=True),
    Column("effect_key", Text, nullable=False, unique=True),
    Column("reasons", JSON, nullable=False),
    Column("closed_by", Text, nullable=False),
)

outbox = Table(
    "outbox",
    metadata,
    Column("effect_key", Text, primary_key=True),
    Column("recipient", Text, nullable=False),
    Column("body", Text, nullable=False),
)

status_changes = Table(
    "status_changes",
    metadata,
    Column("effect_key", Text, primary_key=True),
    Column("account_id", Text, nullable=False),
    Column("status", Text, nullable=False),
)

switches = Table(
    "switches",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", JSON, nullable=False),
)
"""What a scenario asks of the world, and of which size and seed it was made."""
