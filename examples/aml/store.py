"""One database holds the world, SQLite or Postgres; a writer of SQLite takes its lock at once."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, OperationalError

from plangate.examples.aml.schema import metadata
from plangate.plan.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy import Table

_BUSY_S = 30
_HINT = "Name a file or a server, as sqlite:///aml.db or postgresql://plangate@localhost/aml."


class Store:
    """An open world."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._writer = engine.execution_options(begin="BEGIN IMMEDIATE")

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """One consistent view of the world."""
        with self._engine.begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """One change of the world, all of it or nothing."""
        with self._writer.begin() as connection:
            yield connection

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()


def open_store(url: str) -> Store:
    """Open a world; its tables are made if they are not there.

    Raises:
        ConfigError: The URL names no file and no server, or the server does not answer.
    """
    try:
        parsed = make_url(url)
    except ArgumentError as exc:
        raise ConfigError(f"world {url!r} is not a URL", hint=_HINT) from exc
    engine = _postgres(parsed) if parsed.get_backend_name() == "postgresql" else _sqlite(parsed)
    store = Store(engine)
    try:
        with store.writing() as connection:
            metadata.create_all(connection)
    except OperationalError as exc:
        shown = parsed.render_as_string(hide_password=True)
        raise ConfigError(f"world {shown!r} cannot be opened", hint=_HINT) from exc
    return store


def pour(connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert many rows, each with a value for every column in its order: as fast as it goes."""
    marks = "?" if connection.dialect.name == "sqlite" else "%s"
    values = ", ".join(marks for _ in table.columns)
    if rows:
        connection.exec_driver_sql(f"INSERT INTO {table.name} VALUES ({values})", list(rows))  # noqa: S608 - our own table


def _sqlite(parsed: URL) -> Engine:
    if parsed.get_backend_name() != "sqlite" or parsed.database in (None, "", ":memory:"):
        shown = parsed.render_as_string(hide_password=True)
        raise ConfigError(f"world {shown!r} is neither a file nor a server", hint=_HINT)
    Path(str(parsed.database)).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(parsed, connect_args={"timeout": _BUSY_S})
    event.listen(engine, "connect", _on_connect)
    event.listen(engine, "begin", _on_begin)
    return engine


def _postgres(parsed: URL) -> Engine:
    return create_engine(parsed.set(drivername="postgresql+psycopg"), pool_pre_ping=True)


def _on_connect(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # the driver's own BEGIN comes too late; see _on_begin
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")


def _on_begin(connection: Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get("begin", "BEGIN"))
