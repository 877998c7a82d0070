"""One SQLite file holds the world. Transactions are short, and a writer takes its lock at once.

`BEGIN IMMEDIATE` makes a second writer wait instead of failing half-way through; many threads and
processes may use one file.
"""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Engine, create_engine, event, func, select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from plangate.examples.refund.schema import metadata, orders
from plangate.examples.refund.seed import sow
from plangate.plan.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

_BUSY_S = 30


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
    """Open a world; one that does not exist yet is made and seeded, once, whoever comes first.

    Raises:
        ConfigError: The URL does not name an SQLite file.
    """
    try:
        parsed = make_url(url)
    except ArgumentError as exc:
        raise ConfigError(f"world {url!r} is not a URL", hint=_HINT) from exc
    if parsed.get_backend_name() != "sqlite" or parsed.database in (None, "", ":memory:"):
        shown = parsed.render_as_string(hide_password=True)
        raise ConfigError(f"world {shown!r} is not an SQLite file", hint=_HINT)
    Path(str(parsed.database)).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(parsed, connect_args={"timeout": _BUSY_S})
    event.listen(engine, "connect", _on_connect)
    event.listen(engine, "begin", _on_begin)
    store = Store(engine)
    with store.writing() as connection:
        metadata.create_all(connection)
        if connection.scalar(select(func.count()).select_from(orders)) == 0:
            sow(connection)
    return store


_HINT = "Give it a file, as sqlite:///.plangate/refund-world.db."


def _on_connect(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # the driver's own BEGIN comes too late; see _on_begin
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA synchronous = NORMAL")


def _on_begin(connection: Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get("begin", "BEGIN"))
