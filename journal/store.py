"""The database under the journal, whichever it is; statements above this file are portable.

What depends on the dialect is in `plangate.journal.sqlite` and `plangate.journal.postgres`. Where a
connection breaks, the whole transaction is tried again; it may have been committed before, so a
transaction given to `change` must know its own work when it meets it (`is_again`).
"""

from __future__ import annotations

import re
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from plangate.journal.postgres import Server, open_server
from plangate.journal.sqlite import File, open_file
from plangate.plan.errors import ConfigError, JournalError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from sqlalchemy.sql.dml import Insert

PATIENCE_S: Final = 30.0
"""How long a database that was there may stay away before that is an error."""

_HINT: Final = "write it as sqlite:///path/to/journal.db or postgresql://user@host/name"
_OTHERWISE: Final = "run `plangate doctor`; nothing of this transaction was written"

T = TypeVar("T")


class Database(Protocol):
    """What one kind of database does its own way."""

    url: str
    """Where it is, fit to be printed and to be opened again: without a password."""

    name: str
    """The same, short, for messages."""

    errors: tuple[type[Exception], ...]
    """What its driver raises where SQLAlchemy stands aside."""

    hints: tuple[tuple[str, str], ...]
    """What to do, by a mark in what the database said."""

    def write(self, alone: str, *, again: bool) -> AbstractContextManager[sa.Connection]:
        """Give a transaction whose checks and changes see one state."""

    def read(self) -> AbstractContextManager[sa.Connection]:
        """Give a transaction that only reads."""

    def rewrite(self) -> bool:
        """Leave no trace of what was deleted; False where a reader still sees an older state."""

    def is_lost(self, error: Exception) -> bool:
        """Return True if the same may well succeed on another connection."""

    def cause(self, error: Exception) -> Exception | None:
        """Return the error as it may be shown; None if it holds values."""


class Lost(JournalError):
    """The connection broke, or none could be made; what was being written may be there or not."""


class Store:
    """One database, and how to read and write it from any thread."""

    def __init__(self, engine: sa.Engine) -> None:
        self.engine = engine
        on_server = engine.dialect.name == "postgresql"
        self._database: Database = Server(engine) if on_server else File(engine)
        self._errors: tuple[type[Exception], ...] = (
            sa.exc.DBAPIError,
            sa.exc.TimeoutError,
            *self._database.errors,
        )
        self._was_there = False

    @property
    def url(self) -> str:
        """Where the database is: with an absolute path, without a password."""
        return self._database.url

    def change(self, work: Callable[[sa.Connection], T], *, alone: str = "") -> T:
        """Run `work` in a transaction and return what it returns, committed durably or not at all.

        It is run again where the connection breaks, for as long as `PATIENCE_S`.

        Args:
            work: Says by `is_again` whether what it finds may be its own.
            alone: Name of what only one transaction may do at a time.

        Raises:
            JournalError: The database refused, or stayed away.
        """

        def once(again: bool) -> T:  # noqa: FBT001 (ours alone)
            with self._transaction(self._database.write(alone, again=again)) as tx:
                return work(tx)

        return self.patiently(once)

    def rows(self, query: sa.Select[Any]) -> Sequence[sa.Row[*tuple[Any, ...]]]:
        """Return all that a query finds, in one state of the database.

        Raises:
            JournalError: The database refused, or stayed away.
        """

        def once(_again: bool) -> Sequence[sa.Row[*tuple[Any, ...]]]:  # noqa: FBT001 (ours alone)
            with self.read() as tx:
                return tx.execute(query).all()

        return self.patiently(once)

    @contextmanager
    def write(self, alone: str = "") -> Iterator[sa.Connection]:
        """Give a transaction that is committed, durably, at the end of the block or not at all.

        Tried once. What a run does while it works goes through `change`.

        Raises:
            JournalError: The database refused.
        """
        with self._transaction(self._database.write(alone, again=False)) as tx:
            yield tx

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """Give a transaction that sees one state of the database and waits for no writer.

        Raises:
            JournalError: The database refused.
        """
        with self._transaction(self._database.read()) as tx:
            yield tx

    def rewrite(self) -> bool:
        """Leave no trace of what was deleted in a journal's file; a server sees to it itself.

        Returns:
            False where somebody reads an older state, so that the trace is left for the moment.

        Raises:
            JournalError: The database refused: no space, or others write all the time.
        """
        try:
            return self._database.rewrite()
        except self._errors as exc:
            raise self._refusal(exc) from self._database.cause(exc)

    def close(self) -> None:
        """Close all connections. A closed store opens them again when it is used."""
        self.engine.dispose()

    def patiently(self, once: Callable[[bool], T]) -> T:
        """Do something on this database, again where the connection breaks.

        Args:
            once: Does it; given is whether it was tried before, and may have been done.

        Raises:
            JournalError: The database refused, or stayed away.
        """
        deadline, pause, again = time.monotonic() + PATIENCE_S, 0.02, False
        while True:
            try:
                return once(again)
            except Lost:
                # A database that was never reached is a mistake of whoever named it.
                if not self._was_there or time.monotonic() > deadline:
                    raise
            time.sleep(pause)  # the server restarts; there is nothing to wait on
            pause, again = min(2 * pause, 1.0), True

    @contextmanager
    def _transaction(self, begun: AbstractContextManager[sa.Connection]) -> Iterator[sa.Connection]:
        try:
            with begun as tx:
                yield tx
        except UnicodeEncodeError as exc:
            what = "a record holds text that is not valid Unicode"
            raise JournalError(what, hint="clean text from outside before it is recorded") from exc
        except self._errors as exc:
            raise self._refusal(exc) from self._database.cause(exc)
        self._was_there = True

    def _refusal(self, error: Exception) -> JournalError:
        cause: Any = getattr(error, "orig", None) or error
        # Postgres tells the values of a row below its first line.
        said = next(iter(str(cause).strip().splitlines()), type(cause).__name__)
        hint = next((hint for mark, hint in self._database.hints if mark in said), _OTHERWISE)
        kind = Lost if self._database.is_lost(error) else JournalError
        return kind(f"the journal at {self._database.name!r} refused: {said}", hint=hint)


def is_again(tx: sa.Connection) -> bool:
    """Return True if an earlier try of this transaction broke off: it may have been committed."""
    return bool(tx.get_execution_options().get("plangate_again", False))


def insert_new(table: sa.Table) -> Insert:
    """Return an insert that leaves an existing row alone; its row count tells which it was."""
    # Both dialects render this one; SQLite's own insert cannot be rendered for Postgres.
    added = postgresql.insert(table).on_conflict_do_nothing()
    return added.execution_options(preserve_rowcount=True)


def open_engine(url: str) -> sa.Engine:
    """Return an engine for the database at `url`.

    Args:
        url: As `sqlite:///path/to/journal.db` (see `open_file`) or `postgresql://user@host/name`
            (see `open_server`).

    Raises:
        ConfigError: The URL cannot be read, or names a database that is not supported.
        JournalError: The directory of a file cannot be made.
    """
    try:
        parsed = sa.make_url(re.sub(r"^postgres://", "postgresql://", url))
    except (sa.exc.ArgumentError, ValueError) as exc:
        raise ConfigError(f"the journal's URL {hidden(url)!r} cannot be read", hint=_HINT) from exc
    if parsed.drivername in ("sqlite", "sqlite+pysqlite"):
        return open_file(parsed)
    if parsed.drivername in ("postgresql", "postgresql+psycopg"):
        return open_server(parsed)
    what = f"a journal on {parsed.drivername!r} is not supported in this version"
    raise ConfigError(what, hint=_HINT)


def hidden(url: str) -> str:
    """Return a database URL as somebody wrote it, without its password."""
    plain = re.sub(r"(?<=://)([^/?#:@]*):.*@", r"\1@", url)
    return re.sub(r"([?&])(ssl)?password=[^&]*&?", r"\1", plain)
