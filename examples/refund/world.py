"""The outside of the refund agent: a shop and its payment provider, in one SQLite file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, insert

from plangate.examples.refund.provider import Provider
from plangate.examples.refund.schema import metadata, switches
from plangate.examples.refund.seed import sow
from plangate.examples.refund.shop import Shop
from plangate.examples.refund.store import Store, open_store
from plangate.plan.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

SWITCHES: Mapping[str, str] = {
    "accept_then_timeout": "true: the provider accepts a refund and never answers the request",
    "provider_down_times": "n: the next n requests do not reach the provider",
    "provider_fails": "a code: accepted operations end as failed with it",
    "delay_s": "seconds from acceptance to payment (default 0.2)",
}
"""What a scenario can make the world do."""


class RefundWorld:
    """What tools of the refund agent see as `ToolContext.world`. Threads may share one."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.provider = Provider(store)
        self.shop = Shop(store, self.provider)

    def prepare(self, chosen: Mapping[str, Any]) -> None:
        """Set exactly these switches; all others are off.

        Raises:
            ConfigError: There is no such switch.
        """
        if unknown := sorted(chosen.keys() - SWITCHES.keys()):
            raise ConfigError(
                f"the refund world has no switch {unknown[0]!r}",
                hint="It has: " + ", ".join(SWITCHES),
            )
        with self._store.writing() as connection:
            connection.execute(delete(switches))
            for name, value in chosen.items():
                connection.execute(insert(switches).values(name=name, value=value))

    def reset(self) -> None:
        """Bring the first state back: every order, payment and switch as it was seeded."""
        with self._store.writing() as connection:
            for table in reversed(metadata.sorted_tables):
                connection.execute(delete(table))
            sow(connection)

    def payments(self, order_id: str | None = None) -> list[Mapping[str, Any]]:
        """Return the payments in the provider's table, of one order or of all."""
        return self.provider.payments(order_id)

    def results(self, inputs: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
        """Return what the provider's table shows of a run: its `payments`."""
        return {"payments": [dict(row) for row in self.payments(inputs.get("order_id"))]}

    def close(self) -> None:
        """Close every connection."""
        self._store.close()


def connect(url: str) -> RefundWorld:
    """Open the world; the file is made and seeded at the first time.

    Args:
        url: As `sqlite:///.plangate/refund-world.db`.

    Raises:
        ConfigError: The URL does not name an SQLite file.
    """
    return RefundWorld(open_store(url))
