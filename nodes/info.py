"""More evidence before deciding: reads that a person asks for, inside what the run may do anyway.

Nothing here is consent, nothing acts, and what was read changes no step: it stands beside the
question, which is then asked again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from pydantic import JsonValue

from plangate.engine.call import Returned, call, context_for
from plangate.engine.charge import Charge, hold
from plangate.engine.classify import Failure
from plangate.journal.questions import (
    InfoRead,
)
from plangate.journal.session import Session
from plangate.nodes.case import Case
from plangate.nodes.kit import Kit
from plangate.plan.catalog import ToolSpec
from plangate.plan.effects import evidence_of
from plangate.plan.errors import BudgetExceeded
from plangate.plan.shape.shape import compile_shape
from plangate.plan.value.frozen import Json, thaw
from plangate.plan.value.plan import Plan
from plangate.tools.tool import Tool

MOST: Final = 5
"""Reads of one request."""


class Read(NamedTuple):
    """One read-only call."""

    tool: str
    args: Mapping[str, JsonValue]

    def said(self) -> dict[str, JsonValue]:
        """Return it as JSON."""
        return {"tool": self.tool, "args": dict(self.args)}


def reads_of(case: Case, said: Json) -> tuple[Read, ...] | str:
    """Read a request for more; a text says why it is refused."""
    wanted = said if isinstance(said, Sequence) and not isinstance(said, str) else [said]
    if not 0 < len(wanted) <= MOST:
        return f"a request names 1 to {MOST} reads"
    reads: list[Read] = []
    for each in wanted:
        got = _read(case, each)
        if isinstance(got, str):
            return got
        reads.append(got)
    return tuple(reads)


def _read(case: Case, said: Json) -> Read | str:
    if not isinstance(said, Mapping) or set(said) - {"tool", "args"} or "tool" not in said:
        return 'a read is named as {"tool": "query_order", "args": {...}}'
    name, args = said["tool"], said.get("args", {})
    spec = case.catalog.tools.get(name) if isinstance(name, str) else None
    if spec is None or not isinstance(args, Mapping):
        reads = [n for n, each in case.catalog.tools.items() if not each.effect.acts]
        return f"{str(name)[:80]!r} is no tool of this run; reads: {', '.join(reads)}"
    why = _not_to_be_read(case, spec, args)
    return why or Read(spec.name, {key: thaw(value) for key, value in args.items()})


def _not_to_be_read(case: Case, spec: ToolSpec, args: Mapping[str, Json]) -> str:
    if spec.effect.acts:
        return f"{spec.name!r} acts ({spec.effect.value}); only what reads can be asked for"
    if refusal := case.kit.policy.permits(spec, case.kit.rights(case)):
        return refusal
    for misfit in compile_shape(spec.params).accepts(args):
        return f"argument {misfit.path or 'list'} of {spec.name!r} {misfit.says}"
    return ""


async def read_more(
    session: Session, kit: Kit, plan: Plan, question_id: str, said: Json
) -> list[InfoRead]:
    """Make the reads of a recorded request; one that fails is told, not repeated."""
    wanted = said if isinstance(said, Sequence) and not isinstance(said, str) else ()
    return [
        await _made(session, kit, plan, question_id, each)
        for each in wanted
        if isinstance(each, Mapping)
    ]


async def _made(
    session: Session, kit: Kit, plan: Plan, question_id: str, said: Mapping[str, Json]
) -> InfoRead:
    name, args = str(said["tool"]), said["args"]
    made = InfoRead(question_id=question_id, tool=name, args=session.put(thaw(args)))
    tool, bench = kit.registry.get(name), kit.bench(session, plan)
    if tool is None or name not in bench.catalog.tools or tool.spec.effect.acts:
        return made.model_copy(update={"says": "it is not available any more"})
    refusal = bench.policy.permits(tool.spec, bench.rights)
    if refusal is not None or not isinstance(args, Mapping):
        return made.model_copy(update={"says": refusal or "it has no arguments"})
    try:
        charge = await hold(bench, tool.spec, f"{question_id}-{name}", None)
    except BudgetExceeded as exc:
        return made.model_copy(update={"says": str(exc)})
    got = await _called(charge, tool, args)
    made = made.model_copy(update={"called": charge.began, "usd": charge.usd})
    if not isinstance(got, Returned):
        return made.model_copy(update={"says": f"{got.code}: {got.says}"})
    observed = evidence_of(tool.spec, args, got.output)
    return made.model_copy(update={"output": session.put(got.output), "observed": observed})


async def _called(charge: Charge, tool: Tool, args: Mapping[str, Json]) -> Returned | Failure:
    bench, by = charge.bench, charge.reservation.act.name
    try:
        context = await context_for(bench, "", by, tool.spec)
        charge.begin()
        return await call(tool, args, context, bench.overran)
    finally:
        charge.close()
