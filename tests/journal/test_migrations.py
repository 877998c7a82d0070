from __future__ import annotations

import pytest
import sqlalchemy as sa

from plangate.journal.journal import Journal
from plangate.journal.migrations import MIGRATIONS, migrate
from plangate.journal.schema import TABLES
from plangate.journal.store import Store, open_engine
from plangate.plan.errors import JournalError


def shape(tx: sa.Connection) -> dict[str, object]:
    seen = sa.inspect(tx)
    return {
        table: (
            {
                column["name"]: (column["nullable"], type(column["type"].as_generic()))
                for column in seen.get_columns(table)
            },
            seen.get_pk_constraint(table)["constrained_columns"],
            {index["name"]: index["column_names"] for index in seen.get_indexes(table)},
        )
        for table in seen.get_table_names()
    }


def test_the_migrations_make_the_tables_that_the_code_uses(journal, tmp_path):
    plain = Store(open_engine(f"sqlite:///{tmp_path}/plain.db"))
    with plain.write() as tx:
        TABLES.create_all(tx)
        wanted = shape(tx)
    plain.close()

    with journal.store.read() as tx:
        assert shape(tx) == wanted


def test_migrations_are_numbered_without_gaps():
    assert list(MIGRATIONS) == list(range(1, len(MIGRATIONS) + 1))


def test_an_up_to_date_journal_is_opened_while_somebody_writes(journal):
    with journal.store.write(), Journal.open(journal.url) as other:
        assert other.runs.list() == ()


def add_colour(tx: sa.Connection) -> None:
    tx.exec_driver_sql("ALTER TABLE runs ADD COLUMN colour TEXT")


def fail(_: sa.Connection) -> None:
    raise ZeroDivisionError


def version(store: Store) -> str:
    with store.read() as tx:
        return tx.exec_driver_sql("SELECT value FROM meta WHERE key = 'schema_version'").scalar()


def test_an_older_journal_is_brought_up_once_and_keeps_its_runs(journal, new_run):
    new_run()

    migrate(journal.store, {**MIGRATIONS, 2: add_colour})
    migrate(journal.store, {**MIGRATIONS, 2: add_colour})

    with journal.store.read() as tx:
        assert "colour" in shape(tx)["runs"][0]
        assert tx.exec_driver_sql("SELECT run_id, colour FROM runs").all() == [("r", None)]
    assert version(journal.store) == "2"


def test_a_migration_that_fails_leaves_the_journal_as_it_was(journal):
    with pytest.raises(ZeroDivisionError):
        migrate(journal.store, {**MIGRATIONS, 2: add_colour, 3: fail})

    with journal.store.read() as tx:
        assert "colour" not in shape(tx)["runs"][0]
    assert version(journal.store) == "1"


@pytest.mark.parametrize(
    ("said", "error"),
    [("2", "has schema version 2, and this plangate knows 1"), ("new", "'new' is not a number")],
)
def test_a_journal_of_a_newer_version_is_left_alone(journal, said, error):
    with journal.store.write() as tx:
        tx.execute(sa.text("UPDATE meta SET value = :said"), {"said": said})

    with pytest.raises(JournalError, match=error) as caught:
        Journal.open(journal.url)

    assert caught.value.hint
