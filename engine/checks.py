"""Checks, run: a claim, the rule, and the evidence; never the producer's own account of it.

L0 (shape) was decided by the call. L1 asks a rule over the result. L2 reads the world again with a
read-only tool and asks a rule over both. L3 and L4 have no verifier in the executor: unknown. What
raises, times out or cannot be evaluated is unknown: not pass, not fail.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from plangate.engine.call import Returned, call, context_for
from plangate.plan.effects import evidence_of
from plangate.plan.shape.shape import compile_shape
from plangate.plan.value.frozen import digest, thaw
from plangate.plan.value.refs import resolve_all
from plangate.plan.verdict import EvidenceRef, Verdict

if TYPE_CHECKING:
    from plangate.engine.bench import Bench
    from plangate.plan.outcome import Says
    from plangate.plan.value.frozen import Json
    from plangate.plan.value.step import Check

VERIFIER = "cel@1"
_TRIES = 2


async def run_check(
    bench: Bench,
    check: Check,
    *,
    step: str | None,
    result: Json = None,
    evidence: tuple[str, ...] = (),
) -> Verdict:
    """Decide one check.

    Args:
        bench: The plan and its journal.
        check: From a step's `success` or from the plan's `success_criteria`.
        step: The step it belongs to; None for a criterion of the goal.
        result: The step's output.
        evidence: References that the step's output showed.
    """
    if check.level in ("L3", "L4"):
        return _verdict(check, "unknown", why=f"no {check.level} verifier is set up")
    more: dict[str, Json] = {} if step is None else {"result": result}
    refs = tuple(EvidenceRef(ref=ref, sha256=digest(result)) for ref in evidence)
    if check.level == "L2":
        if check.tool is None or check.rule is None:
            return _verdict(check, "unknown", why="an L2 check needs a tool and a rule")
        seen = await _observe(bench, check, step, result)
        if isinstance(seen, str):
            return _verdict(check, "unknown", why=seen)
        more["observed"], refs = seen[0], refs + seen[1]
    if check.rule is None:
        return _verdict(check, "pass", evidence=refs, why="the result has the declared shape")
    said = bench.ask(check.rule, step=step, observed=check.tool, **more)
    if said is None:
        return _verdict(check, "unknown", evidence=refs, why="the rule cannot be evaluated")
    if said:
        return _verdict(check, "pass", evidence=refs)
    return _verdict(check, "fail", evidence=refs, why=f"not true: {check.rule}")


async def _observe(
    bench: Bench, check: Check, step: str | None, result: Json
) -> tuple[Mapping[str, Json], tuple[EvidenceRef, ...]] | str:
    """Read the world with the check's tool; a line of text says why it could not be read."""
    tool = bench.tools.get(check.tool or "")
    if tool is None or tool.spec.name not in bench.catalog.tools:
        return f"tool {check.tool!r} is not available"
    if tool.spec.effect.acts:
        return f"tool {check.tool!r} is not read-only"
    try:
        args = resolve_all(check.args, _Values(bench, step, result))
    except KeyError as exc:
        return f"argument {exc} is missing"
    if misfits := compile_shape(tool.spec.params).accepts(args):
        return f"argument {'.'.join(misfits[0].path)} {misfits[0].says}"
    if not isinstance(args, Mapping):
        return "the arguments are no object"
    why = ""
    for attempt in range(1, _TRIES + 1):
        attempt_id = f"{step or 'goal'}-check-{check.id}-{attempt}"
        context = await context_for(bench, step or "", attempt_id, tool.spec.timeout_s)
        got = await call(tool, args, context)
        if isinstance(got, Returned):
            return got.output, _shown(tool.spec.name, bench, args, got.output)
        why = f"{tool.spec.name}: {got.code}"
        if got.outcome != "transient":
            break
    return why


def _shown(
    name: str, bench: Bench, args: Mapping[str, Json], output: Mapping[str, Json]
) -> tuple[EvidenceRef, ...]:
    shown = evidence_of(bench.catalog.tools[name], args, output)
    digested = digest(thaw(output))
    return tuple(EvidenceRef(ref=ref, sha256=digested) for ref in shown)


def _verdict(
    check: Check, says: Says, *, evidence: tuple[EvidenceRef, ...] = (), why: str = ""
) -> Verdict:
    return Verdict(
        says=says,
        check_id=check.id,
        level=check.level,
        verifier=VERIFIER,
        claim=check.claim,
        evidence=evidence,
        failed_constraints=(check.rule or "",) if says == "fail" else (),
        why=why,
        repairable=says == "fail",
        recommended_route={"pass": "", "fail": "replan", "unknown": "ask"}[says],
    )


class _Values(Mapping[str, "Json"]):
    """What a check's arguments may read: inputs, finished steps, and the checked step itself."""

    def __init__(self, bench: Bench, step: str | None, result: Json) -> None:
        self._own: dict[str, Json] = {"inputs": bench.plan.inputs}
        if step is not None:
            self._own[step] = result
        self._outputs = bench.outputs

    def __getitem__(self, head: str) -> Json:
        return self._own[head] if head in self._own else self._outputs[head]

    def __iter__(self):  # type: ignore[no-untyped-def]  # noqa: ANN204 - Mapping asks for it
        return iter({**self._own, **dict.fromkeys(self._outputs)})

    def __len__(self) -> int:
        return len(self._own) + len(self._outputs)
