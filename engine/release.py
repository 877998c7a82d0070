"""The last look before a step runs: real values, today's rights, and an approval that covers it.

What was true when the plan was checked may have changed while it waited; nothing is taken from then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from plangate.plan.shape.shape import compile_shape
from plangate.plan.value.frozen import digest
from plangate.plan.value.refs import resolve_all

if TYPE_CHECKING:
    from plangate.engine.bench import Bench
    from plangate.plan.catalog import ToolSpec
    from plangate.plan.outcome import Outcome
    from plangate.plan.value.frozen import Json
    from plangate.plan.value.step import Step


@dataclass(frozen=True, slots=True)
class Ready:
    """A step with its arguments as they will run."""

    args: Mapping[str, Json]
    args_sha256: str
    approval: str | None = None
    """Question id of the approval that covers it; None where none is needed."""


@dataclass(frozen=True, slots=True)
class Held:
    """A step that does not run now, and why."""

    status: Literal["skipped", "failed", "unknown", "waiting"]
    outcome: Outcome
    code: str
    says: str


def prepare(bench: Bench, step: Step) -> Ready | Held:
    """Decide whether a tool step may run, with the values of this moment."""
    if (held := _when(bench, step)) is not None:
        return held
    spec = bench.catalog.tools.get(step.tool or "")
    if spec is None:
        why = bench.catalog.forbidden.get(step.tool or "", "it is not in the registry")
        return Held("failed", "denied", "tool_gone", f"tool {step.tool!r} may not be used: {why}")
    if (refusal := bench.policy.permits(spec, bench.rights)) is not None:
        return Held("failed", "denied", "policy_denied", refusal)
    args = _arguments(bench, step, spec)
    if isinstance(args, Held):
        return args
    for rule in step.preconditions:
        said = bench.ask(rule, step=step.id)
        if said is not True:
            status: Literal["failed", "unknown"] = "failed" if said is False else "unknown"
            word = "does not hold" if said is False else "cannot be evaluated"
            return Held(status, "unexpected_state", "precondition", f"{rule!r} {word}")
    return _covered(bench, step, spec, args)


def known_args(bench: Bench, step: Step) -> Mapping[str, Json]:
    """Return the arguments as far as their references resolve, for the claims of a step."""
    known: dict[str, Json] = {}
    values = bench.values(step)
    for name, value in step.args.items():
        try:
            known[name] = resolve_all(value, values)
        except KeyError:
            continue  # the step itself will say so when it is prepared
    return known


def _when(bench: Bench, step: Step) -> Held | None:
    if step.when is None:
        return None
    said = bench.ask(step.when, step=step.id)
    if said is None:
        says = f"{step.when!r} cannot be evaluated"
        return Held("unknown", "unexpected_state", "when_unknown", says)
    return None if said else Held("skipped", "success", "when_false", f"{step.when!r} is false")


def _arguments(bench: Bench, step: Step, spec: ToolSpec) -> Mapping[str, Json] | Held:
    try:
        args = resolve_all(step.args, bench.values(step))
        sound = isinstance(args, Mapping)
    except KeyError as exc:
        says = f"a reference of {step.id} found no {exc}"
        return Held("failed", "unexpected_state", "missing_value", says)
    if not sound or not isinstance(args, Mapping):
        return Held("failed", "unexpected_state", "bad_arguments", f"{step.id}: no arguments")
    for misfit in compile_shape(spec.params).accepts(args):
        where = ".".join(misfit.path) or "arguments"
        return Held("failed", "unexpected_state", "bad_arguments", f"{where} {misfit.says}")
    return args


def _covered(bench: Bench, step: Step, spec: ToolSpec, args: Mapping[str, Json]) -> Ready | Held:
    """An acting step runs under an approval, or under a tier that asks for none."""
    ready = Ready(args, digest(args))
    if not spec.effect.acts:
        return ready
    view = bench.session.view
    content = bench.plan.content_hash
    if content in view.rejected:
        return Held("failed", "denied", "rejected", "a person rejected this plan")
    validated = view.validated.get(bench.plan.version)
    if validated is None or not validated.valid or validated.content_hash != content:
        return Held("failed", "denied", "not_validated", "this plan version was not validated")
    approval = view.approved.get(content)
    if approval is None:
        over = bench.policy.over_threshold(spec.name, args)
        if validated.tier == "auto" and step.approval == "inherit" and not over:
            return ready
        return Held("waiting", "denied", "approval_missing", over or "it needs an approval")
    if approval.expires_at is not None and approval.expires_at <= bench.now():
        return Held("waiting", "denied", "approval_expired", "the approval has expired")
    if approval.steps and step.id not in approval.steps:
        return Held("failed", "denied", "step_not_approved", f"{step.id} was not approved")
    return Ready(args, ready.args_sha256, approval.question_id)
