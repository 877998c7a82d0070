"""The shop's own books: orders, parcels, the policy in force. Everything here only reads."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import func, select

from plangate.examples.refund.schema import order_lines, orders, policies, shipments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Row

    from plangate.examples.refund.provider import Provider
    from plangate.examples.refund.store import Store


class Found(NamedTuple):
    """An order and its lines, read in one view."""

    order: Row[Any]
    lines: Sequence[Row[Any]]


class Shop:
    """What a clerk of the shop can look up."""

    def __init__(self, store: Store, provider: Provider) -> None:
        self._store = store
        self._provider = provider

    def order(self, order_id: str) -> Found | None:
        """Return an order with its lines, with all payments booked that were made by now."""
        self._provider.settle_due()
        with self._store.reading() as connection:
            order = connection.execute(select(orders).where(orders.c.order_id == order_id)).first()
            lines = connection.execute(
                select(order_lines)
                .where(order_lines.c.order_id == order_id)
                .order_by(order_lines.c.line)
            ).all()
        return None if order is None else Found(order, lines)

    def parcel(self, order_id: str) -> Row[Any] | None:
        """Return the carrier's record of an order; None while no label was printed."""
        with self._store.reading() as connection:
            return connection.execute(
                select(shipments).where(shipments.c.order_id == order_id)
            ).first()

    def rules(self, policy_id: str, version: int | None = None) -> Sequence[Row[Any]]:
        """Return the rules of one version of a policy, by default of the one in force today."""
        of_policy = policies.c.policy_id == policy_id
        with self._store.reading() as connection:
            if version is None:
                in_force = policies.c.valid_from <= datetime.now(UTC).date().isoformat()
                version = connection.scalar(
                    select(func.max(policies.c.version)).where(of_policy, in_force)
                )
            return connection.execute(
                select(policies)
                .where(of_policy, policies.c.version == version)
                .order_by(policies.c.rule_id)
            ).all()
