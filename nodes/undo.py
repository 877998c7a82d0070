"""What a run did that can be taken back, the plan that does it, and the ledger that is told.

A row becomes `compensated` only once the step that undoes it is done as it was planned, which it is
only if somebody looked and the effect was gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from pydantic import JsonValue

from plangate.journal.events import EffectMoved
from plangate.journal.journal import Journal
from plangate.journal.ledger import UNSETTLED, EffectRow, Settlement
from plangate.journal.session import Session
from plangate.journal.view import RunView, fold
from plangate.nodes.kit import Kit
from plangate.plan.catalog import Catalog
from plangate.plan.codes import issue
from plangate.plan.compensation import Done, Undoing, compensation, step_of, undoing
from plangate.plan.errors import ConfigError
from plangate.plan.issue import Issue
from plangate.plan.value.frozen import thaw
from plangate.plan.value.plan import Plan

Load = Callable[[str], JsonValue]


class Candidate(NamedTuple):
    """An effect that stands, or may stand, and how it would be taken back."""

    row: EffectRow
    undoing: Undoing | Issue

    def shown(self) -> dict[str, JsonValue]:
        """Return it as JSON data."""
        how, row = self.undoing, self.row
        about: dict[str, JsonValue] = {
            "effect_key": row.effect_key,
            "business_key": row.business_key,
            "step": row.step,
            "tool": row.tool,
            "state": row.state,
        }
        if isinstance(how, Issue):
            return {**about, "undo": None, "args": None, "code": how.code, "why_not": how.says}
        args = thaw(how.args)
        return {**about, "undo": how.undo.tool, "args": args, "code": "", "why_not": ""}


def candidates(
    rows: Iterable[EffectRow], view: RunView, load: Load, catalog: Catalog
) -> tuple[Candidate, ...]:
    """Return what stands or may stand of a run's effects, the newest first.

    Args:
        rows: The run's rows of the ledger.
        view: The run.
        load: Reads an artifact.
        catalog: The contracts that the run's principal sees.
    """
    found = []
    for row in sorted(rows, key=lambda each: each.created_at, reverse=True):
        if row.state in UNSETTLED:
            says = f"{row.business_key} is {row.state}"
            found.append(Candidate(row, issue("undo_unsettled", says, step=row.step)))
        elif row.state == "done":
            found.append(Candidate(row, _undoing(row, view, load, catalog)))
    return tuple(found)


def candidates_of(journal: Journal, run_id: str, catalog: Catalog) -> tuple[Candidate, ...]:
    """Do the same for a run that is not held."""
    view = fold(journal.log.read(run_id))
    return candidates(journal.ledger.list(run_id=run_id), view, journal.artifacts.get, catalog)


def is_compensation(view: RunView) -> bool:
    """True if the run takes back what another did."""
    return view.cause is not None and view.cause.kind == "compensation"


def compensation_plan(session: Session, kit: Kit) -> Plan:
    """Return the plan of a compensation: the same each time, from what is recorded.

    Raises:
        ConfigError: An effect can no longer be undone as it could when the run was made.
    """
    cause, journal, catalog = session.view.cause, session.journal, kit.catalog(session)
    assert cause is not None, "asked only of a run that follows from another"  # noqa: S101 (ours)
    view = fold(journal.log.read(cause.run_id))
    found: list[Undoing] = []
    for key in cause.effects:
        row = journal.ledger.get(key)
        how = None if row is None else _undoing(row, view, journal.artifacts.get, catalog)
        if row is None or not isinstance(how, Undoing):
            says = how.says if isinstance(how, Issue) else f"effect {key} is not in the ledger"
            raise ConfigError(
                f"run {cause.run_id} cannot be undone: {says}",
                hint="Use the agent as it was, or see to it by hand and settle it.",
            )
        found.append(how)
    return compensation(
        found,
        goal=session.run.goal,
        goal_id=session.run.goal_id,
        catalog_hash=catalog.content_hash,
        policy_hash=kit.policy.content_hash,
    )


async def mark_undone(session: Session, kit: Kit, plan: Plan) -> None:
    """Tell the ledger which effects are gone; does what is missing, and nothing twice."""
    cause = session.view.cause
    if cause is None or not is_compensation(session.view):
        return
    first = kit.plan(session, 1)
    for number, key in enumerate(cause.effects, 1):
        step = step_of(number)
        seen = session.view.steps.get(step)
        if seen is None or seen.status != "done" or not _as_planned(first, plan, step):
            continue
        row = await asyncio.to_thread(session.journal.ledger.get, key)
        if row is not None and row.state == "done":
            await _undone(session, row, step)


async def _undone(session: Session, row: EffectRow, step: str) -> None:
    evidence = f"obs://{session.run.run_id}/{step}"
    note = f"undone by step {step} of run {session.run.run_id}"
    await session.aflush()
    await asyncio.to_thread(
        lambda: session.journal.ledger.settle(
            session.lease, row.effect_key, "compensated", **Settlement(note=note)
        )
    )
    moved = EffectMoved(
        effect_key=row.effect_key, step=step, tool=row.tool, state="compensated", evidence=evidence
    )
    session.emit(moved)


def _as_planned(first: Plan, plan: Plan, step: str) -> bool:
    """An edit or a repair may have put another call in the place of the undo."""
    before, now = first.by_id.get(step), plan.by_id.get(step)
    if before is None or now is None:
        return False
    parts = (before.tool, before.args, before.success) == (now.tool, now.args, now.success)
    return parts and first.inputs == plan.inputs


def _undoing(row: EffectRow, view: RunView, load: Load, catalog: Catalog) -> Undoing | Issue:
    tried = view.attempts.get(row.attempt_id)
    args = None if tried is None else load(tried.started.args)
    if not isinstance(args, Mapping):
        return issue("undo_unfit", f"the arguments of {row.tool!r} are not recorded", step=row.step)
    output = load(row.output) if row.output else {}
    done = Done(
        effect_key=row.effect_key,
        business_key=row.business_key,
        step=row.step,
        tool=row.tool,
        args=args,
        output=output if isinstance(output, Mapping) else {},
    )
    return undoing(done, catalog)
