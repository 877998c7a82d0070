"""`plangate doctor`: says what works here and what does not, and never a secret's value."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from plangate.cli.options import chosen_prices, journal_option, json_option, prices_option
from plangate.cli.terminal import data_console, echo_json, line, put
from plangate.plan.errors import ConfigError, PlangateError

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGES = (
    "plangate",
    "langgraph",
    "langchain-core",
    "langchain-openai",
    "pydantic",
    "sqlalchemy",
    "cel-expr-python",
    "tiktoken",
    "genai-prices",
    "click",
    "rich",
)
KEYS = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "LANGSMITH_API_KEY")
_STYLE = {"ok": "green", "note": "dim", "broken": "bold red"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    what: str
    state: Literal["ok", "note", "broken"]
    says: str


@click.command()
@prices_option
@journal_option
@json_option
def doctor(journal: str, as_json: bool) -> None:
    """Look at this installation. Exit 2 if something is broken, 7 if it is the journal."""
    findings = list(_findings(journal))
    if as_json:
        found = [{"what": f.what, "state": f.state, "says": f.says} for f in findings]
        echo_json({"healthy": all(f.state != "broken" for f in findings), "findings": found})
    else:
        rows = [line((f"{f.state:<6}", _STYLE[f.state]), f.what, f.says) for f in findings]
        put(data_console(), rows)
    broken = {found.what for found in findings if found.state == "broken"}
    if broken:
        click.get_current_context().exit(7 if "journal" in broken else ConfigError.exit_code)


def _findings(journal: str) -> Iterator[Finding]:
    yield Finding("python", "ok", sys.version.split()[0])
    yield from _packages()
    yield _journal(journal)
    yield _vocabulary()
    yield _prices()
    for key in KEYS:
        yield Finding(key, "note", "set" if os.environ.get(key) else "not set")
    yield _writable(Path.cwd())


def _packages() -> Iterator[Finding]:
    from importlib.metadata import PackageNotFoundError, version

    for name in PACKAGES:
        try:
            yield Finding(name, "ok", version(name))
        except PackageNotFoundError:
            yield Finding(name, "broken", "not installed")


def _journal(url: str) -> Finding:
    from plangate.cli.opened import file_of, opened_journal

    path = file_of(url)
    if path is not None and not path.exists():
        return Finding("journal", "note", f"{url}: not there yet; the first run makes it")
    from plangate.journal.migrations import MIGRATIONS

    try:
        with opened_journal(url) as opened:
            newest = opened.runs.list(limit=1)
            said = f"{opened.url}, schema version {max(MIGRATIONS)}"
    except PlangateError as error:
        return Finding("journal", "broken", f"{error} ({error.hint})")
    return Finding("journal", "ok", f"{said}, newest run {newest[0].run_id if newest else 'none'}")


def _vocabulary() -> Finding:
    from plangate.budget.vocabulary import encoding

    if encoding("o200k_base") is None:
        return Finding("vocabulary", "broken", "o200k_base is not here; token counts are estimates")
    return Finding("vocabulary", "ok", "o200k_base loads offline")


def _prices() -> Finding:
    from plangate.budget.prices import PriceBook

    try:
        book = chosen_prices() or PriceBook()
    except ConfigError as error:
        return Finding("prices", "broken", f"{error} ({error.hint})")
    if age := book.age(datetime.now(UTC)):
        return Finding("prices", "note", f"{age}: bring them up to date ({book.table})")
    return Finding("prices", "ok", f"{book.table}, of {book.as_of}")


def _writable(here: Path) -> Finding:
    place = here / ".plangate"
    place = place if place.exists() else here
    if os.access(place, os.W_OK | os.X_OK):
        return Finding("directory", "ok", f"{place} is writable")
    return Finding("directory", "broken", f"{place} is not writable")
