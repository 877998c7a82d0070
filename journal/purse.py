"""What one owner of a run takes of its principal's day: one short transaction an act, no more.

How an act ended is written with the next one, or as the owner lets go. Until then its row counts at
what was asked for, so that a crash in between frees nothing.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from plangate.journal.reservations import Held, new_row_id
from plangate.plan.errors import LeaseLost

if TYPE_CHECKING:
    from plangate.journal.lease import Lease
    from plangate.journal.reservations import Reservations
    from plangate.plan.spent import Caps, Spent


class Purse:
    """The rows of one owner. Safe to use from several threads.

    Args:
        reservations: Where they are kept.
        lease: The owner's hold on the run.
        account: From `account_of`.
    """

    def __init__(self, reservations: Reservations, lease: Lease, account: str) -> None:
        self._reservations = reservations
        self._lease = lease
        self._account = account
        self._ended: dict[str, Spent | None] = {}
        self._lock = threading.Lock()

    def hold(self, asked: Spent, caps: Caps | None, *, act: str, ledgered: bool = False) -> str:
        """Hold back what an act may take, on the disk before this returns.

        Args:
            asked: The most that it should take.
            caps: Of the day; None: nothing is compared.
            act: What it is for, as `S1-A1`.
            ledgered: True if the ledger tells whether the act was begun.

        Returns:
            The row, to be handed to `end`.

        Raises:
            BudgetExceeded: A cap of the day would be passed; nothing is held back.
            LeaseLost: Another owner has the run.
        """
        wanted = Held(
            row_id=new_row_id(),
            run_id=self._lease.run_id,
            epoch=self._lease.epoch,
            act=act,
            ledgered=ledgered,
            asked=asked,
        )
        with self._lock:
            ended, self._ended = self._ended, {}
        written = False
        try:
            self._reservations.hold(self._lease, self._account, wanted, caps, ended)
            written = True
        finally:
            if not written:  # refused or failed: to write it twice changes nothing
                self._put_back(ended)
        return wanted.row_id

    def end(self, row_id: str, spent: Spent | None) -> None:
        """Say what an act did cost; None: it did not happen. Written later."""
        with self._lock:
            self._ended[row_id] = spent

    def write(self) -> None:
        """Write what was said.

        Raises:
            LeaseLost: Another owner has the run, and its rows.
        """
        with self._lock:
            ended, self._ended = self._ended, {}
        if not ended:
            return
        try:
            self._reservations.end(self._lease, ended)
        except BaseException:
            self._put_back(ended)
            raise

    def close(self) -> None:
        """Write what was said, unless another owner has the rows: then they count as they are."""
        with suppress(LeaseLost):
            self.write()

    def _put_back(self, ended: dict[str, Spent | None]) -> None:
        with self._lock:
            self._ended = {**ended, **self._ended}
