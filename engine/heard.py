"""What the outside said that is not the end of an attempt: recorded, as evidence and for a replay.

A value that is no JSON cannot be kept: that it came is recorded without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from plangate.engine.call import Returned, judge_output
from plangate.journal.grounds import OutsideAsked

if TYPE_CHECKING:
    from collections.abc import Mapping
    from decimal import Decimal

    from plangate.engine.bench import Bench
    from plangate.engine.classify import Failure
    from plangate.plan.value.frozen import Json
    from plangate.tools.answers import Found, Operation
    from plangate.tools.tool import Tool


class Looked(NamedTuple):
    """What a call of its own cost."""

    step: str | None
    usd: Decimal | None
    seconds: float


def record(
    bench: Bench,
    tool: Tool,
    by: str,
    got: Returned | Failure,
    *,
    args_sha256: str,
    looked: Looked | None = None,
) -> None:
    """Record what a call returned that is not, or not yet, the end of an attempt.

    Args:
        bench: The run.
        tool: What was called.
        by: Attempt or check that it was called for.
        got: What came of it.
        args_sha256: With which arguments.
        looked: What it cost, where it is a call beside the attempts; None: it is part of one.
    """
    said = OutsideAsked(by=by, how="call", tool=tool.spec.name, args_sha256=args_sha256)
    if looked is not None:
        cost = {"step": looked.step, "usd": looked.usd, "latency_s": looked.seconds}
        said = said.model_copy(update={"counted": True, **cost})
    if isinstance(got, Returned):
        more: dict[str, object] = {"output": bench.session.put(got.output)}
    else:
        more = {"outcome": got.outcome, "error_code": got.code, "error": got.says}
    bench.session.emit(said.model_copy(update=more))


def record_found(bench: Bench, tool: Tool, by: str, found: Found) -> None:
    """Record what the outside says about an effect that may have happened."""
    said: dict[str, Json] = {"happened": found.happened, "operation_id": found.operation_id}
    _record(bench, tool, by, "reconcile", said, found.output)


def record_operation(bench: Bench, tool: Tool, by: str, operation: Operation | None) -> None:
    """Record how an operation ended; one that goes on is asked for again, and says nothing yet."""
    if operation is None or operation.state == "pending":
        return
    said: dict[str, Json] = {
        "state": operation.state,
        "code": operation.code,
        "business_state": operation.business_state,
    }
    _record(bench, tool, by, "status", said, operation.output)


def _record(
    bench: Bench,
    tool: Tool,
    by: str,
    how: Literal["reconcile", "status"],
    said: Mapping[str, Json],
    output: object,
) -> None:
    got = judge_output(tool.spec, output)
    kept = got.output if isinstance(got, Returned) else None
    stored = bench.session.put({**said, "output": kept})
    code = "" if isinstance(got, Returned) or output is None else got.code
    bench.session.emit(
        OutsideAsked(by=by, how=how, tool=tool.spec.name, output=stored, error_code=code)
    )
