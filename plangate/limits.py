"""Raises limits of a run on a person's word: recorded with who and why, and never above the policy.

A step's and a day's limit are the policy's alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plangate.nodes.raised import raise_of
from plangate.plan.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plangate.journal.spending import LimitRaised
    from plangate.runtime import Runtime


def raise_limits(
    runtime: Runtime, run_id: str, limits: Mapping[str, str], *, by: str, reason: str = ""
) -> LimitRaised:
    """Raise limits of a run that has not ended; advance it afterwards.

    Args:
        runtime: The agent of the run.
        run_id: Which run; nobody is at work on it.
        limits: By name the new limit, as text: `{"max_usd": "2.00", "max_tool_calls": "40"}`.
        by: Who raises them.
        reason: In words, for the record.

    Raises:
        ConfigError: No such run or limit, it has ended, or the limit is no higher than before.
        Denied: The policy's cap is lower.
        RunBusy: Somebody is at work on the run.
    """
    run = runtime.journal.runs.get(run_id)
    if run.status == "ended":
        raise ConfigError(f"run {run_id} has ended ({run.ending})", hint="Start a new run.")
    kit = runtime.kit
    with runtime.hold(run_id) as session:
        said = kit.plan(session).budget if session.view.version else kit.budget
        event = raise_of(
            kit.limits(session, said), kit.policy.limits.run, limits, by=by, reason=reason
        )
        session.emit(event)
    return event
