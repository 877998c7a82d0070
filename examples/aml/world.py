"""The outside of the AML agent: a bank's books and its case files, on SQLite or Postgres.

A world is made at its first use, in the size and with the seed that its switches say. Who is guilty
is not in it: see `plangate.examples.aml.plant`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, insert, select

from plangate.examples.aml.bank import Bank
from plangate.examples.aml.casefiles import CaseFiles
from plangate.examples.aml.ordinary import live
from plangate.examples.aml.plant import plant
from plangate.examples.aml.schema import (
    INDEXES,
    accounts,
    cases,
    customers,
    metadata,
    parties,
    switches,
    transactions,
    watchlist,
)
from plangate.examples.aml.store import Store, open_store, pour
from plangate.plan.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Connection

DEFAULTS: Mapping[str, Any] = {"rows": 100_000, "seed": 7, "attacks": True}
"""Of what size and seed a world is, and whether outsiders write instructions into it."""

SWITCHES: Mapping[str, str] = {
    "rows": "how many transactions there are, 1000 at least (default 100000)",
    "seed": "the same seed makes the same world (default 7)",
    "attacks": "false: no memo and no name holds an instruction (default true)",
    "draft_invents": "id, amount or text: the next drafts of `draft_sar` hold something invented",
    "draft_invents_times": "how many drafts (default 1)",
}
"""What a scenario can ask of the world."""

LEAST_ROWS = 1_000
MOST_ROWS = 5_000_000


class AmlWorld:
    """What tools of the AML agent see as `ToolContext.world`. Threads may share one."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._is_made = False
        self._bank = Bank(store)
        self._files = CaseFiles(store)

    @property
    def bank(self) -> Bank:
        """The bank's books; only reads."""
        self._need_made()
        return self._bank

    @property
    def files(self) -> CaseFiles:
        """The case files, and what else can be changed."""
        self._need_made()
        return self._files

    def prepare(self, chosen: Mapping[str, Any]) -> None:
        """Set exactly these switches; the world is made anew if it was of another size or seed.

        Raises:
            ConfigError: There is no such switch, or the size is none.
        """
        if unknown := sorted(chosen.keys() - SWITCHES.keys()):
            raise ConfigError(
                f"the AML world has no switch {unknown[0]!r}",
                hint="It has: " + ", ".join(SWITCHES),
            )
        rows = chosen.get("rows", DEFAULTS["rows"])
        if not isinstance(rows, int) or not LEAST_ROWS <= rows <= MOST_ROWS:
            raise ConfigError(
                f"a world of {rows!r} transactions cannot be made",
                hint=f"Ask for {LEAST_ROWS} to {MOST_ROWS}.",
            )
        with self._store.writing() as connection:
            is_same = _made_of(connection) == _shape(chosen)
            if not is_same:
                _make(connection, _shape(chosen))
            self._files.forget(connection)
            _switch(connection, {**_shape(chosen), **chosen})
        self._is_made = True

    def results(self, inputs: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
        """Return what the bank's own books show of a case after a run.

        Returns:
            `filed`: drafts; `closed`: closures; `outside`: what was sent out or blocked.
        """
        case_id = str(inputs.get("case_id"))
        return {
            "filed": self.files.drafts_of(case_id),
            "closed": self.files.closures_of(case_id),
            "outside": self.files.outside(),
        }

    def told(self, inputs: Mapping[str, Any]) -> list[str]:
        """Return how a case ended in lines for people: each claim with its verdict."""
        shown = self.results(inputs)
        lines = []
        for draft in shown["filed"]:
            body = draft["body"]
            sure = f"{body['verdict']}, confidence {body['confidence_pct']} %"
            lines.append(f"report {draft['draft_id']}: {sure}")
            claims = [each for part in body["sections"] for each in part["claims"]]
            for each in claims:
                held = f"{each['verdict']}, {each['confidence_pct']} %"
                lines.append(f"  {each['section']}: {held}: {each['text']}")
        for closure in shown["closed"]:
            lines += [f"case {closure['case_id']} closed: no suspicion"]
            lines += [f"  {reason}" for reason in closure["reasons"]]
        return lines

    def close(self) -> None:
        """Close every connection."""
        self._store.close()

    def _need_made(self) -> None:
        """Make the world if nobody has; a second one who comes waits for the writer's lock."""
        if self._is_made:
            return
        with self._store.writing() as connection:
            if _made_of(connection) is None:
                _make(connection, dict(DEFAULTS))
                _switch(connection, dict(DEFAULTS))
        self._is_made = True


def connect(url: str) -> AmlWorld:
    """Open the world.

    Args:
        url: As `sqlite:///.plangate/aml-world.db` or `postgresql://plangate@localhost/aml`.

    Raises:
        ConfigError: The URL names neither a file nor a server.
    """
    return AmlWorld(open_store(url))


def _shape(chosen: Mapping[str, Any]) -> dict[str, Any]:
    return {name: chosen.get(name, default) for name, default in DEFAULTS.items()}


def _made_of(connection: Connection) -> dict[str, Any] | None:
    found = {row.name: row.value for row in connection.execute(select(switches))}
    return {name: found[name] for name in DEFAULTS} if DEFAULTS.keys() <= found.keys() else None


def _switch(connection: Connection, chosen: Mapping[str, Any]) -> None:
    connection.execute(delete(switches))
    rows = [{"name": name, "value": value} for name, value in chosen.items()]
    connection.execute(insert(switches), rows)


def _make(connection: Connection, shape: Mapping[str, Any]) -> None:
    for table in reversed(metadata.sorted_tables):
        connection.execute(delete(table))
    for index in INDEXES:
        index.drop(connection, checkfirst=True)  # one sort at the end beats 100,000 insertions
    planted, _ = plant(shape["seed"], attacked=shape["attacks"])
    others, bought = live(shape["seed"], shape["rows"] - len(planted.transactions))
    for sower in (planted, others):
        pour(connection, customers, sower.customers)
        pour(connection, accounts, sower.accounts)
        pour(connection, parties, sower.parties)
    pour(connection, watchlist, planted.watchlist)
    pour(connection, cases, planted.cases)
    pour(connection, transactions, planted.transactions + bought)
    for index in INDEXES:
        index.create(connection, checkfirst=True)
