"""The payment provider: another company, with its own tables and its own sense of time.

It accepts a refund at once and pays it a little later. One idempotency key makes one operation, and
one operation makes one payment, however often and from wherever it is asked. It works while nobody
looks; here that means: whatever is due is settled before anything is read.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from sqlalchemy import Connection, Row, func, insert, select, update

from plangate.examples.refund.schema import (
    order_lines,
    orders,
    provider_captures,
    provider_operations,
    provider_payments,
    switches,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plangate.examples.refund.store import Store

_OPEN = ("accepted", "completed")
FIRST_OPERATION = 88
FIRST_REFUND = 77
DELAY_S = 0.2
SILENT_S = 30.0
"""Longer than any caller waits."""


class Refused(Exception):
    """The provider did not take an order on; `code` says why, and nothing happened."""

    def __init__(self, code: str, says: str) -> None:
        super().__init__(says)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What the provider says about one refund."""

    operation_id: str
    order_id: str
    line: int
    amount_cents: int
    state: Literal["accepted", "completed", "failed"]
    failure_code: str
    refund_id: str | None
    """Of the payment; None until it is made."""


class Provider:
    """The provider's counter."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def refund(self, key: str, order_id: str, line: int, amount_cents: int) -> Operation:
        """Ask for a refund.

        Args:
            key: Idempotency key: asked again with it, the provider answers about the first time.
            order_id: Whose payment goes back.
            line: The line of the order.
            amount_cents: More than zero, and no more than what was paid and has not gone back.

        Raises:
            Refused: It will not do that: `idempotency_key_reused`, `amount_exceeds_payment`.
            ConnectionError: It could not be reached, or did not answer: nobody can tell from that
                whether it accepted.
        """
        self._reach()
        asked = {"order_id": order_id, "line": line, "amount_cents": amount_cents}
        with self._store.writing() as connection:
            _settle_due(connection)
            known = _find(connection, provider_operations.c.idempotency_key == key)
            if known is not None:
                if any(getattr(known, name) != value for name, value in asked.items()):
                    raise Refused("idempotency_key_reused", f"{known.operation_id} has this key")
                return known
            if not 0 < amount_cents <= _left_cents(connection, order_id, line):
                raise Refused("amount_exceeds_payment", "more than was paid and not yet refunded")
            made = _accept(connection, key, asked)
            goes_silent = bool(_switch(connection, "accept_then_timeout", default=False))
        if goes_silent:
            time.sleep(SILENT_S)
            raise ConnectionError("payment provider: connection reset")
        return made

    def operation(self, operation_id: str) -> Operation | None:
        """Return an operation as it is now; None if the provider never heard of it."""
        return self._look(provider_operations.c.operation_id == operation_id)

    def by_key(self, key: str) -> Operation | None:
        """Return the operation that an idempotency key made; None if there is none."""
        return self._look(provider_operations.c.idempotency_key == key)

    def _look(self, which: Any) -> Operation | None:
        self.settle_due()
        with self._store.reading() as connection:
            return _find(connection, which)

    def settle_due(self) -> None:
        """Let the provider do what it would have done by now."""
        with self._store.reading() as connection:
            due = connection.execute(_due()).first() is not None
        if due:
            with self._store.writing() as connection:
                _settle_due(connection)

    def payments(self, order_id: str | None = None) -> list[Mapping[str, Any]]:
        """Return the payments that were made, of one order or of all, oldest first."""
        self.settle_due()
        query = select(
            provider_payments, provider_operations.c.order_id, provider_operations.c.line
        ).join(provider_operations)
        if order_id is not None:
            query = query.where(provider_operations.c.order_id == order_id)
        with self._store.reading() as connection:
            rows = connection.execute(query.order_by(provider_payments.c.paid_at)).mappings()
            return [dict(row) for row in rows]

    def _reach(self) -> None:
        with self._store.writing() as connection:
            left = int(_switch(connection, "provider_down_times", 0))
            if left > 0:
                connection.execute(
                    update(switches)
                    .where(switches.c.name == "provider_down_times")
                    .values(value=left - 1)
                )
        if left > 0:
            raise ConnectionError("payment provider: connection refused")


def _accept(connection: Connection, key: str, asked: Mapping[str, Any]) -> Operation:
    taken = connection.scalar(select(func.count()).select_from(provider_operations)) or 0
    made = Operation(
        operation_id=f"OP-{FIRST_OPERATION + taken}",
        state="accepted",
        failure_code="",
        refund_id=None,
        **asked,
    )
    connection.execute(
        insert(provider_operations).values(
            operation_id=made.operation_id,
            state=made.state,
            failure_code=made.failure_code,
            idempotency_key=key,
            created=datetime.now(UTC).isoformat(),
            completes_at=time.time() + float(_switch(connection, "delay_s", DELAY_S)),
            **asked,
        )
    )
    return made


def _due() -> Any:
    return select(provider_operations).where(
        provider_operations.c.state == "accepted", provider_operations.c.completes_at <= time.time()
    )


def _settle_due(connection: Connection) -> None:
    """Finish what is due. Needs the write lock, so that nobody finishes it a second time."""
    failure = str(_switch(connection, "provider_fails", ""))
    for row in connection.execute(_due()).all():
        connection.execute(
            update(provider_operations)
            .where(provider_operations.c.operation_id == row.operation_id)
            .values(state="failed" if failure else "completed", failure_code=failure)
        )
        if not failure:
            _pay(connection, row)


def _pay(connection: Connection, row: Row[Any]) -> None:
    """Move the money, and tell the shop, whose books follow."""
    paid = connection.scalar(select(func.count()).select_from(provider_payments)) or 0
    connection.execute(
        insert(provider_payments).values(
            refund_id=f"RF-{FIRST_REFUND + paid}",
            operation_id=row.operation_id,
            amount_cents=row.amount_cents,
            paid_at=datetime.now(UTC).isoformat(),
        )
    )
    connection.execute(
        update(order_lines)
        .where(order_lines.c.order_id == row.order_id, order_lines.c.line == row.line)
        .values(refunded_cents=order_lines.c.refunded_cents + row.amount_cents)
    )
    open_lines = connection.scalar(
        select(func.count())
        .select_from(order_lines)
        .where(
            order_lines.c.order_id == row.order_id,
            order_lines.c.refunded_cents < order_lines.c.amount_cents,
        )
    )
    change: dict[str, Any] = {"version": orders.c.version + 1}
    if not open_lines:
        change["status"] = "refunded"
    connection.execute(update(orders).where(orders.c.order_id == row.order_id).values(**change))


def _find(connection: Connection, which: Any) -> Operation | None:
    row = connection.execute(
        select(provider_operations, provider_payments.c.refund_id)
        .join(provider_payments, isouter=True)
        .where(which)
    ).first()
    if row is None:
        return None
    return Operation(
        operation_id=row.operation_id,
        order_id=row.order_id,
        line=row.line,
        amount_cents=row.amount_cents,
        state=row.state,
        failure_code=row.failure_code,
        refund_id=row.refund_id,
    )


def _left_cents(connection: Connection, order_id: str, line: int) -> int:
    """What was paid for a line and is neither refunded nor about to be."""
    captured = connection.scalar(
        select(provider_captures.c.amount_cents).where(
            provider_captures.c.order_id == order_id, provider_captures.c.line == line
        )
    )
    taken = connection.scalar(
        select(func.sum(provider_operations.c.amount_cents)).where(
            provider_operations.c.order_id == order_id,
            provider_operations.c.line == line,
            provider_operations.c.state.in_(_OPEN),
        )
    )
    return int(captured or 0) - int(taken or 0)


def _switch(connection: Connection, name: str, default: object) -> Any:
    found = connection.execute(select(switches.c.value).where(switches.c.name == name)).first()
    return default if found is None else found.value
