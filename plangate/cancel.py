"""Ends a run on a person's word, whoever owns it; what was done stays done and is named.

The word is a row in the journal, and the first one counts. An owner that is at work folds it in: it
begins nothing more, breaks reads off, waits for what acts and ends the run. Where nobody is at
work, whoever cancels does the same.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from plangate.graph.bridge import run_blocking
from plangate.journal.decisions import Decision
from plangate.journal.runs import is_at_work
from plangate.journal.stop import cancel_id
from plangate.plan.errors import ConfigError, RunBusy

if TYPE_CHECKING:
    from plangate.journal.runs import Run
    from plangate.journal.view import RunView
    from plangate.runtime import Runtime

_EVERY_S = 0.1


def cancel(
    runtime: Runtime, run_id: str, *, by: str, reason: str = "", wait_s: float = 60.0
) -> RunView:
    """Do as `acancel`, from sync code."""
    return run_blocking(acancel(runtime, run_id, by=by, reason=reason, wait_s=wait_s))


async def acancel(
    runtime: Runtime, run_id: str, *, by: str, reason: str = "", wait_s: float = 60.0
) -> RunView:
    """End a run as cancelled; one that was cancelled before is only looked at.

    Args:
        runtime: The agent of the run.
        run_id: Which run.
        by: Who cancels it.
        reason: In words, for the record.
        wait_s: How long to wait for an owner that is at work, in seconds.

    Returns:
        The run, ended.

    Raises:
        ConfigError: No such run, nobody cancels it, or it has ended otherwise.
        RunBusy: It is recorded, but the owner has not ended the run in that time.
    """
    if not by.strip():
        raise ConfigError("nobody is named who cancels the run", hint="Say who, with by=.")
    if not wait_s >= 0:  # as written, so that it is also said of NaN
        raise ConfigError(f"one cannot wait for {wait_s} s", hint="Give seconds, 0 or more.")
    journal = runtime.journal
    _refuse_ended(await asyncio.to_thread(journal.runs.get, run_id))
    said = Decision(
        question_id=cancel_id(run_id),
        run_id=run_id,
        decision="cancel",
        by=by,
        at=journal.clock(),
        comment=reason,
    )
    await asyncio.to_thread(journal.decisions.record, said)
    until = time.monotonic() + wait_s
    while (run := await asyncio.to_thread(journal.runs.get, run_id)).status != "ended":
        if time.monotonic() > until:
            raise _still_at_work(run)
        if await asyncio.to_thread(is_at_work, run, journal.clock()):
            await asyncio.sleep(_EVERY_S)
        else:
            await _end(runtime, run)
    _refuse_ended(run)
    return await asyncio.to_thread(runtime.view, run_id)


async def _end(runtime: Runtime, run: Run) -> None:
    try:
        given = await asyncio.to_thread(runtime.where, run)
        async for _ in runtime.astream(given, run.thread_id, run.principal):
            pass
    except RunBusy:  # somebody came first, and finds the same row
        pass
    if (await asyncio.to_thread(runtime.journal.runs.get, run.run_id)).status != "ended":
        await asyncio.sleep(_EVERY_S)  # as where this process drains: it ends nothing any more


def _refuse_ended(run: Run) -> None:
    if run.status == "ended" and run.ending != "cancelled":
        raise ConfigError(
            f"run {run.run_id} has ended already ({run.ending})",
            hint=f"There is nothing to cancel; see plangate run show {run.run_id}.",
        )


def _still_at_work(run: Run) -> RunBusy:
    who = f"{run.owner} is still at work on it" if run.owner else "nobody has ended it yet"
    return RunBusy(
        f"run {run.run_id} is told to stop, and {who}",
        hint="the cancellation is recorded; whoever is at work on the run next ends it",
    )
