"""The last look before a step runs: real values, today's rights, an approval that covers it.

What was true when the plan was checked may have changed while it waited; nothing is taken from
then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

from plangate.engine.assumed import code_of, disproved
from plangate.engine.denials import refusal_of_denial
from plangate.engine.labels import refusal_of_envelope, refusal_of_flow
from plangate.plan.contract import RESERVED, contract_of
from plangate.plan.joins import is_strict
from plangate.plan.secrets import mask_in, secret_in
from plangate.plan.shape.shape import compile_shape
from plangate.plan.value.each import each_of
from plangate.plan.value.frozen import digest
from plangate.plan.value.refs import resolve_all

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plangate.engine.bench import Bench
    from plangate.journal.questions import (
        DecisionTaken,
    )
    from plangate.plan.catalog import ToolSpec
    from plangate.plan.outcome import Outcome
    from plangate.plan.policy import Tier
    from plangate.plan.value.frozen import Json
    from plangate.plan.value.step import Step


OVERTAKEN = "plan_overtaken"
"""Code of a step that belongs to a plan version which another one has replaced."""


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
    """Decide whether a step that calls something may run, with the values of this moment."""
    spec = contract_of(step, bench.catalog)
    held = _held_back(bench, step, spec)
    if held is not None or spec is None:
        return held or _gone(bench, step)
    args = _arguments(bench, step, spec)
    if isinstance(args, Held):
        return args
    held = _preconditions(bench, step) or _forbidden(bench, step, args)
    return held or _covered(bench, step, spec, args)


def held_as_a_whole(bench: Bench, step: Step) -> Held | None:
    """Hold a step over a list for what does not depend on an element."""
    spec = contract_of(step, bench.catalog)
    return _held_back(bench, step, spec) or _preconditions(bench, step)


def _held_back(bench: Bench, step: Step, spec: ToolSpec | None) -> Held | None:
    return (
        overtaken(bench, step)
        or _denied(bench, step)
        or _disproved(bench, step)
        or _when(bench, step)
        or _rights(bench, step, spec)
    )


def _disproved(bench: Bench, step: Step) -> Held | None:
    """Hold a step that rests on what proved false since the plan was made."""
    assumption = disproved(bench, step)
    if assumption is None:
        return None
    says = f"it rests on what is not so: {assumption.statement}"
    return Held("failed", "unexpected_state", code_of(assumption), says)


def overtaken(bench: Bench, step: Step) -> Held | None:
    """Hold a step of a plan version that is not the run's any more, whoever sends it here."""
    mine, now = bench.plan.version, bench.session.view.version
    if mine == now:
        return None
    says = f"{step.id} is of plan version {mine}, and the plan is at version {now}"
    return Held("failed", "cancelled", OVERTAKEN, says)


def refused_now(bench: Bench, step: Step) -> bool:
    """True if a step cannot be released any more, whatever its values are."""
    spec = contract_of(step, bench.catalog)
    calls = step.tool is not None or spec is not None
    return calls and _rights(bench, step, spec) is not None


def known_args(bench: Bench, step: Step) -> Mapping[str, Json]:
    """Return the arguments as far as their references resolve."""
    known: dict[str, Json] = {}
    values = bench.values(step)
    for name, value in step.args.items():
        try:
            known[name] = resolve_all(value, values)
        except KeyError:
            continue  # whoever needs it says so
    return known


def _when(bench: Bench, step: Step) -> Held | None:
    if step.when is None:
        return None
    said = bench.ask(step.when, step=step.id, before=True)
    if said is None:
        says = f"{step.when!r} cannot be evaluated"
        return Held("unknown", "unexpected_state", "when_unknown", says)
    return None if said else Held("skipped", "success", "when_false", f"{step.when!r} is false")


def _gone(bench: Bench, step: Step) -> Held:
    why = bench.catalog.forbidden.get(step.tool or "", "it is not in the registry")
    return Held("failed", "denied", "tool_gone", f"tool {step.tool!r} may not be used: {why}")


def _rights(bench: Bench, step: Step, spec: ToolSpec | None) -> Held | None:
    if spec is None:
        return _gone(bench, step)
    if step.kind in RESERVED and bench.step_model is None:
        says = f"no model is set to carry {step.kind} steps out"
        return Held("failed", "denied", "model_gone", says)
    if step.tool_version not in (None, spec.version):
        says = f"it was planned with {spec.name}@{step.tool_version}; today it is {spec.version}"
        return Held("failed", "denied", "version_drift", says)
    refusal = bench.policy.permits(spec, bench.rights)
    return None if refusal is None else Held("failed", "denied", "policy_denied", refusal)


def _arguments(bench: Bench, step: Step, spec: ToolSpec) -> Mapping[str, Json] | Held:
    args: Json
    try:
        if is_strict(step):
            args = resolve_all(step.args, bench.values(step))
        else:
            args = known_args(bench, step)
    except KeyError as exc:
        says = f"a reference of {step.id} found no {exc}"
        return Held("failed", "unexpected_state", "missing_value", says)
    if where := secret_in(args):
        says = f"argument {where} holds what looks like a secret; it takes secret://name instead"
        return Held("failed", "denied", "secret_in_arguments", says)
    if step.kind not in RESERVED and (where := mask_in(args)):  # models read around it
        says = f"argument {where} was masked as a secret; hand it over as secret://name instead"
        return Held("failed", "denied", "masked_argument", says)
    for misfit in compile_shape(spec.params).accepts(args):
        says = f"{misfit.path or 'arguments'} {misfit.says}"
        return Held("failed", "unexpected_state", "bad_arguments", says)
    return cast("Mapping[str, Json]", args)


def _forbidden(bench: Bench, step: Step, args: Mapping[str, Json]) -> Held | None:
    """Hold what real values must not do: flow where they may not, or repeat what was denied."""
    if says := refusal_of_flow(bench, step) or refusal_of_envelope(bench, step):
        return Held("failed", "denied", "forbidden_flow", says)
    if says := refusal_of_denial(bench, step, args):
        return Held("failed", "denied", "denied_before", says)
    return None


def _preconditions(bench: Bench, step: Step) -> Held | None:
    for rule in step.preconditions:
        said = bench.ask(rule, step=step.id, before=True)
        if said is None:
            says = f"{rule!r} cannot be evaluated"
            return Held("unknown", "unexpected_state", "precondition_unknown", says)
        if not said:
            says = f"{rule!r} does not hold"
            return Held("failed", "unexpected_state", "precondition", says)
    return None


def _covered(bench: Bench, step: Step, spec: ToolSpec, args: Mapping[str, Json]) -> Ready | Held:
    """A step that acts, or lets a model choose, runs under an approval or a tier without one."""
    if not spec.effect.acts and step.autonomy is None:
        return Ready(args, digest(args))
    view, content = bench.session.view, bench.plan.content_hash
    checked = view.validated.get(bench.plan.version)
    if content in view.rejected:
        return Held("failed", "denied", "rejected", "a person rejected this plan")
    if checked is None or not checked.valid or checked.content_hash != content:
        return Held("failed", "denied", "not_validated", "this plan version was not validated")
    approval = view.approved.get(content)
    if approval is None:
        return _unasked(bench, step, spec, args, checked.tier)
    ready = Ready(args, digest(args), approval.question_id)
    return _approved(bench, step, approval, ready.args_sha256) or ready


def _unasked(
    bench: Bench, step: Step, spec: ToolSpec, args: Mapping[str, Json], tier: Tier
) -> Ready | Held:
    over = bench.policy.over_threshold(spec.name, args)
    if tier == "auto" and step.approval == "inherit" and not over:
        return Ready(args, digest(args))
    return Held("waiting", "denied", "approval_missing", over or "it needs an approval")


def _approved(bench: Bench, step: Step, approval: DecisionTaken, args_sha256: str) -> Held | None:
    if approval.expires_at is not None and approval.expires_at <= bench.now():
        return Held("waiting", "denied", "approval_expired", "the approval has expired")
    if approval.steps and step.id not in approval.steps:
        return Held("failed", "denied", "step_not_approved", f"{step.id} was not approved")
    return _other_arguments(bench, step, approval, args_sha256)


def _other_arguments(
    bench: Bench, step: Step, approval: DecisionTaken, args_sha256: str
) -> Held | None:
    if not _runs_over_a_list(bench, step.id):
        if approval.args.get(step.id, args_sha256) == args_sha256:
            return None
        says = f"{step.id} would run with other arguments than those that were approved"
        return Held("waiting", "denied", "arguments_changed", says)
    elements = approved_elements(bench, step.id)
    if elements is None or args_sha256 in elements:
        return None
    says = f"an element of {step.id} is none of the {len(elements)} that were approved"
    return Held("failed", "denied", "element_not_approved", says)


def approved_elements(bench: Bench, step: str) -> frozenset[str] | None:
    """Return the digests of the elements that were approved for a step over a list.

    None: the list was not known when the approval was given, or the step runs over none.
    """
    approval = bench.session.view.approved.get(bench.plan.content_hash)
    if approval is None or step not in approval.args or not _runs_over_a_list(bench, step):
        return None
    return frozenset(
        sha256 for unit, sha256 in approval.args.items() if unit.startswith(f"{step}.")
    )


def approved_effects(bench: Bench, step: str) -> int:
    """Return how many effects one approval of a step is for."""
    if not _runs_over_a_list(bench, step):
        return 1
    elements = approved_elements(bench, step)
    return (bench.plan.by_id[step].max_items or 0) if elements is None else len(elements)


def _runs_over_a_list(bench: Bench, step: str) -> bool:
    return each_of(bench.plan.by_id.get(step)) is not None


def _denied(bench: Bench, step: Step) -> Held | None:
    """A person's no to a step holds whoever sends it here, and for whatever it does."""
    approval = bench.session.view.approved.get(bench.plan.content_hash)
    if approval is None or step.id not in approval.denied:
        return None
    return Held("failed", "denied", "step_not_approved", approval.denied[step.id])
