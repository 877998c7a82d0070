"""The look at a step just before it runs, with the rights of this moment.

What a step may have done before is not forgotten when it may not run any more.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from plangate.engine.authorizer import authorized
from plangate.engine.ended import held_back, routed
from plangate.engine.release import Held, Ready, held_as_a_whole, prepare
from plangate.engine.reread import reread
from plangate.journal.events import StepReleased
from plangate.journal.ledger import UNSETTLED
from plangate.journal.points import reached
from plangate.journal.progress import unit_of
from plangate.plan.effects import effect_key
from plangate.plan.errors import ConfigError, Denied

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plangate.engine.bench import Bench
    from plangate.engine.ended import Ended
    from plangate.plan.value.frozen import Json
    from plangate.plan.value.step import Step
    from plangate.tools.tool import Tool


async def looked_at(
    bench: Bench, step: Step, element: int | None = None
) -> tuple[Bench, Ready | Held]:
    """Look at a step a last time; where rights are not known there are none."""
    try:
        bench = await authorized(bench)
    except Denied as exc:
        return bench, _no_rights(exc)
    ready, tool = prepare(bench, step), bench.tools.get(step.tool or "")
    if (
        isinstance(ready, Ready)
        and tool is not None
        and tool.spec.effect.acts
        and await asyncio.to_thread(_was_begun, bench, tool, ready.args)
    ):
        return bench, ready  # our own effect may be what moved the world; a no comes too late
    if element is not None:
        return bench, ready  # read again before the first element: those before it move the world
    return bench, await reread(bench, step, ready)


async def looked_at_list(bench: Bench, step: Step) -> tuple[Bench, Held | None]:
    """Look at a step over a list for what holds for all of it."""
    try:
        bench = await authorized(bench)
    except Denied as exc:
        return bench, _no_rights(exc)
    return bench, held_as_a_whole(bench, step)


def release(bench: Bench, step: Step) -> None:
    """Record that a step begins."""
    bench.session.emit(
        StepReleased(step=step.id, plan_version=bench.plan.version, gaps=bench.gaps(step))
    )
    reached("step.released")
    bench.report({"type": "step_released", "step": step.id})


async def stopped(bench: Bench, step: Step, held: Held, element: int | None = None) -> Ended:
    """Return the end of a step that may not run (any more)."""
    if held.status in ("failed", "skipped"):
        ledger = bench.session.journal.ledger
        rows = await asyncio.to_thread(ledger.list, run_id=bench.session.run.run_id)
        mine = (row for row in rows if row.step == step.id and row.state in UNSETTLED)
        if any(_is_of(bench, row.attempt_id, step.id, element) for row in mine):
            says = f"it was begun, nobody knows its outcome, and now {held.says}"
            return routed(step, "unknown", "unknown", "outcome_unknown", says)
    return held_back(step, held)


def _is_of(bench: Bench, attempt_id: str, step: str, element: int | None) -> bool:
    tried = bench.session.view.attempts.get(attempt_id)
    return element is None or tried is None or tried.unit == unit_of(step, element)


def _no_rights(exc: Denied) -> Held:
    return Held("failed", "denied", "rights_unknown", str(exc))


def _was_begun(bench: Bench, tool: Tool, args: Mapping[str, Json]) -> bool:
    """True if the ledger knows the effect of a call: it is left to find out what came of it."""
    try:
        key = effect_key(tool.spec, args, bench.plan.goal_id).key
    except ConfigError:
        return False
    row = bench.session.journal.ledger.get(key)
    return row is not None and row.state != "failed"
