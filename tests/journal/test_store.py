from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa

from plangate.journal.journal import Journal
from plangate.journal.store import Store, open_engine
from plangate.plan.errors import ConfigError, JournalError


def test_a_missing_directory_is_made(tmp_path):
    path = tmp_path / "a b" / "c" / "journal.db"

    with Journal.open(f"sqlite:///{path}") as journal:
        assert journal.runs.list() == ()

    assert path.is_file()


def test_a_relative_path_stays_where_it_was(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Journal.open("sqlite:///here.db") as journal:
        monkeypatch.chdir("/")
        journal.store.close()

        assert journal.runs.list() == ()
        assert journal.url == f"sqlite:///{tmp_path}/here.db"


@pytest.mark.parametrize("replaced", [False, True], ids=["removed", "replaced"])
def test_a_file_that_was_taken_away_is_not_written_to_as_if_it_were_there(tmp_path, replaced):
    path = tmp_path / "journal.db"
    with Journal.open(f"sqlite:///{path}") as journal:
        journal.artifacts.put({"a": 1})
        path.rename(tmp_path / "elsewhere.db")
        if replaced:
            path.touch()

        with pytest.raises(JournalError, match="removed or replaced"):
            journal.artifacts.put({"a": 2})


def not_a_database(folder: Path) -> Path:
    path = folder / "notes.txt"
    path.write_text("These are my notes, and they are longer than a header." * 20)
    return path


def file_as_directory(folder: Path) -> Path:
    (folder / "file").write_text("")
    return folder / "file" / "journal.db"


def a_directory(folder: Path) -> Path:
    return folder


def a_directory_that_cannot_be_written(folder: Path) -> Path:
    if os.geteuid() == 0:
        return Path("/sys/journal.db")  # permissions do not stop root, this does
    (folder / "locked").mkdir(mode=0o500)
    return folder / "locked" / "journal.db"


def a_parent_that_cannot_be_made(folder: Path) -> Path:
    return a_directory_that_cannot_be_written(folder).parent / "deeper" / "journal.db"


def tables_of_another_program(folder: Path) -> Path:
    path = folder / "other.db"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE meta (id INTEGER)")
    other.close()
    return path


def a_table_with_one_of_our_names(folder: Path) -> Path:
    path = folder / "other.db"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE runs (id INTEGER)")
    other.close()
    return path


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (not_a_database, "file is not a database"),
        (file_as_directory, "directory .* cannot be made"),
        (a_directory, "unable to open database file"),
        (a_directory_that_cannot_be_written, "refused|cannot be made"),
        (a_parent_that_cannot_be_made, "cannot be made"),
        (tables_of_another_program, "no such column"),
        (a_table_with_one_of_our_names, "already exists"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_clear_error(tmp_path, make, says):
    path = make(tmp_path)

    with pytest.raises(JournalError, match=says) as caught:
        Journal.open(f"sqlite:///{path}")

    assert caught.value.hint


@pytest.mark.parametrize(
    "url",
    [
        "journal.db",
        "",
        "postgresql+asyncpg://here/db",
        "mysql://x/y",
        "sqlite://",
        "sqlite:///:memory:",
    ],
)
def test_a_url_that_cannot_be_used_is_one_clear_error(url):
    with pytest.raises(ConfigError) as caught:
        Journal.open(url)

    assert "sqlite:///" in caught.value.hint


def test_a_refusal_names_no_payload(url):
    with Journal.open(url) as journal:
        with pytest.raises(JournalError) as caught, journal.store.write() as tx:
            tx.execute(sa.text("INSERT INTO meta VALUES (:k, :v)"), {"k": "k", "v": None})

        assert "NOT NULL" in str(caught.value)
        assert "parameters hidden" in str(caught.value.__cause__)


def test_a_failed_block_leaves_nothing(url):
    store = Store(open_engine(url))

    def fail() -> None:
        with store.write() as tx:
            tx.exec_driver_sql("CREATE TABLE t (a)")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with store.read() as tx:
        assert sa.inspect(tx).get_table_names() == []
    store.close()


def test_a_reader_does_not_wait_for_a_writer(journal):
    with journal.store.write() as tx:
        tx.exec_driver_sql("UPDATE meta SET value = '1'")

        assert journal.runs.list() == ()


def test_a_commit_is_synced_to_the_disk(journal):
    with journal.store.read() as tx:
        said = [
            tx.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous")
        ]

    assert said == ["wal", 2]


OPENER = """
import sys
from plangate.journal.journal import Journal
sys.stdin.read()
with Journal.open(sys.argv[1]) as journal:
    print(len(journal.runs.list()))
"""


@pytest.mark.slow
def test_many_processes_open_a_new_file_at_once(url):
    openers = [
        subprocess.Popen(
            [sys.executable, "-c", OPENER, url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for _ in range(5)
    ]
    for opener in openers:
        opener.stdin.close()
    said = [opener.stdout.read() for opener in openers]
    for opener in openers:
        opener.wait()
        opener.stdout.close()

    assert said == ["0\n"] * 5
