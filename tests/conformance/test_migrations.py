from __future__ import annotations

import re
import sqlite3
import threading
from pathlib import Path

import pytest
import sqlalchemy as sa

from plangate.journal.events import RunEnded
from plangate.journal.journal import Journal
from plangate.journal.migrations import MIGRATIONS, migrate
from plangate.journal.schema import TABLES
from plangate.journal.store import Store, open_engine
from plangate.journal.view import fold
from plangate.plan.errors import JournalError
from tests.postgres import admin

DUMPS = Path(__file__).parent / "dumps"
NEWEST = max(MIGRATIONS)


@pytest.fixture(params=["sqlite", "postgres"])
def bare(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """URL of a database without tables."""
    if request.param == "postgres":
        return str(request.getfixturevalue("bare_postgres"))
    return f"sqlite:///{tmp_path}/bare.db"


@pytest.fixture
def made(bare: str):
    with Journal.open(bare) as journal:
        yield journal


def shape(tx: sa.Connection) -> dict[str, object]:
    seen = sa.inspect(tx)
    return {
        table: (
            {
                column["name"]: (column["nullable"], type(column["type"].as_generic()))
                for column in seen.get_columns(table)
            },
            seen.get_pk_constraint(table)["constrained_columns"],
            {
                index["name"]: (index["column_names"], bool(index["unique"]))
                for index in seen.get_indexes(table)
            },
        )
        for table in seen.get_table_names()
    }


def rows(tx: sa.Connection) -> dict[str, list[dict[str, object]]]:
    found = {}
    for table in sa.inspect(tx).get_table_names():
        if table != "meta":
            said = tx.execute(sa.select(sa.text("*")).select_from(sa.table(table))).mappings()
            found[table] = sorted(map(dict, said), key=str)
    return found


def test_the_migrations_make_the_tables_that_the_code_uses(bare):
    plain = Store(open_engine(bare))
    with plain.write() as tx:
        TABLES.create_all(tx)
        wanted = shape(tx)
        TABLES.drop_all(tx)

    migrate(plain)

    with plain.read() as tx:
        assert shape(tx) == wanted
    plain.close()


def test_migrations_are_numbered_without_gaps():
    assert list(MIGRATIONS) == list(range(1, NEWEST + 1))


def load(url: str, dump: Path) -> None:
    text = dump.read_text(encoding="utf-8")
    if url.startswith("sqlite"):
        file = sqlite3.connect(url.removeprefix("sqlite:///"))
        file.executescript(text)
        file.close()
        return
    with admin(url) as server:
        server.execute(text)


@pytest.mark.parametrize("version", MIGRATIONS)
def test_a_journal_of_each_version_is_brought_up_and_keeps_all(bare, version):
    load(bare, DUMPS / f"{'sqlite' if 'sqlite' in bare else 'postgres'}-{version}.sql")
    old = Store(open_engine(bare))
    with old.read() as tx:
        before = rows(tx)
    old.close()

    with Journal.open(bare) as journal:
        with journal.store.read() as tx:
            after, upgraded = rows(tx), shape(tx)
        ended = fold(journal.log.read("done")).ended
        question = fold(journal.log.read("open")).questions["open-q1"]
        shown = journal.artifacts.get(question.payload)
        effects = [(row.effect_key, row.state) for row in journal.ledger.list()]
        in_hand = [row.owner for row in journal.ledger.list()]
        decided = journal.decisions.of_run("open")
        newest = journal.runs.get("open")

    assert all(len(kept) == len(after[table]) for table, kept in before.items())
    assert all(
        row.items() <= now.items()
        for table, kept in before.items()
        for row, now in zip(kept, after[table], strict=True)
    )
    assert isinstance(ended, RunEnded)
    assert shown == {"steps": ["open"]}
    assert effects == [("done", "done"), ("open", "intended")]
    assert in_hand == ["", "elsewhere.0:1:1:abc"]
    assert [(each.by, each.steps) for each in decided] == [("ann", ("S1",))]
    assert (newest.goal, newest.status) == ("Refund order 1, “ünïcode”", "waiting")
    assert upgraded == shape_of_new(bare)


def shape_of_new(url: str) -> dict[str, object]:
    """Drop all and let the migrations make it anew."""
    store = Store(open_engine(url))
    with store.write() as tx:
        for table in sa.inspect(tx).get_table_names():
            tx.exec_driver_sql(f"DROP TABLE {table}")
    migrate(store)
    with store.read() as tx:
        found = shape(tx)
    store.close()
    return found


def test_an_up_to_date_journal_is_opened_while_somebody_writes(journal):
    with journal.store.write() as tx:
        tx.exec_driver_sql("UPDATE meta SET value = value")
        with Journal.open(journal.url) as other:
            assert other.runs.list() == ()


def add_colour(tx: sa.Connection) -> None:
    tx.exec_driver_sql("ALTER TABLE runs ADD COLUMN colour TEXT")


def fail(_: sa.Connection) -> None:
    raise ZeroDivisionError


def version(store: Store) -> int:
    with store.read() as tx:
        said = tx.exec_driver_sql("SELECT value FROM meta WHERE key = 'schema_version'")
        return int(said.scalar_one())


def test_of_many_openers_at_once_each_migration_is_run_by_one(made):
    start, failed = threading.Barrier(6), []
    stores = [Store(open_engine(made.url)) for _ in range(6)]

    def bring_up(store: Store) -> None:
        start.wait()
        try:
            migrate(store, {**MIGRATIONS, NEWEST + 1: add_colour})
        except JournalError as exc:  # a second one would meet its column
            failed.append(exc)

    threads = [threading.Thread(target=bring_up, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for store in stores:
        store.close()

    assert failed == []
    assert version(made.store) == NEWEST + 1


def test_of_many_openers_of_a_bare_database_all_find_a_journal(bare):
    start, said = threading.Barrier(6), []

    def open_it() -> None:
        start.wait()
        with Journal.open(bare) as journal:
            said.append(journal.runs.list())

    threads = [threading.Thread(target=open_it) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert said == [()] * 6


def test_a_migration_that_fails_leaves_the_journal_as_it_was(made):
    with pytest.raises(ZeroDivisionError):
        migrate(made.store, {**MIGRATIONS, NEWEST + 1: add_colour, NEWEST + 2: fail})

    with made.store.read() as tx:
        assert "colour" not in shape(tx)["runs"][0]
    assert version(made.store) == NEWEST


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ("999", f"has schema version 999, and this plangate knows {NEWEST}"),
        ("x", "is not a number"),
    ],
)
def test_a_journal_of_a_newer_version_is_left_alone(made, said, error):
    with made.store.write() as tx:
        tx.execute(sa.text("UPDATE meta SET value = :said"), {"said": said})

    with pytest.raises(JournalError, match=re.escape(error)) as caught:
        Journal.open(made.url)

    assert caught.value.hint
