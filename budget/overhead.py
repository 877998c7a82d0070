"""What a run takes beside its steps: criteria of the goal, a critic, a second draft, repairs.

How often the last two come is told by earlier runs of the same type. Until there are enough of
them, the middle is never and the high end is once.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import ROUND_UP, Decimal
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING

from plangate.budget.calls import Calls, added, asked, forecast_of, money, total
from plangate.budget.history import (
    MIN_SAMPLES,
    quantiles,
    repair_subject,
    role_subject,
    seen,
)
from plangate.budget.rereads import rereads
from plangate.budget.size import size_of
from plangate.plan.forecast import Range, RoleEstimate
from plangate.plan.mode import is_direct

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from plangate.budget.estimate import Known
    from plangate.budget.inputs import Counter
    from plangate.budget.roles import Role
    from plangate.journal.samples import Samples
    from plangate.plan.forecast import StepEstimate
    from plangate.plan.value.plan import Plan

REPAIR_SHARE = Fraction(1, 3)
"""Of the plan that is done a second time, at the high end, where no earlier run says: one step in
three is tried again, or another stands in for it."""

_MILLIONTH = Decimal("0.000001")
MAYBE = Range(p50=0, p95=1)
_READ = Range(p50=1, p95=2)
"""Times that a critic reads a plan: once a version, and there may be a second."""


def overhead(
    plan: Plan,
    known: Known,
    steps: Sequence[StepEstimate],
    at_goal: Sequence[Calls],
    counter: Counter,
    done: frozenset[str] = frozenset(),
) -> tuple[RoleEstimate, ...]:
    """Return each part of the overhead that this agent can have.

    Args:
        plan: The plan.
        known: What its estimate is made from.
        steps: Their estimates.
        at_goal: Calls of the criteria of the goal.
        counter: Counts tokens.
        done: Steps that have ended.
    """
    return tuple(_overhead(plan, known, steps, at_goal, counter, done))


def _overhead(
    plan: Plan,
    known: Known,
    steps: Sequence[StepEstimate],
    at_goal: Sequence[Calls],
    counter: Counter,
    done: frozenset[str],
) -> Iterator[RoleEstimate]:
    if at_goal:
        yield RoleEstimate(role="goal checks", **added(at_goal))
    again = rereads(plan, known.catalog, {each.step: each for each in steps}, done)
    if known.rereads and again is not None:
        yield RoleEstimate(role="reread", **added([again]))
    roles = known.roles
    if roles.critic is not None or roles.planner is not None:
        size = counter.count(plan.model_dump_json(exclude_defaults=True))
        written = Range(p50=size.tokens, p95=size.tokens)
        if roles.critic is not None and not is_direct(plan, known.catalog):
            answer = size_of(roles.critic.schema, roles.critic.limit).range
            yield _role("critic", roles.critic, known, (written, answer, _READ), counter)
        if roles.planner is not None:
            draft = written.times(Range(p50=1.0, p95=1.5))
            yield _role("planner", roles.planner, known, (written, draft, MAYBE), counter)
    if steps:
        yield _repair(plan, known, steps)


def _role(
    name: str,
    role: Role,
    known: Known,
    said: tuple[Range, Range, Range],
    counter: Counter,
) -> RoleEstimate:
    """Estimate the calls of a role, beside those that were made already.

    Args:
        name: Critic or planner.
        role: Its model and prompt.
        known: Prices and history.
        said: Tokens sent beside the prompt, tokens that come back, and how many calls.
        counter: Counts tokens.
    """
    sent, came, count = said
    prompt = counter.count(role.prompt)
    samples = known.past.get(role_subject(name, role.model, role.sha256))
    past = seen(samples)
    if past is not None and samples is not None:
        first = 1 if name == "planner" else 0  # the draft that is looked at was paid for
        count = quantiles([max(0, calls - first) for calls in samples.calls])
        call = asked(role.model, known.book, past.tokens_in, past.tokens_out, seconds=past.seconds)
    else:
        fixed = Range(p50=prompt.tokens, p95=prompt.tokens)
        call = asked(role.model, known.book, fixed + sent, came)
    source = past.source if past else "prompt and schema"
    call = replace(call, sources=(source,), token_sources=(prompt.source,))
    return RoleEstimate(role=name, when="planning", **added([call.times(count)]))


def _repair(plan: Plan, known: Known, steps: Sequence[StepEstimate]) -> RoleEstimate:
    subject = repair_subject(plan.task_type, known.catalog.content_hash)
    samples = known.past.get(subject)
    if samples is not None and len(samples.samples) >= MIN_SAMPLES:
        return RoleEstimate(role="repair", **added([_repaired(samples)]))
    calls = total(each.calls for each in steps)
    share = Range(p50=0, p95=float(REPAIR_SHARE))
    low = [forecast_of(each) for each in steps]
    middle = added(low)
    again = ceil(calls.p50 * REPAIR_SHARE)
    models = ceil(middle["model_calls"].p50 * REPAIR_SHARE)
    usd = money(each.usd_p50 for each in low)
    made = Calls(
        seconds=_of(middle["seconds"].p50, share),
        tokens_in=_of(middle["tokens_in"].p50, share),
        tokens_out=_of(middle["tokens_out"].p50, share),
        usd_p50=None if usd is None else usd * 0,
        usd_p95=None if usd is None else _part(usd),
        calls=Range(p50=0, p95=again),
        model_calls=Range(p50=0, p95=models),
        sources=("default (a third of the plan at p95)",),
    )
    return RoleEstimate(role="repair", **added([made]))


def _part(usd: Decimal) -> Decimal:
    """Take the share of an amount; a third has no end in decimals, so up to the next millionth."""
    part = usd * REPAIR_SHARE.numerator / REPAIR_SHARE.denominator
    up = part.quantize(_MILLIONTH, ROUND_UP)
    return part if part == up else up


def _of(middle: float, share: Range) -> Range:
    return Range(p50=middle * share.p50, p95=middle * share.p95)


def _repaired(samples: Samples) -> Calls:
    every = samples.samples
    costs = [each.usd for each in every]
    known = sorted(cost for cost in costs if cost is not None)
    whole = len(known) == len(costs)
    rank = min(len(known), ceil(0.95 * (len(known) + 1) - 1e-9))
    return Calls(
        seconds=quantiles([each.seconds for each in every]),
        tokens_in=quantiles([each.tokens_in for each in every]),
        tokens_out=quantiles([each.tokens_out for each in every]),
        usd_p50=known[len(known) // 2] if whole else None,
        usd_p95=known[rank - 1] if whole else None,
        calls=quantiles([each.calls for each in every]),
        sources=(f"history (n={len(every)})",),
    )
