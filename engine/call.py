"""One call of one tool: deadline, cancellation, an honest outcome. Nothing else calls a body."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from plangate.engine.classify import Failure, classify, redact
from plangate.engine.overrun import MOST_LEFT, Watch, left_behind
from plangate.plan.secrets import masked_json
from plangate.plan.shape.shape import compile_shape
from plangate.plan.value.frozen import canonical, load_json
from plangate.tools.context import ToolContext
from plangate.tools.credentials import Wanted, grant

if TYPE_CHECKING:
    from plangate.engine.bench import Bench
    from plangate.engine.overrun import Tell
    from plangate.plan.catalog import ToolSpec
    from plangate.plan.value.frozen import Json
    from plangate.tools.tool import Tool

MAX_OUTPUT_BYTES = 1_000_000
"""Above this a result is refused: a tool should return a reference to what is that large."""


@dataclass(frozen=True, slots=True)
class Returned:
    """What a call returned, already checked against its output schema."""

    output: Mapping[str, Json]


async def context_for(bench: Bench, step: str, attempt_id: str, spec: ToolSpec) -> ToolContext:
    """Build what a body is given beside its arguments; of all rights, those of its contract."""
    rights = bench.rights
    wanted = Wanted(
        tool=spec.name,
        principal=rights.principal,
        tenant=rights.tenant,
        scopes=tuple(scope for scope in spec.scopes if scope in rights.scopes),
        run_id=bench.session.run.run_id,
        step=step,
        attempt_id=attempt_id,
    )
    return ToolContext(
        run_id=wanted.run_id,
        step=step,
        attempt_id=attempt_id,
        deadline_s=spec.timeout_s,
        principal=wanted.principal,
        tenant=wanted.tenant,
        scopes=wanted.scopes,
        world=await bench.world.get(),
        progress=lambda text: bench.report(
            {"type": "progress", "step": step, "text": redact(str(text))}
        ),
        grants=lambda refs: grant(bench.credentials, replace(wanted, secrets=refs)),
    )


async def call(
    tool: Tool, args: Mapping[str, Json], context: ToolContext, tell: Tell
) -> Returned | Failure:
    """Call a tool's body once.

    Args:
        tool: The tool.
        args: Plain JSON that fits it.
        context: The attempt.
        tell: Hears of a body that goes on although nobody waits for it, and of its late end.

    Returns:
        What it returned, or a `Failure`: this is one of the two borders where foreign code ends.
        A call that runs past `context.deadline_s` is unknown if it acts, transient if it reads.

    Raises:
        asyncio.CancelledError: The run was stopped; the caller records the attempt as cancelled.
    """
    if len(left_behind()) >= MOST_LEFT:
        says = f"{MOST_LEFT} calls hang in this process, so none is begun; restart it"
        return Failure("transient", "too_many_hang", says)
    watch = Watch(tool, context, tell)
    try:
        async with asyncio.timeout(context.deadline_s):
            raw = await watch.watched().call(args, context)
    except Exception as exc:  # noqa: BLE001 - foreign code ends here; classify() names each kind
        watch.abandon()
        return classify(tool.spec, exc)
    except BaseException:
        watch.abandon()
        raise
    return judge_output(tool.spec, raw)


def judge_output(spec: ToolSpec, raw: object) -> Returned | Failure:
    """Check a result against the contract: its shape (L0), its size, and that it is JSON.

    What looks like a secret is masked here, before anything is stored, checked or handed on.
    """
    name = spec.name
    if not isinstance(raw, Mapping):
        return Failure("unexpected_state", "output_schema", f"{name} returned no JSON object")
    try:
        body = canonical(raw)
        canonical(load_json(body))  # 1e20 is written as a whole number, which cannot be read back
    except Exception as exc:  # noqa: BLE001 - foreign data: too deep, no Unicode, a mapping that raises
        says = redact(f"{name} returned no JSON: {exc}")
        return Failure("unexpected_state", "output_not_json", says)
    size = len(body)
    if size > MAX_OUTPUT_BYTES:
        return Failure("unexpected_state", "output_too_large", f"{name} returned {size:,} bytes")
    for misfit in compile_shape(spec.output).accepts(raw):
        where = misfit.path or "result"
        says = redact(f"{name}: {where} {misfit.says}")
        return Failure("unexpected_state", "output_schema", says)
    return Returned(cast("Mapping[str, Json]", masked_json(load_json(body))))
