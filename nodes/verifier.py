"""The verifier: whether the goal is reached is read off the world, not off the story of the run."""

from __future__ import annotations

import asyncio
from typing import Any

from plangate.engine.bench import Bench
from plangate.engine.checks import run_check
from plangate.graph.state import State
from plangate.journal.events import GoalVerified, TriggerFired
from plangate.journal.session import Session
from plangate.nodes.kit import Kit
from plangate.nodes.verdicts import with_words
from plangate.plan.outcome import Says
from plangate.plan.value.plan import Plan
from plangate.plan.verdict import Verdict, overall


async def verifier(_: State, session: Session, kit: Kit) -> dict[str, Any]:
    """Check each success criterion against fresh evidence; no criterion passed is no success."""
    plan = kit.plan(session)
    bench = kit.bench(session, plan)
    verdicts = with_words(session.view, plan, await _checked(bench, plan))
    says: Says = overall(tuple(verdicts))
    session.emit(GoalVerified(says=says, verdicts=tuple(verdicts)))
    if says == "pass":
        return {"go": "settle", "verdict": says}
    for verdict in verdicts:
        if verdict.says == says:
            session.emit(TriggerFired(kind=f"goal_{says}", code=verdict.check_id, says=verdict.why))
            break
    return {"go": "reflector", "verdict": says}


async def _checked(bench: Bench, plan: Plan) -> list[Verdict]:
    """Decide the criteria side by side; none goes on alone where another is stopped."""
    looking = [run_check(bench, check, step=None) for check in plan.success_criteria]
    verdicts: list[Verdict] = []
    for got in await asyncio.gather(*looking, return_exceptions=True):
        if isinstance(got, BaseException):
            raise got
        verdicts.append(got)
    return verdicts
