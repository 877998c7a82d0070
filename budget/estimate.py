"""What a plan will probably take, from contracts, schemas and earlier runs, before anything runs.

A figure that nobody declared or observed is unknown and makes its sum unknown; it is never zero.
What a planner or a model claims about its own plan is never used.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property
from math import ceil
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from plangate.budget.agents import bounded, dearest, shown_of
from plangate.budget.calls import P95_FACTOR, Calls, added, asked, forecast_of, money, total
from plangate.budget.history import Seen, seen, step_subject, tool_subject
from plangate.budget.inputs import Counter, Inputs, Sent
from plangate.budget.overhead import overhead
from plangate.budget.roles import NOBODY, Role, Roles
from plangate.budget.size import CALL_LIMIT, Size, size_of
from plangate.plan.contract import RESERVED, contract_of, tools_of
from plangate.plan.forecast import NONE, ONCE, PlanEstimate, Range, StepEstimate
from plangate.plan.schedule import critical_path
from plangate.plan.value.frozen import thaw

if TYPE_CHECKING:
    from plangate.budget.prices import PriceBook
    from plangate.journal.samples import Past
    from plangate.plan.catalog import Catalog
    from plangate.plan.value.autonomy import Autonomy
    from plangate.plan.value.plan import Plan
    from plangate.plan.value.step import Check, Step

__all__ = ["P95_FACTOR", "Known", "estimate"]

JUDGE_CLAIM_TOKENS = 200
"""Of the claim, the rule and the evidence that a judge (L3) reads beside the result."""

JUDGE_OUTPUT_TOKENS = 200

PARALLEL = 64
"""Calls of a run at a time."""

ELEMENTS_AT_ONCE = 8
"""Elements of one step at a time, where its contract does not say (`plangate.engine.each`)."""

_UNKNOWN_SECONDS = Range(p50=0.5, p95=1.0)
"""Of a tool that nobody knows: what a contract says that says nothing."""

_DONE = StepEstimate(step="", seconds=NONE, usd_p50=Decimal(0), usd_p95=Decimal(0), source="done")

_NOTHING: Past = MappingProxyType({})


@dataclass(frozen=True, kw_only=True)
class Known:
    """What an estimate is made from, beside the plan.

    Args:
        catalog: The contracts; a tool that is not in it has a price that nobody knows.
        book: Prices of models.
        roles: The models that are set up.
        past: What earlier calls took, by subject (`plangate.budget.history.subjects_of`).
        now: Of the estimate, for the age of the prices.
        rereads: Whether the policy has reads made again before an irreversible act.
    """

    catalog: Catalog
    book: PriceBook
    roles: Roles = NOBODY
    past: Past = field(default_factory=lambda: _NOTHING)
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    rereads: bool = True


class Spent(NamedTuple):
    """What a run has used so far, planning above all."""

    usd: Decimal | None = Decimal(0)
    """None: unknown."""

    tokens: int = 0
    done: frozenset[str] = frozenset()
    """Steps that have ended: what they took is part of the above, and is not to come again."""


class Question(NamedTuple):
    """What a model step sends and gets, in tokens."""

    role: Role | None
    """None: no model is set for model steps."""

    prompt: Range
    """With the task and the form of the answer."""

    sent: Sent
    size: Size
    """Of the answer."""


def estimate(plan: Plan, known: Known, spent: Spent = Spent()) -> PlanEstimate:  # noqa: B008 - a tuple
    """Estimate a plan; linear in its steps.

    Args:
        plan: The plan.
        known: Contracts, prices, models, history.
        spent: What the run has used so far.

    Returns:
        Totals of what is still to come, the sum over steps and overhead; what is spent stands
        beside them. Seconds are those of the longest path, or of the busiest tool where its
        concurrency is the tighter limit; the time that people take to answer is not in them.
    """
    reader = Reader(plan, known)
    steps = tuple(
        _DONE.model_copy(update={"step": step.id}) if step.id in spent.done else reader.step(step)
        for step in plan.steps
    )
    at_goal = [call for check in plan.success_criteria for call in reader.check(check, NONE)]
    rest = overhead(plan, known, steps, at_goal, reader.counter, spent.done)
    every = [*steps, *rest]
    sums = added([forecast_of(each) for each in every])
    working = total(each.seconds for each in rest if each.when == "execution")
    counted = [each.token_source for each in every if each.token_source]
    return PlanEstimate(
        steps=steps,
        overhead=rest,
        seconds=reader.longest(steps) + working,
        tokens=sums["tokens_in"] + sums["tokens_out"],
        tokens_in=sums["tokens_in"],
        tokens_out=sums["tokens_out"],
        usd_p50=money(each.usd_p50 for each in every),
        usd_p95=money(each.usd_p95 for each in every),
        calls=sums["calls"],
        model_calls=sums["model_calls"],
        spent_usd=spent.usd,
        spent_tokens=spent.tokens,
        price_table=known.book.table,
        price_as_of=known.book.as_of,
        price_is_old=known.book.is_old(known.now),
        token_source=" + ".join(dict.fromkeys(counted)),
        unknown=_unknown(steps),
    )


class Reader:
    """Turns the steps and checks of one plan into expected calls."""

    def __init__(self, plan: Plan, known: Known) -> None:
        self.plan = plan
        self.known = known
        self.inputs = Inputs(plan, known.catalog)
        self._seen: dict[str, Seen | None] = {}
        self._questions: dict[int, Question] = {}

    @cached_property
    def counter(self) -> Counter:
        """Counts for the model that is sent the most."""
        roles = self.known.roles
        found = roles.step or roles.critic or roles.planner or roles.judge
        return Counter(found.model if found else "")

    def step(self, step: Step) -> StepEstimate:
        """Estimate a step, with its checks and all its elements."""
        items, gap = self.inputs.items(step)
        sums = added(self.parts(step, items))
        width = float(self._width(step))
        waves = Range(p50=ceil(items.p50 / width), p95=ceil(items.p95 / width))
        once = added(self.parts(step, ONCE))["seconds"] if items != ONCE else sums["seconds"]
        sums["seconds"] = once.times(waves)
        sums["unknown"] = (*sums["unknown"], gap) if gap else sums["unknown"]
        sums["source"] = sums["source"] or "person"
        return StepEstimate(step=step.id, **sums)

    def parts(self, step: Step, items: Range) -> list[Calls]:
        """Return what a step does for so many elements."""
        own = self._own(step)
        result = self._result(step) if step.success else NONE
        checks = [call for check in step.success for call in self.check(check, result)]
        return [call.times(items) for call in (*own, *checks)]

    def check(self, check: Check, result: Range) -> list[Calls]:
        """Return the calls of one check.

        Args:
            check: Of a step or of the goal.
            result: Tokens of what is checked.
        """
        calls = [] if check.tool is None else [self._tool(check.tool)]
        judge = self.known.roles.judge
        if check.level == "L3" and judge is not None:
            calls.append(self._judge(judge, result))
        return calls

    def longest(self, steps: tuple[StepEstimate, ...]) -> Range:
        """Return the seconds of the longest path, or of the tightest limit on parallel work."""
        taken = {each.step: each.seconds for each in steps}
        low = critical_path(self.plan, {step: each.p50 for step, each in taken.items()}).seconds
        high = critical_path(self.plan, {step: each.p95 for step, each in taken.items()}).seconds
        busy: dict[str, Range] = {}
        for step in self.plan.steps:
            spec = contract_of(step, self.known.catalog)
            if spec is not None and spec.concurrency is not None and taken[step.id].p95:
                items, _ = self.inputs.items(step)
                share = Range(p50=1 / spec.concurrency, p95=1 / spec.concurrency)
                once = added(self._own(step))["seconds"]
                busy[spec.name] = busy.get(spec.name, NONE) + once.times(items).times(share)
        return Range(
            p50=max(low, *(each.p50 for each in busy.values()), 0.0),
            p95=max(high, *(each.p95 for each in busy.values()), 0.0),
        )

    def question(self, step: Step) -> Question:
        """Return what a model step sends and gets; worked out once."""
        key = id(step)  # two steps may share an id, which another layer finds
        if key not in self._questions:
            roles = self.known.roles
            role = roles.step if step.autonomy is None else roles.agent
            prompt = "" if role is None else role.prompt
            form = json.dumps(thaw(step.output), separators=(",", ":")) if step.output else ""
            counted = sum(self.counter.count(e).tokens for e in (prompt, step.objective, form))
            self._questions[key] = Question(
                role,
                Range(p50=counted, p95=counted),
                self.inputs.of(step, self.counter),
                size_of(step.output, CALL_LIMIT if role is None else role.limit),
            )
        return self._questions[key]

    def _own(self, step: Step) -> list[Calls]:
        if step.kind in ("human", "milestone"):
            return []
        if step.autonomy is not None:
            return self._agent(step, step.autonomy)
        return [self._model(step) if step.kind == "model" else self._tool(step.tool or "")]

    def _agent(self, step: Step, envelope: Autonomy) -> list[Calls]:
        tools = tools_of(step, self.known.catalog)
        call = dearest([self._tool(spec.name) for spec in tools])
        contracts = [f"{spec.summary} {spec.params} {spec.output}" for spec in tools]
        told = float(sum(self.counter.count(each).tokens for each in contracts))
        shown = shown_of(envelope, [float(spec.output_tokens) for spec in tools])
        turn = self._model(step, shown + Range(p50=told, p95=told))
        return bounded(envelope, [turn] if call is None else [turn, call])

    def _tool(self, name: str) -> Calls:
        spec = self.known.catalog.tools.get(name)
        if spec is None:
            says = f"there is no contract for {name!r}" if name else "nothing says what is called"
            return Calls(
                seconds=_UNKNOWN_SECONDS,
                usd_p50=None,
                usd_p95=None,
                sources=("default",),
                unknown=(says,),
            )
        past = self._past(tool_subject(spec.name, spec.version))
        stated = Range(p50=spec.seconds, p95=spec.seconds * P95_FACTOR)
        return Calls(
            seconds=past.seconds if past else stated,
            usd_p50=spec.usd,
            usd_p95=spec.usd,
            sources=(past.source if past else "contract",),
            unknown=() if spec.usd is not None else (f"{name!r} declares no price",),
        )

    def _model(self, step: Step, more: Range = NONE) -> Calls:
        role, prompt, sent, size = self.question(step)
        gaps = sent.unknown + tuple(
            f"no bound for {path}; at most the limit of the call" for path in size.unbounded
        )
        if role is None:
            return Calls(
                seconds=_UNKNOWN_SECONDS,
                tokens_in=prompt + sent.tokens + more,
                tokens_out=size.range,
                usd_p50=None,
                usd_p95=None,
                model_calls=ONCE,
                sources=("schema",),
                token_sources=sent.sources,
                unknown=("no model is set for model steps", *gaps),
            )
        book, counted = self.known.book, (*sent.sources, self.counter.count(role.prompt).source)
        past = self._past(step_subject(step, role.model, role.sha256)) if self.known.past else None
        if past is not None:
            call = asked(role.model, book, past.tokens_in, past.tokens_out, seconds=past.seconds)
            return _with(call, past.source, counted, ())
        call = asked(role.model, book, prompt + sent.tokens + more, size.range)
        return _with(call, "schema", counted, gaps)

    def _judge(self, judge: Role, result: Range) -> Calls:
        counted = self.counter.count(judge.prompt)
        fixed = float(counted.tokens + JUDGE_CLAIM_TOKENS)
        asks = result + Range(p50=fixed, p95=fixed)
        answers = (
            size_of(judge.schema, judge.limit).range
            if judge.schema is not None
            else Range(p50=JUDGE_OUTPUT_TOKENS, p95=JUDGE_OUTPUT_TOKENS * P95_FACTOR)
        )
        call = asked(judge.model, self.known.book, asks, answers)
        return _with(call, "", (counted.source,), call.unknown)

    def _result(self, step: Step) -> Range:
        if step.kind in RESERVED:
            return self.question(step).size.range
        spec = self.known.catalog.tools.get(step.tool or "")
        tokens = spec.output_tokens if spec else 0
        return Range(p50=tokens, p95=tokens * P95_FACTOR)

    def _width(self, step: Step) -> int:
        spec = contract_of(step, self.known.catalog)
        if spec is not None and spec.concurrency is not None:
            return spec.concurrency
        return PARALLEL if step.for_each is None else ELEMENTS_AT_ONCE

    def _past(self, subject: str) -> Seen | None:
        if subject not in self._seen:
            self._seen[subject] = seen(self.known.past.get(subject))
        return self._seen[subject]


def _with(call: Calls, source: str, counted: tuple[str, ...], gaps: tuple[str, ...]) -> Calls:
    return replace(
        call,
        sources=(source,) if source else (),
        token_sources=tuple(dict.fromkeys(counted)),
        unknown=tuple(dict.fromkeys((*call.unknown, *gaps))),
    )


def _unknown(steps: tuple[StepEstimate, ...], most: int = 20) -> tuple[str, ...]:
    said = [f"{each.step}: {says}" for each in steps for says in each.unknown]
    more = len(said) - most
    return (*said[:most], f"and {more} more") if more > 0 else tuple(said)
