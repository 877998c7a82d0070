"""A journal on a Postgres server: all that is Postgres' own.

Transactions are READ COMMITTED. What SQLite's single writer gives for nothing is asked for here: a
row is locked (`FOR UPDATE`) before something is decided from it, an update says in its `WHERE` what
it relies on, and what no row stands for is done `alone`, under an advisory lock. Locks are taken in
one order: run rows by id, then effects, then artifacts by reference.

No connection is held while nobody uses it, and one that the server closed is replaced unseen.
"""

from __future__ import annotations

from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from plangate.plan.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

POOL_SIZE: Final = 8
"""Connections of a process, for the journal and its checkpoints."""

WAIT_S: Final = 30
"""How long a statement waits for a lock, or a caller for a connection of the pool."""

STATEMENT_S: Final = 60

_SETTINGS: Final = (
    f"-c lock_timeout={WAIT_S}s -c statement_timeout={STATEMENT_S}s "
    # A stopped process must not keep its locks: whoever takes its run over would wait for ever.
    f"-c idle_in_transaction_session_timeout={WAIT_S}s"
)
_ALIVE: Final = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
"""A peer that is gone without a word is noticed."""

_SECRET: Final = ("password", "sslpassword")
_RETRIED: Final = frozenset({"40001", "40P01", "53300", "57P01", "57P02", "57P03"})
"""Serialization failure, deadlock, too many connections, server ends, crashed, starts."""

_ALONE = sa.text("SELECT pg_advisory_xact_lock(hashtextextended('plangate ' || :name, 0))")
_UNHURRIED = sa.text("SET LOCAL statement_timeout = 0")


class Server:
    """The database under one store."""

    hints: tuple[tuple[str, str], ...] = (
        ("password", "check the user, and give the password in the URL, PGPASSWORD or ~/.pgpass"),
        ("resolve", "check the host in the journal's URL"),
        ("starting up", "wait until the server is up"),
        ("does not exist", "create the database and its user, or point the journal elsewhere"),
        ("already exists", "another program's tables are there; give the journal its own database"),
        ("permission denied", "let the user create and use tables in that database"),
        ("lock timeout", f"a transaction holds its locks for over {WAIT_S} s; see pg_locks"),
        ("statement timeout", "see pg_stat_activity for what keeps the server busy"),
        ("too many", "raise max_connections, or add ?pool_size=2 to the journal's URL"),
        ("QueuePool", "add a larger ?pool_size= to the journal's URL"),
        ("NUL", "clean text from outside before it is recorded"),
        ("No space left", "free space on the server; nothing that was acknowledged is lost"),
        ("read-only", "point the journal at the primary, not at a standby"),
        ("connect", "start the server, or check host and port; what was recorded is kept"),
    )

    def __init__(self, engine: sa.Engine) -> None:
        self.url = _printed(engine.url)
        host = engine.url.host or str(engine.url.query.get("host", "")) or "this machine"
        self.name = f"{host}/{engine.url.database or engine.url.username or ''}"
        self.errors: tuple[type[Exception], ...] = (engine.dialect.import_dbapi().Error,)
        self._engine = engine
        self._again = engine.execution_options(plangate_again=True)
        self._reading = engine.execution_options(
            isolation_level="REPEATABLE READ", postgresql_readonly=True
        )

    @contextmanager
    def write(self, alone: str, *, again: bool) -> Iterator[sa.Connection]:
        """Give a transaction that writes; `alone` names what one transaction does at a time."""
        with (self._again if again else self._engine).begin() as tx:
            if alone:
                tx.execute(_UNHURRIED)  # a migration of a large journal takes what it takes
                tx.execute(_ALONE, {"name": alone})
            yield tx

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """Give a transaction that sees one state and waits for no writer."""
        with self._reading.begin() as tx:
            yield tx

    def rewrite(self) -> bool:
        """Return True: the server reuses what was deleted, and forgets it in its own time."""
        return True

    def is_lost(self, error: Exception) -> bool:
        """Return True if the same transaction may well succeed on another connection."""
        cause: Any = getattr(error, "orig", None) or error
        state = getattr(cause, "sqlstate", None)
        if state is not None:
            return state in _RETRIED or state.startswith("08")
        # Without a state it did not come from a statement: the connection broke, or none was made.
        return type(cause).__name__ == "OperationalError"

    def cause(self, error: Exception) -> Exception | None:
        """Return None for a refused row: the server's details quote its values."""
        return None if isinstance(error, (sa.exc.IntegrityError, sa.exc.DataError)) else error


def open_server(url: sa.URL) -> sa.Engine:
    """Return an engine for the database at `url`; connects to nothing yet.

    Args:
        url: As `postgresql://user@host/name`; `?pool_size=` is ours, the rest is libpq's. What is
            not said comes from libpq's own places: PGHOST, PGPASSWORD, ~/.pgpass and so on.

    Raises:
        ConfigError: The driver is not installed, or the URL asks for something odd.
    """
    if find_spec("psycopg") is None:
        raise ConfigError(
            "a journal on Postgres needs psycopg, which is not installed",
            hint="pip install 'plangate[postgres]'",
        )
    query = dict(url.query)
    size = _pool_size(query.pop("pool_size", str(POOL_SIZE)))
    options = " ".join([_SETTINGS, *_many(query.pop("options", ()))])
    engine = sa.create_engine(
        url.set(drivername="postgresql+psycopg", query=query),
        connect_args={"application_name": "plangate", **_ALIVE, "options": options},
        hide_parameters=True,  # parameters hold payloads; errors must not
        pool_size=size,
        max_overflow=0,
        pool_timeout=WAIT_S,
        pool_pre_ping=True,
        pool_use_lifo=True,
        pool_recycle=1800,
    )
    sa.event.listen(engine, "connect", _prepare)
    return engine


def _prepare(connection: Any, _record: object) -> None:
    """Have a commit mean that it is on the disk, whatever the server was told to be content with.

    An intent that a crash of the server takes back is an effect that could be made twice. Stricter
    settings than `on` (a standby has it, too) stay.
    """
    connection.autocommit = True
    connection.execute(
        "SELECT set_config('synchronous_commit', 'on', false)"
        " WHERE current_setting('synchronous_commit') = 'off'"
    )
    connection.autocommit = False


def _printed(url: sa.URL) -> str:
    """Leave the password out: opened again, such a URL takes it from PGPASSWORD or ~/.pgpass."""
    query = {name: value for name, value in url.query.items() if name not in _SECRET}
    plain = sa.URL.create("postgresql", url.username, None, url.host, url.port, url.database, query)
    return plain.render_as_string(hide_password=False)


def _pool_size(said: str | tuple[str, ...]) -> int:
    if isinstance(said, str) and said.isdecimal() and int(said) > 0:
        return int(said)
    raise ConfigError("pool_size in the journal's URL is no number above 0", hint="as ?pool_size=4")


def _many(said: str | tuple[str, ...]) -> tuple[str, ...]:
    return (said,) if isinstance(said, str) else said
