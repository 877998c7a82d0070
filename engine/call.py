"""One call of one tool: deadline, cancellation, an honest outcome. Nothing else calls a body."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from plangate.engine.classify import Failure, classify, redact
from plangate.plan.shape.shape import compile_shape
from plangate.plan.value.frozen import canonical, load_json
from plangate.tools.context import ToolContext

if TYPE_CHECKING:
    from plangate.engine.bench import Bench
    from plangate.plan.catalog import ToolSpec
    from plangate.plan.value.frozen import Json
    from plangate.tools.tool import Tool

MAX_OUTPUT_BYTES = 1_000_000
"""Above this a result is refused: a tool should return a reference to what is that large."""


@dataclass(frozen=True, slots=True)
class Returned:
    """What a tool returned, already checked against its output schema."""

    output: Mapping[str, Json]


async def context_for(
    bench: Bench, step: str, attempt_id: str, spec: ToolSpec, effect_key: str | None = None
) -> ToolContext:
    """Build what a body is given beside its arguments; of all rights, those of its contract."""
    return ToolContext(
        run_id=bench.session.run.run_id,
        step=step,
        attempt_id=attempt_id,
        effect_key=effect_key,
        deadline_s=spec.timeout_s,
        principal=bench.rights.principal,
        scopes=tuple(scope for scope in spec.scopes if scope in bench.rights.scopes),
        world=await bench.world.get(),
        progress=lambda text: bench.report({"type": "progress", "step": step, "text": text}),
    )


async def call(tool: Tool, args: Mapping[str, Json], context: ToolContext) -> Returned | Failure:
    """Call a tool's body once.

    Returns:
        What it returned, or a `Failure`: this is one of the two borders where foreign code ends.
        A call that runs past `context.deadline_s` is unknown if it acts, transient if it reads.

    Raises:
        asyncio.CancelledError: The run was stopped; the caller records the attempt as cancelled.
    """
    try:
        async with asyncio.timeout(context.deadline_s):
            raw = await tool.call(args, context)
    except Exception as exc:  # noqa: BLE001 - foreign code ends here; classify() names each kind
        return classify(tool.spec, exc)
    return judge_output(tool, raw)


def judge_output(tool: Tool, raw: object) -> Returned | Failure:
    """Check a result against the contract: its shape (L0), its size, and that it is JSON."""
    name = tool.spec.name
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
    for misfit in compile_shape(tool.spec.output).accepts(raw):
        where = misfit.path or "result"
        return Failure("unexpected_state", "output_schema", f"{name}: {where} {misfit.says}")
    return Returned(raw)
