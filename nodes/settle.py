"""The last node: states from the record how the run ended, and closes it or leaves it open."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pydantic import JsonValue

from plangate.graph.state import State
from plangate.journal.events import RunEnded, VerifiedAs
from plangate.journal.ledger import UNSETTLED, EffectRow
from plangate.journal.points import reached
from plangate.journal.session import Session
from plangate.journal.spending import PartlyReported
from plangate.nodes.ending import Ending, ending_of
from plangate.nodes.kit import Kit
from plangate.nodes.report import Claim, claims_of, report_of
from plangate.nodes.undo import Candidate, Load, candidates, is_compensation, mark_undone
from plangate.nodes.unfinished import end_rest, end_revised
from plangate.nodes.used import used_by
from plangate.plan.errors import Damaged, Unreadable
from plangate.plan.value.plan import Plan


async def settle(_: State, session: Session, kit: Kit) -> dict[str, Any]:
    """Write the report; a stop at a limit ends this pass but not the run."""
    if session.view.ended is not None:
        return _told(session)
    end_revised(session)
    await session.aflush()
    plan, unread = _plan(session, kit)
    if plan is not None:  # whoever held the run before may have been stopped between the two
        await mark_undone(session, kit, plan)
    run_id = session.run.run_id
    effects = await asyncio.to_thread(session.journal.ledger.list, run_id=run_id)
    if session.view.cancelled is not None:
        end_rest(session, plan, effects)
    ending = ending_of(session.view)
    claims = []
    if plan is not None:
        catalog = kit.catalog(session)
        claims = await asyncio.to_thread(claims_of, session, plan, catalog, effects)
    ending = _held_against(ending, claims, unread)
    ending = _with_open_effects(ending, effects)
    left = () if ending.ending == "completed" else _left(session, kit, effects)
    report = report_of(session, plan, ending, claims, effects, left)
    reached("report.made")
    _close(session, kit, ending, plan, session.put(report))
    await session.aflush()
    return {
        "ending": ending.ending,
        "verdict": ending.verdict,
        "report": _small(report),
    }


def _plan(session: Session, kit: Kit) -> tuple[Plan | None, str]:
    """Load the plan, or say why it cannot be read: a run has to end all the same."""
    if not session.view.version:
        return None, ""
    try:
        return kit.plan(session), ""
    except (Damaged, Unreadable) as exc:
        return None, str(exc)


def _held_against(ending: Ending, claims: Sequence[Claim], unread: str) -> Ending:
    """Refute a report by a claim that does not hold; one that nobody could look at proves nothing.

    Args:
        ending: As the log has it.
        claims: Of the steps, with what the ledger says to them.
        unread: Why the plan cannot be read; empty: it was.
    """
    if broken := [claim for claim in claims if not claim.holds]:
        why = "; ".join(f"{claim.says}, but the record says: {claim.record}" for claim in broken)
        return replace(ending, verdict="fail", ending="failed", why=f"report refuted: {why}")
    if not unread:
        return ending
    why = "; ".join(filter(None, (ending.why, f"not held against the ledger: {unread}")))
    verdict = "unknown" if ending.verdict == "pass" else ending.verdict
    return replace(ending, verdict=verdict, why=why)


def _left(session: Session, kit: Kit, effects: Sequence[EffectRow]) -> tuple[Candidate, ...]:
    """What a run that did not reach its goal leaves behind outside, and the way back of each."""
    return candidates(effects, session.view, _if_there(session.load), kit.catalog(session))


def _if_there(load: Load) -> Load:
    """Give nothing where a record is damaged: what it was about is then not known, and said so."""

    def found(ref: str) -> JsonValue:
        try:
            return load(ref)
        except Damaged:
            return None

    return found


def _with_open_effects(ending: Ending, effects: Sequence[EffectRow]) -> Ending:
    """Where it is not known what happened outside, neither success nor failure is known."""
    open_ones = [f"{row.business_key} is {row.state}" for row in effects if row.state in UNSETTLED]
    if not open_ones or ending.verdict == "unknown":
        return ending
    said = "; ".join((*filter(None, (ending.why,)), *open_ones))
    return replace(ending, verdict="unknown", why=said)


def _told(session: Session) -> dict[str, Any]:
    """A run ends once: whoever comes back to it gets the report that was written then."""
    ended = session.view.ended
    report = session.load(ended.report) if ended is not None else None
    known: dict[str, Any] = report if isinstance(report, dict) else {}
    return {
        "ending": known.get("ending", ""),
        "verdict": known.get("verdict", ""),
        "report": _small(known),
    }


def _close(session: Session, kit: Kit, ending: Ending, plan: Plan | None, report: str) -> None:
    if ending.ending == "stopped":
        session.emit(PartlyReported(report=report))
        return
    session.emit(
        RunEnded(
            ending=ending.ending,
            verdict=ending.verdict,
            why=ending.why,
            report=report,
            verified=_verified_as(session, ending, plan),
            used=used_by(session, kit),
        )
    )


def _verified_as(session: Session, ending: Ending, plan: Plan | None) -> VerifiedAs | None:
    """Say what a success speaks for; an undo speaks for nothing that anybody would plan."""
    reached = (ending.ending, ending.verdict) == ("completed", "pass")
    if plan is None or not reached or is_compensation(session.view):
        return None
    checked = session.view.validated[plan.version]
    return VerifiedAs(
        task_type=plan.task_type,
        catalog_hash=checked.catalog_hash,
        policy_hash=checked.policy_hash,
    )


def _small(report: dict[str, Any]) -> dict[str, Any]:
    """What the caller of `invoke` sees; the whole report lies in the journal."""
    keys = ("run_id", "ending", "verdict", "why", "plan_versions", "estimate", "actual", "stopped")
    return {key: report.get(key) for key in keys}
