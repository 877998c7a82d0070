"""What a run's calls took, folded from its record when it ends: what later estimates learn from."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from plangate.budget.calls import money
from plangate.budget.history import repair_subject, role_subject, step_subject, tool_subject
from plangate.journal.events import ModelCalled
from plangate.journal.samples import MOST_SAMPLES, MOST_SUBJECTS, Sample, Used
from plangate.journal.session import Session
from plangate.journal.view import RunView
from plangate.nodes.cost import is_tool
from plangate.nodes.kit import Kit
from plangate.nodes.madeof import readable_plan
from plangate.plan.errors import Damaged
from plangate.plan.value.plan import Plan
from plangate.plan.value.step import Step


def used_by(session: Session, kit: Kit) -> tuple[Used, ...]:
    """Return what the calls of a run took, by subject; what was taken from the ledger is no call.

    Only calls that went well are samples. One that failed is part of what repairs took, with all
    that the first plan did not have.
    """
    view = session.view
    first = view.promised
    if first is None or not first.valid:
        return ()
    try:
        plan = readable_plan(session, kit, first.version)
    except Damaged:
        plan = None
    if plan is None:
        return ()  # nothing is learnt from a record that cannot be read
    found: dict[str, list[Sample]] = {}
    for subject, sample in chain(_tools(view), _models(session, kit)):
        found.setdefault(subject, []).append(sample)
    most_used = sorted(found.items(), key=lambda each: -len(each[1]))[:MOST_SUBJECTS]
    repaired = Used(
        subject=repair_subject(plan.task_type, first.catalog_hash),
        calls=1,
        samples=(_beyond(view, plan),),
    )
    return (
        repaired,
        *(
            Used(subject=subject, calls=len(every), samples=tuple(every[:MOST_SAMPLES]))
            for subject, every in most_used
        ),
    )


def _tools(view: RunView) -> Iterator[tuple[str, Sample]]:
    for each in view.attempts.values():
        if each.ended is None or each.ended.outcome != "success" or each.ended.reused == "ledger":
            continue
        if is_tool(each):
            name, _, version = each.started.capability.partition("@")
            sample = Sample(seconds=each.ended.latency_s, usd=each.ended.usd)
            yield tool_subject(name, version), sample


def _models(session: Session, kit: Kit) -> Iterator[tuple[str, Sample]]:
    steps = _steps(session, kit)
    for called in session.view.asked:
        step = steps.get(called.step or "")
        if called.step is None:
            yield role_subject(called.role, called.model, called.prompt_sha256), _sample(called)
        elif step is not None and called.ok:
            yield step_subject(step, called.model, called.prompt_sha256), _sample(called)


def _steps(session: Session, kit: Kit) -> dict[str, Step]:
    """Model steps of the newest version; of one that asks something else now, nothing is kept."""
    if not any(called.step for called in session.view.asked):
        return {}
    plan = readable_plan(session, kit)
    return {step.id: step for step in (plan.steps if plan else ()) if step.kind == "model"}


def _sample(called: ModelCalled) -> Sample:
    return Sample(
        seconds=round(called.latency_s, 6),
        tokens_in=called.input_tokens,
        tokens_out=called.output_tokens,
        usd=called.usd,
    )


def _beyond(view: RunView, plan: Plan) -> Sample:
    """Add up the calls that are not the first of a step of the first plan."""
    extra = [*_attempts_beyond(view, plan), *_asked_beyond(view, plan)]
    costs = [each.usd for each in extra]
    return Sample(
        seconds=round(sum(each.seconds for each in extra), 6),
        tokens_in=sum(each.tokens_in for each in extra),
        tokens_out=sum(each.tokens_out for each in extra),
        usd=money(costs),
        calls=len(extra),
    )


def _attempts_beyond(view: RunView, plan: Plan) -> Iterator[Sample]:
    for each in view.attempts.values():
        is_first = each.started.attempt_id.endswith("-A1") and each.started.step in plan.by_id
        if is_tool(each) and not is_first and each.ended is not None:
            yield Sample(seconds=each.ended.latency_s, usd=each.ended.usd)


def _asked_beyond(view: RunView, plan: Plan) -> Iterator[Sample]:
    asked = set[str]()
    for called in view.asked:
        if called.step in plan.by_id and called.step not in asked:
            asked.add(called.step or "")
        elif called.step is not None:
            yield _sample(called)
