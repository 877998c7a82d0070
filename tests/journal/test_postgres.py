from __future__ import annotations

import sys
import threading
import traceback

import pytest
import sqlalchemy as sa

from plangate.journal.journal import Journal
from plangate.journal.store import hidden, open_engine
from plangate.plan.errors import ConfigError, JournalError


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:s3cr/et@db.bank:6432/book?sslmode=require",
        "postgres://me:s3cr@et@db/book",
        "postgresql://me@db/book?password=s3cret&sslmode=require",
        "postgresql://me@db/book?sslmode=require&sslpassword=s3cret",
        "postgresql+psycopg://me:s3cret@/book?host=db",
    ],
)
def test_a_password_is_printed_nowhere(url):
    assert "s3cr" not in hidden(url)
    assert hidden(hidden(url)) == hidden(url)
    assert "me@" in hidden(url)


def test_a_printed_url_opens_the_same_journal_with_the_password_from_elsewhere(
    postgres, monkeypatch
):
    with_password = postgres.replace("plangate@", "plangate:s3cret@") + "?application_name=mine"
    with Journal.open(with_password) as journal:
        ref = journal.artifacts.put({"a": 1})
        assert "s3cret" not in journal.url
        assert "s3cret" in str(journal.store.engine.url.password)
        monkeypatch.setenv("PGPASSWORD", "s3cret")
        with Journal.open(journal.url) as again:
            assert again.url == journal.url
            assert again.artifacts.get(ref) == {"a": 1}


def test_without_its_driver_a_journal_on_postgres_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)

    with pytest.raises(ConfigError, match="needs psycopg") as caught:
        open_engine("postgresql://db/x")

    assert "plangate[postgres]" in caught.value.hint


@pytest.mark.parametrize(
    ("change", "says", "hint"),
    [
        (lambda url: url.rpartition("/")[0] + "/not_there", "does not exist", "create"),
        (lambda url: url.replace("127.0.0.1:", "127.0.0.1:1"), "", ""),
        (lambda url: url.replace("plangate@", "nobody_here@"), "does not exist", "user"),
    ],
    ids=["no database", "no server", "no user"],
)
def test_a_server_that_cannot_be_used_is_one_clear_error_at_once(postgres, change, says, hint):
    url = change(postgres)
    if ":1" in url and not says:
        url = "postgresql://plangate@127.0.0.1:1/x"
        says, hint = "refused", "start the server"

    with pytest.raises(JournalError, match=says) as caught:
        Journal.open(url)

    assert hint in caught.value.hint


def test_tables_of_another_program_are_left_alone(bare_postgres):
    other = sa.create_engine(bare_postgres.replace("://", "+psycopg://"))
    with other.begin() as tx:
        tx.exec_driver_sql("CREATE TABLE runs (id INTEGER)")

    with pytest.raises(JournalError, match="already exists") as caught:
        Journal.open(bare_postgres)

    with other.begin() as tx:
        assert sa.inspect(tx).get_table_names() == ["runs"]
    other.dispose()
    assert "its own database" in caught.value.hint


def test_text_that_postgres_cannot_hold_is_one_clear_error(postgres):
    with Journal.open(postgres) as journal:
        with pytest.raises(JournalError, match="NUL") as caught, journal.store.write() as tx:
            tx.execute(sa.text("INSERT INTO meta VALUES (:k, :v)"), {"k": "k", "v": "a\0b"})

        assert "clean text" in caught.value.hint


def test_a_refusal_names_no_payload(postgres):
    with (
        Journal.open(postgres) as journal,
        pytest.raises(JournalError, match="null value") as caught,
        journal.store.write() as tx,
    ):
        tx.execute(sa.text("INSERT INTO meta VALUES (:k, :v)"), {"k": "secret-k", "v": None})

    assert "secret-k" not in "".join(traceback.format_exception(caught.value))


def test_a_read_sees_one_state_and_waits_for_no_writer(postgres):
    with Journal.open(postgres) as journal:
        count = sa.text("SELECT count(*) FROM artifacts")
        with journal.store.write() as tx, journal.store.read() as seen:
            before = seen.execute(count).scalar_one()
            journal.artifacts.put({"a": 1})
            tx.exec_driver_sql("LOCK TABLE runs IN ROW EXCLUSIVE MODE")

            assert seen.execute(count).scalar_one() == before == 0
        assert journal.artifacts.has(journal.artifacts.put({"a": 1}))


def test_a_pool_of_one_connection_serves_many_threads(postgres):
    with Journal.open(f"{postgres}?pool_size=1") as journal:
        threads = [
            threading.Thread(target=lambda n=n: journal.artifacts.put({"n": n})) for n in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert len(journal.store.rows(sa.text("SELECT ref FROM artifacts"))) == 8
        assert journal.store.engine.pool.size() == 1


@pytest.mark.parametrize("said", ["0", "many", "-1"])
def test_a_pool_size_that_is_none_is_refused(said):
    with pytest.raises(ConfigError, match="pool_size"):
        open_engine(f"postgresql://db/x?pool_size={said}")


@pytest.mark.parametrize(("told", "done"), [("off", "on"), ("remote_apply", "remote_apply")])
def test_a_commit_is_on_the_disk_whatever_the_server_is_content_with(postgres, told, done):
    with Journal.open(f"{postgres}?options=-csynchronous_commit%3D{told}") as journal:
        said = journal.store.rows(sa.text("SHOW synchronous_commit"))

    assert [tuple(row) for row in said] == [(done,)]
