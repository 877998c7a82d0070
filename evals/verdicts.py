"""Labelled claims, decided as a run decides them: rules first, then a judge where one is set up.

What counts most is a false pass: a claim that is not so and is taken for so. Unknown is an answer
of its own; who says it too often sends people work, who says it too seldom lies.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from importlib import resources
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from plangate.budget.prices import PriceBook
from plangate.engine.judging import Bound, Judge, Jury, decided
from plangate.models.judging import Matter
from plangate.plan.catalog import Catalog
from plangate.plan.document import read_yaml
from plangate.plan.errors import ConfigError
from plangate.plan.outcome import Says
from plangate.plan.policy_rules import VerifierPolicy
from plangate.plan.shape.cel import Compiled, compile_rule
from plangate.plan.shape.scope import rule_scope
from plangate.plan.value.frozen import Args, Frozen, thaw
from plangate.plan.value.plan import Author, Plan
from plangate.plan.value.step import Check, Line, Name, Rule, Step

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plangate.journal.events import ModelCalled
    from plangate.models.asking import Metered

Kind: TypeAlias = Literal[
    "clear_pass", "clear_fail", "insufficient", "unsupported_citation", "unauthorised_way",
    "other_wording", "self_justification", "conflict", "same_model_bias", "verifier_timeout",
]  # fmt: skip
SAYS: tuple[Says, ...] = ("pass", "fail", "unknown")


class Case(Frozen):
    """One claim, its evidence, and what is right to say of it."""

    id: Name
    kind: Kind
    claim: Line
    gold: Says
    rule: Rule | None = None
    conflict: Rule | None = None
    inputs: Args | None = None
    result: Args | None = None
    observed: Args | None = None

    @property
    def evidence(self) -> dict[str, Any]:
        """What there is to decide it by."""
        parts = {"inputs": self.inputs, "result": self.result, "observed": self.observed}
        return {name: thaw(each) for name, each in parts.items() if each is not None}


class _Cases(Frozen):
    cases: tuple[Case, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a verifier said of one case."""

    case: Case
    says: Says
    by: Literal["rule", "judge", "nobody"]
    why: str = ""
    confidence: float | None = None
    usd: Decimal | None = Decimal(0)
    tokens: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Judged:
    """A whole set, decided by one verifier."""

    verifier: str
    said: tuple[Said, ...]

    def matrix(self) -> dict[Says, dict[Says, int]]:
        """Count cases by what is right, and then by what was said."""
        counted = Counter((each.case.gold, each.says) for each in self.said)
        return {gold: {says: counted[gold, says] for says in SAYS} for gold in SAYS}

    @property
    def false_passes(self) -> tuple[Said, ...]:
        """Claims that are not so, or not known to be, and were taken for so."""
        return tuple(each for each in self.said if each.says == "pass" != each.case.gold)

    @property
    def false_pass_rate(self) -> float | None:
        """Their share of all claims that should not pass; None: there are none."""
        of = sum(each.case.gold != "pass" for each in self.said)
        return len(self.false_passes) / of if of else None


def load_cases() -> tuple[Case, ...]:
    """Read the labelled set."""
    text = resources.files("plangate.evals").joinpath("verdicts.yaml").read_text(encoding="utf-8")
    return read_yaml(_Cases, text, "labelled verdicts").cases


def judge_all(
    cases: Sequence[Case],
    judge: Judge | None = None,
    rules: VerifierPolicy = VerifierPolicy(),  # noqa: B008 - a value
) -> Judged:
    """Decide every case, one after the other.

    Args:
        cases: The claims.
        judge: For those that no rule decides; None: they are unknown.
        rules: How sure a judge must be.
    """
    name = "rules" if judge is None else f"rules, then {judge.name}"

    async def each() -> tuple[Said, ...]:
        return tuple([await _decide(case, judge, rules) for case in cases])

    return Judged(name, asyncio.run(each()))


async def _decide(case: Case, judge: Judge | None, rules: VerifierPolicy) -> Said:
    if case.conflict is not None and _holds(case, case.conflict) is not False:
        return Said(case=case, says="unknown", by="rule", why="the evidence contradicts itself")
    if case.rule is not None:
        holds = _holds(case, case.rule)
        says: Says = "unknown" if holds is None else "pass" if holds else "fail"
        return Said(case=case, says=says, by="rule")
    if judge is None:
        return Said(case=case, says="unknown", by="nobody", why="no judge is set up")
    return await _by_judge(case, judge, rules)


async def _by_judge(case: Case, judge: Judge, rules: VerifierPolicy) -> Said:
    calls: list[ModelCalled] = []

    def metered(by: str) -> Metered:
        return {"book": judge.book, "on_call": calls.append, "by": by}

    check = Check(id=case.id, level="L3", claim=case.claim)
    began = monotonic()
    matter = Matter(claim=case.claim, evidence=case.evidence)
    verdict = await decided(Jury(judge, rules, metered), Bound(check, None, case.id), matter)
    prices = [each.usd for each in calls]
    known = [each for each in prices if each is not None]
    return Said(
        case=case,
        says=verdict.says,
        by="judge",
        why=verdict.why,
        confidence=verdict.confidence,
        usd=sum(known, Decimal(0)) if len(known) == len(prices) else None,
        tokens=sum(each.input_tokens + each.output_tokens for each in calls),
        seconds=monotonic() - began,
    )


def _holds(case: Case, rule: str) -> bool | None:
    """Evaluate a rule as a run does; None where it cannot be."""
    plan = _ONE.model_copy(update={"inputs": case.inputs or {}})
    compiled = compile_rule(rule, rule_scope(plan, _NO_TOOLS, step="S1", observed="look"))
    if not isinstance(compiled, Compiled):
        raise ConfigError(
            f"case {case.id}: {'; '.join(each.says for each in compiled)}",
            hint="Correct the rule; it reads inputs, result and observed.",
        )
    return compiled.evaluate({"inputs": {}, **case.evidence})


_NO_TOOLS = Catalog.of([])
_ONE = Plan(
    goal_id="eval",
    goal="Decide a claim",
    task_type="eval",
    steps=(Step(id="S1", objective="Do it", kind="model", output={}),),
    author=Author(kind="template"),
)
"""A rule is read in a plan; this one says nothing of the types, so that nothing is assumed."""


def priced_judge(chat: Any, book: PriceBook | None = None) -> Judge:
    """Return a chat model as the judge of a set."""
    return Judge(chat, book or PriceBook())


def regressions(old: Mapping[str, str], new: Judged) -> tuple[str, ...]:
    """Return the cases that a new version takes for so, and an old one did not, and that are not.

    Args:
        old: By case what the old version said.
        new: The new version.
    """
    return tuple(
        each.case.id for each in new.false_passes if old.get(each.case.id, "unknown") != "pass"
    )
