"""How a database becomes today's schema: numbered functions, never edited once released.

The text of a migration is frozen here and does not follow `plangate.journal.schema`; otherwise an
old database and a new one would take different ways. It is portable but for the word TEXT, which on
Postgres is compared byte by byte, as on SQLite: an order that follows the server's language would
differ between two servers, and change with an update of its C library.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TypeAlias

import sqlalchemy as sa

from plangate.journal.schema import META
from plangate.journal.store import Store, insert_new
from plangate.plan.errors import JournalError

Migration: TypeAlias = Callable[[sa.Connection], None]

_META = "CREATE TABLE IF NOT EXISTS meta (key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL)"
_FIRST = (
    """CREATE TABLE runs (
        run_id TEXT NOT NULL PRIMARY KEY, goal_id TEXT NOT NULL, goal TEXT NOT NULL,
        thread_id TEXT NOT NULL, agent TEXT NOT NULL, principal TEXT NOT NULL,
        status TEXT NOT NULL, ending TEXT, verdict TEXT, created_at TEXT NOT NULL,
        updated_at TEXT NOT NULL, last_seq BIGINT NOT NULL, owner TEXT, epoch BIGINT NOT NULL,
        lease_until TEXT)""",
    "CREATE INDEX runs_by_thread ON runs (thread_id)",
    """CREATE UNIQUE INDEX one_open_run_of_a_thread ON runs (thread_id)
        WHERE status <> 'ended' AND thread_id <> ''""",
    """CREATE TABLE events (
        run_id TEXT NOT NULL, seq BIGINT NOT NULL, at TEXT NOT NULL, epoch BIGINT NOT NULL,
        type TEXT NOT NULL, step TEXT, body TEXT NOT NULL, PRIMARY KEY (run_id, seq))""",
    """CREATE TABLE effects (
        effect_key TEXT NOT NULL PRIMARY KEY, business_key TEXT NOT NULL, run_id TEXT NOT NULL,
        goal_id TEXT NOT NULL, step TEXT NOT NULL, plan_version BIGINT NOT NULL,
        attempt_id TEXT NOT NULL, tool TEXT NOT NULL, tool_version TEXT NOT NULL,
        args_sha256 TEXT NOT NULL, approval TEXT, state TEXT NOT NULL, epoch BIGINT NOT NULL,
        operation_id TEXT, output TEXT, error_code TEXT NOT NULL, business_state TEXT NOT NULL,
        created_at TEXT NOT NULL, settled_at TEXT, note TEXT NOT NULL, "by" TEXT NOT NULL)""",
    "CREATE INDEX effects_by_run ON effects (run_id)",
    """CREATE TABLE decisions (
        question_id TEXT NOT NULL PRIMARY KEY, run_id TEXT NOT NULL, decision TEXT NOT NULL,
        "by" TEXT NOT NULL, at TEXT NOT NULL, answer TEXT NOT NULL, comment TEXT NOT NULL,
        content_hash TEXT NOT NULL, steps TEXT NOT NULL, expires_at TEXT)""",
    "CREATE INDEX decisions_by_run ON decisions (run_id)",
    """CREATE TABLE votes (
        question_id TEXT NOT NULL, voter TEXT NOT NULL, run_id TEXT NOT NULL, at TEXT NOT NULL,
        body TEXT NOT NULL, PRIMARY KEY (question_id, voter))""",
    "CREATE TABLE artifacts (ref TEXT NOT NULL PRIMARY KEY, body TEXT NOT NULL)",
)


def _first_tables(tx: sa.Connection) -> None:
    execute(tx, _FIRST)


_USES = (
    """CREATE TABLE artifact_uses (
        run_id TEXT NOT NULL, ref TEXT NOT NULL, PRIMARY KEY (run_id, ref))""",
    "CREATE INDEX artifact_uses_by_ref ON artifact_uses (ref)",
)
_REF = re.compile(r"sha256:[0-9a-f]{64}")


def _uses_of_artifacts(tx: sa.Connection) -> None:
    """Note for each artifact which runs' events name it."""
    execute(tx, _USES)
    add = sa.text(
        "INSERT INTO artifact_uses (run_id, ref) VALUES (:run_id, :ref) ON CONFLICT DO NOTHING"
    )
    query = sa.text("SELECT run_id, body FROM events")
    events = tx.execute(query, execution_options={"yield_per": 1_000})
    for part in events.partitions():
        found = {(row.run_id, ref) for row in part for ref in _REF.findall(row.body)}
        if found:
            tx.execute(add, [{"run_id": run_id, "ref": ref} for run_id, ref in sorted(found)])


_VERIFIED = (
    """CREATE TABLE verified_runs (
        run_id TEXT NOT NULL PRIMARY KEY, task_type TEXT NOT NULL, catalog_hash TEXT NOT NULL,
        policy_hash TEXT NOT NULL, at TEXT NOT NULL)""",
    "CREATE INDEX verified_runs_by_kind ON verified_runs (catalog_hash, policy_hash, at)",
)


def _verified_runs(tx: sa.Connection) -> None:
    """Runs from before count for nothing: what they ran under was not noted with their end."""
    execute(tx, _VERIFIED)


_OWNERS = (
    "ALTER TABLE effects ADD COLUMN owner TEXT NOT NULL DEFAULT ''",
    "CREATE INDEX runs_by_owner ON runs (owner) WHERE owner IS NOT NULL",
    """UPDATE effects SET owner = COALESCE((
            SELECT runs.owner FROM runs
            WHERE runs.run_id = effects.run_id AND runs.epoch = effects.epoch), '')
        WHERE state IN ('intended', 'unknown')""",
)


def _owners_of_effects(tx: sa.Connection) -> None:
    """Note who may still make a call: where nobody took the run since, whoever holds it."""
    execute(tx, _OWNERS)


_RESERVATIONS = (
    """CREATE TABLE reservations (
        row_id TEXT NOT NULL PRIMARY KEY, account TEXT NOT NULL, day TEXT NOT NULL,
        run_id TEXT NOT NULL, epoch BIGINT NOT NULL, act TEXT NOT NULL, ledgered BIGINT NOT NULL,
        state TEXT NOT NULL, nano_usd BIGINT, tokens BIGINT NOT NULL, tool_calls BIGINT NOT NULL,
        model_calls BIGINT NOT NULL)""",
    "CREATE INDEX reservations_by_day ON reservations (account, day)",
    "CREATE INDEX reservations_by_run ON reservations (run_id)",
)


def _reservations(tx: sa.Connection) -> None:
    """What was spent before, on the day of the change, counts for no day."""
    execute(tx, _RESERVATIONS)


_USAGE = (
    """CREATE TABLE usage (
        run_id TEXT NOT NULL, subject TEXT NOT NULL, at TEXT NOT NULL, calls BIGINT NOT NULL,
        body TEXT NOT NULL, PRIMARY KEY (run_id, subject))""",
    "CREATE INDEX usage_by_subject ON usage (subject, at)",
)


def _usage(tx: sa.Connection) -> None:
    """Runs from before teach nothing: which calls were alike was not noted with their end."""
    execute(tx, _USAGE)


def execute(tx: sa.Connection, statements: Iterable[str]) -> None:
    """Run the statements of a migration."""
    text = 'TEXT COLLATE "C"' if tx.dialect.name == "postgresql" else "TEXT"
    for statement in statements:
        tx.exec_driver_sql(statement.replace("TEXT", text))


MIGRATIONS: Mapping[int, Migration] = MappingProxyType(
    {
        1: _first_tables,
        2: _uses_of_artifacts,
        3: _verified_runs,
        4: _owners_of_effects,
        5: _reservations,
        6: _usage,
    }
)
"""By the version each one leads to: 1, 2, 3, ... without gaps."""

_VERSION = sa.select(META.c.value).where(META.c.key == "schema_version")


def migrate(store: Store, migrations: Mapping[int, Migration] = MIGRATIONS) -> None:
    """Bring the database to the newest schema, or leave it as it is.

    Safe for many processes at once: the versions are read again under the write lock, and a
    migration and its version number are one transaction. An up-to-date journal is only read.

    Raises:
        JournalError: The file was written by a newer version, or is not a journal.
    """
    newest = max(migrations)
    with store.read() as tx:
        if sa.inspect(tx).has_table("meta") and _version(tx, newest) == newest:
            return
    with store.write(alone="schema") as tx:
        execute(tx, [_META])
        tx.execute(insert_new(META).values(key="schema_version", value="0"))
        for version in range(_version(tx, newest) + 1, newest + 1):
            migrations[version](tx)
        tx.execute(sa.update(META).where(META.c.key == "schema_version").values(value=str(newest)))


def _version(tx: sa.Connection, newest: int) -> int:
    """Return the version of the file; 0 where none is noted."""
    said = tx.execute(_VERSION).scalar() or "0"
    if not said.isdecimal():
        what = f"the journal's schema version {said[:20]!r} is not a number"
        raise JournalError(what, hint="point the journal at a file of its own")
    if int(said) > newest:
        what = f"the journal has schema version {said}, and this plangate knows {newest}"
        raise JournalError(what, hint="upgrade plangate, or open another journal with this one")
    return int(said)
