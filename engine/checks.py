"""Checks, run: a claim, the rule, and the evidence; never the producer's own account of it.

L0 (shape) was decided by the call. L1 asks a rule over the result. L2 reads the world again with a
read-only tool and asks a rule over both. L3 asks a model, L4 a person; both may have a rule and a
tool as well, which go first: what those refute, nobody talks round. What raises, times out or
cannot be evaluated is unknown: not pass, not fail.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

from plangate.engine.call import Returned
from plangate.engine.charge import Charge, hold, look
from plangate.engine.classify import Failure
from plangate.engine.judging import Bound, judge
from plangate.models.judging import Matter
from plangate.plan.effects import evidence_of
from plangate.plan.shape.shape import compile_shape
from plangate.plan.shape.tokens import steps_in
from plangate.plan.value.frozen import digest
from plangate.plan.value.refs import resolve_all
from plangate.plan.verdict import EvidenceRef, Verdict

if TYPE_CHECKING:
    from plangate.engine.bench import Bench
    from plangate.plan.outcome import Says
    from plangate.plan.value.frozen import Json
    from plangate.plan.value.step import Check, Step
    from plangate.tools.tool import Tool

VERIFIER = "cel@1"
Looks: TypeAlias = Mapping[str, Charge]
"""By check."""

_TRIES = 2
_JUDGED = ("L3", "L4")


class Look(NamedTuple):
    """What a check of a step looks at."""

    unit: str = ""
    """Whose output it is: the step, or an element of its list as `S3.2`; empty: the goal's."""

    given: Mapping[str, Json] = MappingProxyType({})
    """The arguments that it ran with."""

    charge: Charge | None = None
    """Leave for its look at the world, from `hold_looks`; None: it is asked for at the look."""


NO_LOOK = Look()


async def run_check(
    bench: Bench,
    check: Check,
    *,
    step: str | None,
    result: Json = None,
    evidence: tuple[EvidenceRef, ...] = (),
    at: Look = NO_LOOK,
) -> Verdict:
    """Decide one check.

    Args:
        bench: The plan and its journal.
        check: From a step's `success` or from the plan's `success_criteria`.
        step: The step it belongs to; None for a criterion of the goal.
        result: The step's output.
        evidence: What the step's output showed.
        at: Whose output it is, and with which leave the world is looked at.

    Raises:
        BudgetExceeded: A look would pass a limit; it is not made.
    """
    more: dict[str, Json] = {} if step is None else {"result": result}
    if check.tool is not None:
        seen = await _observe(bench, check, step, result, at)
        if isinstance(seen, str):
            return _verdict(check, "unknown", evidence, seen)
        more["observed"] = seen.output
        evidence += seen.evidence
    elif check.level == "L2":
        return _verdict(check, "unknown", (), "an L2 check needs a tool that looks at the world")
    if (
        check.conflict is not None
        and bench.ask(check.conflict, step=step, tool=check.tool, seen=more) is not False
    ):
        return _verdict(check, "unknown", evidence, "the evidence contradicts itself")
    if check.level not in _JUDGED:
        return _ruled(bench, check, step, more, evidence)
    matter = matter_of(bench, check, more, evidence, at)
    first = None if check.rule is None else _ruled(bench, check, step, more, evidence)
    return (
        first if first and first.says != "pass" else await _judged(bench, check, step, matter, at)
    )


async def _judged(
    bench: Bench, check: Check, step: str | None, matter: Matter, at: Look
) -> Verdict:
    """Have somebody decide what no rule can: a model, or a person, who is asked at the gate."""
    if check.level == "L4":
        return _verdict(check, "unknown", matter.references, "a person has to decide")
    by = f"{at.unit or step or 'goal'}-{check.id}"
    return await judge(bench, Bound(check, step, by), matter)


async def hold_looks(bench: Bench, step: Step, unit: str) -> Looks:
    """Hold back what the looks of a step's checks cost, by check; release them with `close_all`.

    Raises:
        BudgetExceeded: One would pass a limit; nothing is held back.
    """
    looks: dict[str, Charge] = {}
    try:
        for check in step.success:
            spec = bench.catalog.tools.get(check.tool or "")
            if spec is not None:
                name = f"{unit}-{check.id}-1"
                looks[check.id] = await hold(bench, spec, name, step.id)
    except BaseException:
        close_all(looks)
        raise
    return looks


def close_all(looks: Looks) -> None:
    """Give back what was held for looks that were not made."""
    for charge in looks.values():
        charge.close()


def matter_of(
    bench: Bench,
    check: Check,
    seen: Mapping[str, Json],
    evidence: tuple[EvidenceRef, ...],
    at: Look = NO_LOOK,
) -> Matter:
    """Gather what is shown of a claim to whoever judges it.

    Of a step: what it was given, what it gave, what the check's tool saw. Of the goal: the inputs,
    and what the steps gave that its rule names.
    """
    shown: dict[str, Json] = dict(seen)
    if "result" in seen:
        shown["given"] = dict(at.given)
    else:
        read = steps_in(check.rule or "")
        known = {name: bench.outputs[name] for name in sorted(read) if name in bench.outputs}
        shown |= {"inputs": bench.plan.inputs, **({"steps": known} if known else {})}
    return Matter(claim=check.claim, rule=check.rule or "", evidence=shown, references=evidence)


def _ruled(
    bench: Bench,
    check: Check,
    step: str | None,
    more: Mapping[str, Json],
    evidence: tuple[EvidenceRef, ...],
) -> Verdict:
    if check.rule is None:
        if check.level == "L0":
            return _verdict(check, "pass", evidence, "the result has the declared shape")
        return _verdict(check, "unknown", evidence, "there is no rule to decide by")
    said = bench.ask(check.rule, step=step, tool=check.tool, seen=more)
    if said is None:
        return _verdict(check, "unknown", evidence, "the rule cannot be evaluated")
    return _verdict(check, "pass" if said else "fail", evidence, "" if said else "not true")


class _Seen:
    """What a check's tool saw."""

    def __init__(self, tool: Tool, args: Mapping[str, Json], output: Mapping[str, Json]) -> None:
        self.output = output
        sha256 = digest(output)
        self.evidence = tuple(
            EvidenceRef(ref=ref, sha256=sha256) for ref in evidence_of(tool.spec, args, output)
        )


async def _observe(
    bench: Bench, check: Check, step: str | None, result: Json, at: Look
) -> _Seen | str:
    """Read the world with the check's tool; a line of text says why it could not be read."""
    tool = bench.tools.get(check.tool or "")
    if tool is None or tool.spec.name not in bench.catalog.tools:
        return f"tool {check.tool!r} is not available"
    if tool.spec.effect.acts:
        return f"tool {check.tool!r} is not read-only"
    args = _arguments(bench, check, tool, step, result)
    if isinstance(args, str):
        return args
    got: Returned | Failure | None = None
    for number in range(1, _TRIES + 1):
        by = f"{at.unit or step or 'goal'}-{check.id}-{number}"
        held = at.charge if number == 1 else None
        charge = held or await hold(bench, tool.spec, by, step)
        got = await look(tool, args, charge, by=by)
        if isinstance(got, Returned):
            return _Seen(tool, args, got.output)
        if got.outcome != "transient":
            break
    return f"{tool.spec.name}: {got.code}" if isinstance(got, Failure) else "it was not read"


def _arguments(
    bench: Bench, check: Check, tool: Tool, step: str | None, result: Json
) -> Mapping[str, Json] | str:
    own: dict[str, Json] = {"inputs": bench.plan.inputs}
    if step is not None:
        own[step] = result
    values = cast("Mapping[str, Json]", ChainMap(own, cast("dict[str, Json]", bench.outputs)))
    try:
        args = resolve_all(check.args, values)
    except KeyError as exc:
        return f"argument {exc} is missing"
    for misfit in compile_shape(tool.spec.params).accepts(args):
        return f"argument {misfit.path} {misfit.says}"
    return cast("Mapping[str, Json]", args)


def _verdict(check: Check, says: Says, evidence: tuple[EvidenceRef, ...], why: str) -> Verdict:
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
