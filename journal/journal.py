"""One journal: all records of all runs in one database, and the clock they are stamped with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from plangate.journal.artifacts import Artifacts
from plangate.journal.clock import Clock, Steady
from plangate.journal.decisions import Decisions
from plangate.journal.ledger import Ledger
from plangate.journal.log import Log
from plangate.journal.migrations import migrate
from plangate.journal.reservations import Reservations
from plangate.journal.retention import Retention
from plangate.journal.runs import Runs
from plangate.journal.store import Store, open_engine
from plangate.journal.usage import Usages
from plangate.journal.verified import VerifiedRuns

if TYPE_CHECKING:
    from types import TracebackType


class Journal:
    """The records of runs. Usable from any thread; opened once a process, not across a fork."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store = store
        self.clock = clock
        self.url = store.url
        self.runs = Runs(store, clock)
        self.log = Log(store, clock)
        self.ledger = Ledger(store, clock)
        self.decisions = Decisions(store)
        self.artifacts = Artifacts(store)
        self.retention = Retention(store)
        self.reservations = Reservations(store, clock)
        self.verified = VerifiedRuns(store)
        self.usage = Usages(store)

    @classmethod
    def open(cls, url: str, *, clock: Clock | None = None) -> Journal:
        """Open a journal and bring it to the newest schema; a missing file is made.

        Any number of processes may do so at once.

        Args:
            url: As `sqlite:///.plangate/journal.db` or `postgresql://user@host/name`.
            clock: Where times come from; None: the wall clock, as far as it does not go back.

        Raises:
            ConfigError: The URL cannot be read or names an unsupported database.
            JournalError: The database cannot be reached, made or written, is none of ours, or is
                newer than this version of plangate.
        """
        store = Store(open_engine(url))
        try:
            migrate(store)
        except BaseException:
            store.close()
            raise
        return cls(store, clock or Steady())

    def close(self) -> None:
        """Close all connections; may be called twice."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
