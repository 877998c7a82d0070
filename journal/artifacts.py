"""Values that are too large or too private for an event, each under the digest of what it says.

The same value has the same reference everywhere, so it is stored once, and whoever holds a
reference can tell that what comes back is what went in.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, NamedTuple

import sqlalchemy as sa

from plangate.journal.schema import ARTIFACT_USES, ARTIFACTS
from plangate.journal.store import Store, insert_new
from plangate.plan.errors import Damaged, JournalError
from plangate.plan.value.frozen import canonical, load_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic import JsonValue

    from plangate.journal.reference import Ref


class Sealed(NamedTuple):
    """A value in its canonical form."""

    ref: Ref
    body: bytes


def ref_of(value: object) -> Sealed:
    """Return the reference and the canonical bytes of plain or frozen JSON data.

    Raises:
        JournalError: The value has no canonical form: a number that JSON readers do not agree on,
            half a surrogate pair, or something that is not JSON.
    """
    try:
        body = canonical(value)
    except ValueError as exc:
        what = f"a value cannot be stored as JSON: {type(exc).__name__}"
        hint = "send integers beyond 2**53 as text, no NaN or infinity, and only valid Unicode"
        raise JournalError(what, hint=hint) from exc
    return Sealed("sha256:" + hashlib.sha256(body).hexdigest(), body)


class Artifacts:
    """All artifacts of one journal."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def put(self, value: object) -> Ref:
        """Store a value, if it is not there yet, and return its reference.

        Raises:
            JournalError: As `ref_of`.
        """
        sealed = ref_of(value)
        self._store.change(lambda tx: insert_artifacts(tx, {sealed.ref: sealed.body}))
        return sealed.ref

    def get(self, ref: Ref) -> JsonValue:
        """Return the value behind a reference.

        Raises:
            Damaged: It is not there, or it is not what the reference says.
        """
        rows = self._store.rows(sa.select(ARTIFACTS.c.body).where(ARTIFACTS.c.ref == ref))
        if not rows:
            hint = "the record that names it may be of another journal"
            raise Damaged(f"artifact {ref[:80]!r} is not in this journal", hint=hint)
        body = rows[0].body
        if "sha256:" + hashlib.sha256(body.encode()).hexdigest() != ref:
            hint = "the file was changed from outside; trust nothing that rests on it"
            raise Damaged(f"artifact {ref!r} does not have the digest it is named by", hint=hint)
        return load_json(body)

    def has(self, ref: Ref) -> bool:
        """Return True if a value is stored under the reference; its digest is not checked."""
        return bool(self._store.rows(sa.select(sa.literal(1)).where(ARTIFACTS.c.ref == ref)))


_ADD = insert_new(ARTIFACTS)
_USE = insert_new(ARTIFACT_USES)
_REF = re.compile(r"sha256:[0-9a-f]{64}")


def refs_in(texts: Iterable[str]) -> set[Ref]:
    """Return all that some records refer to; a digest that is no artifact does no harm."""
    return {ref for text in texts for ref in _REF.findall(text)}


def insert_uses(tx: sa.Connection, run_id: str, refs: Iterable[Ref]) -> None:
    """Note in the caller's transaction that a run's records name these artifacts."""
    rows = [{"run_id": run_id, "ref": ref} for ref in sorted(refs)]
    if rows:
        tx.execute(_USE, rows)


def insert_artifacts(tx: sa.Connection, bodies: dict[Ref, bytes]) -> None:
    """Add artifacts in the caller's transaction; those that are there stay as they are."""
    if bodies:  # in one order: two that add the same ones must not wait for each other
        tx.execute(_ADD, [{"ref": ref, "body": bodies[ref].decode()} for ref in sorted(bodies)])
