"""Writes the first state of the world, which stands as data in `seed.toml`."""

from __future__ import annotations

import tomllib
from datetime import UTC, datetime, timedelta
from importlib import resources
from typing import TYPE_CHECKING, Any

from sqlalchemy import insert

from plangate.examples.refund.schema import (
    customers,
    order_lines,
    orders,
    policies,
    provider_captures,
    shipments,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Connection


def sow(connection: Connection) -> None:
    """Fill empty tables."""
    file = resources.files("plangate.examples.refund").joinpath("seed.toml")
    seed = tomllib.loads(file.read_text(encoding="utf-8"))
    for customer in seed["customers"]:
        connection.execute(insert(customers).values(note=customer.pop("note", ""), **customer))
    for order in seed["orders"]:
        _sow_order(connection, order)
    for version in seed["versions"]:
        for rule in seed["rules"]:
            connection.execute(insert(policies).values(_rule(version, rule)))


def _sow_order(connection: Connection, order: Mapping[str, Any]) -> None:
    key = {"order_id": order["order_id"]}
    connection.execute(
        insert(orders).values(
            **key,
            customer_id=order["customer_id"],
            status=order["status"],
            version=order["version"],
            fulfillment_type=order.get("fulfillment_type", "standard"),
            placed_at=_day(order.get("placed", -3)),
            promised_ship_at=_day(order.get("promised", 2)),
            currency="EUR",
        )
    )
    was_refunded = order["status"] == "refunded"
    for line, sold in enumerate(order["lines"], start=1):
        back = sold["amount_cents"] if was_refunded else 0
        connection.execute(
            insert(order_lines).values(**key, line=line, refunded_cents=back, **sold)
        )
        if not was_refunded:
            paid = sold["amount_cents"]
            connection.execute(
                insert(provider_captures).values(**key, line=line, amount_cents=paid)
            )
    if parcel := order.get("parcel"):
        connection.execute(
            insert(shipments).values(
                **key,
                version=parcel["version"],
                state=parcel["state"],
                carrier="DHL",
                tracking=f"JD01{order['order_id'][4:]}",
                delivered_at=_day(parcel.get("delivered", False)),
            )
        )


def _rule(version: Mapping[str, Any], rule: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "policy_id": "refund",
        "version": version["version"],
        "rule_id": rule["rule_id"],
        "applies": rule["applies"],
        "refundable": rule["refundable"],
        "window_days": version["window_days"] if rule.get("windowed") else None,
        "auto_limit_cents": version["auto_limit_cents"],
        "text": rule["text"],
        "valid_from": version["valid_from"],
    }


def _day(days: int | bool) -> str | None:  # noqa: FBT001 - TOML has no null; false stands for it
    if days is False:
        return None
    today = datetime.now(UTC).replace(hour=9, minute=0, second=0, microsecond=0)
    return (today + timedelta(days=days)).isoformat()
