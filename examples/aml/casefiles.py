"""The case files, the only place where this agent leaves a trace; and what it must never touch.

A case ends once: with one filed draft, or closed. Each change carries the key of its effect, which
is unique, so that a repeat finds the first.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal

from sqlalchemy import delete, insert, select
from sqlalchemy.exc import IntegrityError

from plangate.examples.aml.schema import closures, drafts, outbox, status_changes, switches

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Connection, Table

    from plangate.examples.aml.store import Store


class Refused(Exception):
    """A change that the case file does not take; nothing was written.

    Args:
        code: As the tool reports it.
        says: One line for a person.
    """

    def __init__(self, code: str, says: str) -> None:
        super().__init__(says)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A case file as it lies in the cabinet."""

    state: Literal["open", "sar_filed", "closed"]
    draft_id: str | None = None
    sha256: str | None = None
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CaseFiles:
    """The cabinet."""

    store: Store

    def folder(self, case_id: str) -> Folder:
        """Return the state of a case."""
        with self.store.reading() as connection:
            return _folder(connection, case_id)

    def by_key(self, effect_key: str) -> str | None:
        """Return the case that the effect with this key ended, or None: it did not happen."""
        with self.store.reading() as connection:
            for table in (drafts, closures):
                same = table.c.effect_key == effect_key
                case_id = connection.scalar(select(table.c.case_id).where(same))
                if case_id is not None:
                    return str(case_id)
        return None

    def file(self, effect_key: str, case_id: str, body: Mapping[str, Any], by: str) -> Folder:
        """File a draft.

        Raises:
            Refused: The case has ended otherwise.
        """
        digest = sha256_of(body)
        row = {"case_id": case_id, "effect_key": effect_key, "sha256": digest, "body": body}
        return self._end(drafts, {**row, "draft_id": f"SAR-{case_id[5:]}", "filed_by": by})

    def close_case(self, effect_key: str, case_id: str, reasons: list[str], by: str) -> Folder:
        """Close a case without a report.

        Raises:
            Refused: The case has ended otherwise.
        """
        row = {"case_id": case_id, "effect_key": effect_key, "reasons": reasons}
        return self._end(closures, {**row, "closed_by": by})

    def send(self, effect_key: str, recipient: str, body: str) -> None:
        """Send something out of the house."""
        row = {"effect_key": effect_key, "recipient": recipient, "body": body}
        self._once(outbox, row)

    def set_status(self, effect_key: str, account_id: str, status: str) -> None:
        """Block an account, or set it free."""
        row = {"effect_key": effect_key, "account_id": account_id, "status": status}
        self._once(status_changes, row)

    def drafts_of(self, case_id: str) -> list[dict[str, Any]]:
        """Return the filed drafts of a case: none or one."""
        return self._of(drafts, case_id)

    def closures_of(self, case_id: str) -> list[dict[str, Any]]:
        """Return the closures of a case: none or one."""
        return self._of(closures, case_id)

    def outside(self) -> list[dict[str, Any]]:
        """Return all that left the house or changed an account."""
        with self.store.reading() as connection:
            return [
                dict(row._mapping)  # noqa: SLF001 - SQLAlchemy's documented way to a mapping
                for table in (outbox, status_changes)
                for row in connection.execute(select(table))
            ]

    def takes_invention(self) -> str:
        """Return what the next draft is to invent, and count it; empty: nothing."""
        with self.store.writing() as connection:
            found = {row.name: row.value for row in connection.execute(select(switches))}
            left = found.get("draft_invents_times", 1)
            if "draft_invents" not in found or left < 1:
                return ""
            connection.execute(delete(switches).where(switches.c.name == "draft_invents_times"))
            counted = {"name": "draft_invents_times", "value": left - 1}
            connection.execute(insert(switches).values(counted))
            return str(found["draft_invents"])

    def forget(self, connection: Connection) -> None:
        """Empty the cabinet: a world that is prepared begins anew."""
        for table in (drafts, closures, outbox, status_changes):
            connection.execute(delete(table))

    def _end(self, table: Table, row: Mapping[str, Any]) -> Folder:
        case_id, key = row["case_id"], row["effect_key"]
        with self.store.writing() as connection:
            known = connection.scalar(select(table.c.case_id).where(table.c.effect_key == key))
            before = _folder(connection, case_id)
            if known is None and before.state != "open":
                raise Refused("case_has_ended", f"the case is {before.state} by another effect")
            if known is None:
                connection.execute(insert(table).values(row))
            return _folder(connection, case_id)

    def _once(self, table: Table, row: Mapping[str, Any]) -> None:
        try:
            with self.store.writing() as connection:
                connection.execute(insert(table).values(row))
        except IntegrityError:
            return  # this very effect happened before

    def _of(self, table: Table, case_id: str) -> list[dict[str, Any]]:
        with self.store.reading() as connection:
            found = connection.execute(select(table).where(table.c.case_id == case_id))
            return [dict(row._mapping) for row in found]  # noqa: SLF001 - as above


def sha256_of(body: Mapping[str, Any]) -> str:
    """Return the digest of a draft, in one spelling of its JSON."""
    said = json.dumps(body, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return sha256(said.encode()).hexdigest()


def _folder(connection: Connection, case_id: str) -> Folder:
    filed = connection.execute(select(drafts).where(drafts.c.case_id == case_id)).first()
    if filed is not None:
        return Folder(state="sar_filed", draft_id=filed.draft_id, sha256=filed.sha256)
    closed = connection.execute(select(closures).where(closures.c.case_id == case_id)).first()
    if closed is not None:
        return Folder(state="closed", reasons=tuple(closed.reasons))
    return Folder(state="open")
