"""The tables. Rows of `events`, `decisions` and `artifacts` are only ever added.

Times are text in UTC with six digits of a second, so that they compare as they sort and come back
exactly; money and other exact values are inside JSON text. What a file on a disk holds is made by
`plangate.journal.migrations`; a test compares the two.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from sqlalchemy.engine import Dialect


class Instant(sa.types.TypeDecorator[datetime]):
    """An aware time, stored as `2026-01-31T08:15:00.000000+00:00`."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> str | None:
        """Write it in UTC."""
        del dialect
        if value is None:
            return None
        assert value.tzinfo is not None, "times in the journal are aware"  # noqa: S101 (ours)
        return value.astimezone(UTC).isoformat(timespec="microseconds")

    def process_result_value(self, value: str | None, dialect: Dialect) -> datetime | None:
        """Read it."""
        del dialect
        return None if value is None else datetime.fromisoformat(value)


def _text(name: str, *, null: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=null)


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=False)


def _time(name: str, *, null: bool = False) -> sa.Column[datetime]:
    return sa.Column(name, Instant, nullable=null)


TABLES = sa.MetaData()

META = sa.Table(
    "meta",
    TABLES,
    sa.Column("key", sa.Text, primary_key=True),
    _text("value"),
)

RUNS = sa.Table(
    "runs",
    TABLES,
    sa.Column("run_id", sa.Text, primary_key=True),
    _text("goal_id"),
    _text("goal"),
    _text("thread_id"),
    _text("agent"),
    _text("principal"),
    _text("status"),
    _text("ending", null=True),
    _text("verdict", null=True),
    _time("created_at"),
    _time("updated_at"),
    _number("last_seq"),
    _text("owner", null=True),
    _number("epoch"),
    _time("lease_until", null=True),
    sa.Index("runs_by_thread", "thread_id"),
)

_OPEN = sa.and_(RUNS.c.status != "ended", RUNS.c.thread_id != "")
sa.Index(
    "one_open_run_of_a_thread",
    RUNS.c.thread_id,
    unique=True,
    sqlite_where=_OPEN,
    postgresql_where=_OPEN,
)
_HELD = RUNS.c.owner.is_not(None)
sa.Index("runs_by_owner", RUNS.c.owner, sqlite_where=_HELD, postgresql_where=_HELD)

EVENTS = sa.Table(
    "events",
    TABLES,
    sa.Column("run_id", sa.Text, primary_key=True),
    sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
    _time("at"),
    _number("epoch"),
    _text("type"),
    _text("step", null=True),
    _text("body"),
)

EFFECTS = sa.Table(
    "effects",
    TABLES,
    sa.Column("effect_key", sa.Text, primary_key=True),
    _text("business_key"),
    _text("run_id"),
    _text("goal_id"),
    _text("step"),
    _number("plan_version"),
    _text("attempt_id"),
    _text("tool"),
    _text("tool_version"),
    _text("args_sha256"),
    _text("approval", null=True),
    _text("state"),
    _number("epoch"),
    _text("operation_id", null=True),
    _text("output", null=True),
    _text("error_code"),
    _text("business_state"),
    _time("created_at"),
    _time("settled_at", null=True),
    _text("note"),
    _text("by"),
    _text("owner"),
    sa.Index("effects_by_run", "run_id"),
)

DECISIONS = sa.Table(
    "decisions",
    TABLES,
    sa.Column("question_id", sa.Text, primary_key=True),
    _text("run_id"),
    _text("decision"),
    _text("by"),
    _time("at"),
    _text("answer"),
    _text("comment"),
    _text("content_hash"),
    _text("steps"),
    _time("expires_at", null=True),
    sa.Index("decisions_by_run", "run_id"),
)

VOTES = sa.Table(
    "votes",
    TABLES,
    sa.Column("question_id", sa.Text, primary_key=True),
    sa.Column("voter", sa.Text, primary_key=True),
    _text("run_id"),
    _time("at"),
    _text("body"),
)

ARTIFACTS = sa.Table(
    "artifacts",
    TABLES,
    sa.Column("ref", sa.Text, primary_key=True),
    _text("body"),
)

VERIFIED = sa.Table(
    "verified_runs",
    TABLES,
    sa.Column("run_id", sa.Text, primary_key=True),
    _text("task_type"),
    _text("catalog_hash"),
    _text("policy_hash"),
    _time("at"),
    sa.Index("verified_runs_by_kind", "catalog_hash", "policy_hash", "at"),
)
"""Runs that ended with their goal verified, and under which contracts and rules."""

RESERVATIONS = sa.Table(
    "reservations",
    TABLES,
    sa.Column("row_id", sa.Text, primary_key=True),
    _text("account"),
    _text("day"),
    _text("run_id"),
    _number("epoch"),
    _text("act"),
    _number("ledgered"),
    _text("state"),
    sa.Column("nano_usd", sa.BigInteger, nullable=True),
    _number("tokens"),
    _number("tool_calls"),
    _number("model_calls"),
    sa.Index("reservations_by_day", "account", "day"),
    sa.Index("reservations_by_run", "run_id"),
)
"""What acts may take or took of their principal's day; `nano_usd` is null where nobody knows."""

USAGE = sa.Table(
    "usage",
    TABLES,
    sa.Column("run_id", sa.Text, primary_key=True),
    sa.Column("subject", sa.Text, primary_key=True),
    _time("at"),
    _number("calls"),
    _text("body"),
    sa.Index("usage_by_subject", "subject", "at"),
)
"""What the calls of a run took, by subject: what later estimates learn from."""

ARTIFACT_USES = sa.Table(
    "artifact_uses",
    TABLES,
    sa.Column("run_id", sa.Text, primary_key=True),
    sa.Column("ref", sa.Text, primary_key=True),
    sa.Index("artifact_uses_by_ref", "ref"),
)
"""Which run's records name an artifact: what no run uses any more can go."""
