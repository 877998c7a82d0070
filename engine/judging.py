"""L3: a model decides a claim from evidence. What it cannot show, and whatever fails, is unknown.

It is asked last, after every rule that decides by itself, and it sees the claim, the rule and the
evidence: what the step was given, what it gave, what the world shows. A word that it is not sure
of, that cites nothing it was shown, or that comes from the very model which wrote the result, is
no verdict; a person decides then.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from plangate.models.chat import model_name
from plangate.models.fault import Fault
from plangate.models.judging import ROLE, Judgement, Matter, judge_question
from plangate.plan.contract import AGENT, MODEL
from plangate.plan.secrets import masked
from plangate.plan.value.frozen import canonical
from plangate.plan.verdict import Verdict
from plangate.prompts.loader import load

if TYPE_CHECKING:
    from collections.abc import Callable

    from plangate.budget.prices import PriceBook
    from plangate.engine.bench import Bench
    from plangate.journal.reference import Ref
    from plangate.models.asking import Metered, Reply
    from plangate.plan.policy_rules import VerifierPolicy
    from plangate.plan.value.step import Check
    from plangate.plan.verdict import EvidenceRef

_WRITERS: Final = (MODEL, AGENT)
LARGEST: Final = 200_000
"""Bytes of evidence that a judge is shown; nobody decides fairly on a part of it."""


@dataclass(frozen=True, slots=True)
class Judge:
    """The model that decides checks of level L3, and what it costs."""

    chat: Any
    book: PriceBook

    @property
    def name(self) -> str:
        """The name that prices and logs know it by."""
        return model_name(self.chat)

    def for_look(self, by: str) -> Any:
        """Return the chat model for one question; a replay has another one for each."""
        del by
        return self.chat


class Bound(NamedTuple):
    """What a judge's word is about."""

    check: Check
    step: str | None
    """None: the goal."""

    by: str
    """Whose question it is in the log, as `S3-cited`."""


class Jury(NamedTuple):
    """Who decides, by which rules, and on whose account."""

    judge: Judge
    rules: VerifierPolicy
    metered: Callable[[str], Metered]
    """By whose question it is: how a call is recorded, priced and limited."""


async def judge(bench: Bench, bound: Bound, matter: Matter) -> Verdict:
    """Have a check of a run judged.

    Raises:
        BudgetExceeded: The question would pass a limit; it was not asked.
    """
    refusal = _refusal(bench, bound, matter)
    if bench.judge is None or refusal:
        return _unsure(bound.check, matter.references, refusal)
    metered = partial(_metered, bench, bench.judge, bound)
    return await decided(Jury(bench.judge, bench.policy.verifier, metered), bound, matter)


async def decided(jury: Jury, bound: Bound, matter: Matter) -> Verdict:
    """Ask the judge, and hold what it says against what it was shown and against the policy.

    Raises:
        BudgetExceeded: The question would pass a limit; it was not asked.
    """
    why = ""
    for number in range(1, 2 + jury.rules.max_rechecks):
        said = await _asked(jury, f"{bound.by}-{number}", matter)
        if isinstance(said, Judgement):
            return _verdict(bound.check, matter.references, said, jury.rules)
        why = said
    return _unsure(bound.check, matter.references, why)


def _refusal(bench: Bench, bound: Bound, matter: Matter) -> str:
    """Say why no judge is asked; empty: one can be."""
    if bench.judge is None:
        return "no judge is set up"
    step = bench.plan.by_id.get(bound.step or "")
    wrote = step.kind in _WRITERS if step is not None else _has_writers(bench)
    author = bench.step_model.name if bench.step_model is not None else ""
    if bench.policy.verifier.other_model and wrote and bench.judge.name == author:
        return f"the judge is {author!r}, which wrote what is judged"
    if len(canonical(matter.evidence)) > LARGEST:
        return f"the evidence has more than {LARGEST} bytes"
    return ""


def _has_writers(bench: Bench) -> bool:
    return any(step.kind in _WRITERS for step in bench.plan.steps)


def _metered(bench: Bench, judge: Judge, bound: Bound, by: str) -> Metered:
    def keep(text: str) -> Ref:
        return bench.session.put(masked(text))

    metered: Metered = {
        "book": judge.book,
        "on_call": bench.session.emit,
        "keep": keep,
        "meter": bench.meter,
        "elapsed_s": bench.elapsed_s(),
        "by": by,
    }
    return metered if bound.step is None else {**metered, "step": bound.step}


async def _asked(jury: Jury, by: str, matter: Matter) -> Judgement | str:
    """Ask once; a line of text says why there is no word that could count."""
    asking = await judge_question(jury.judge.for_look(by), matter, **jury.metered(by))
    got = await asking.once()
    if isinstance(got, Fault):
        return f"the judge failed: {got.code}"
    return _word(got, matter)


def _word(got: Reply[Judgement], matter: Matter) -> Judgement | str:
    if got.value is None:
        return "the judge's answer is cut off" if got.cut_off else "the judge gave no judgement"
    strange = [name for name in got.value.cites if not matter.knows(name)]
    if strange:
        return f"the judge cites {strange[0][:80]!r}, which it was not shown"
    if got.value.says != "unknown" and not got.value.cites:
        return "the judge cites nothing"
    return got.value


def _verdict(
    check: Check, evidence: tuple[EvidenceRef, ...], said: Judgement, rules: VerifierPolicy
) -> Verdict:
    """Take a word for a verdict if the judge is as sure as the policy asks for."""
    if said.says != "unknown" and said.confidence < rules.pass_threshold:
        asked = f"{rules.pass_threshold:.2f} is asked for"
        why = f"the judge says {said.says} at {said.confidence:.2f}, and {asked}: {said.why}"
        return _unsure(check, evidence, why, confidence=said.confidence)
    return Verdict(
        says=said.says,
        check_id=check.id,
        level="L3",
        verifier=_version(),
        claim=check.claim,
        evidence=tuple(ref for ref in evidence if ref.ref in said.cites) or evidence,
        failed_constraints=said.failed if said.says == "fail" else (),
        why=said.why,
        confidence=said.confidence,
        repairable=said.says == "fail",
        recommended_route={"pass": "", "fail": "replan", "unknown": "ask"}[said.says],
    )


def _unsure(
    check: Check, evidence: tuple[EvidenceRef, ...], why: str, *, confidence: float | None = None
) -> Verdict:
    return Verdict(
        says="unknown",
        check_id=check.id,
        level="L3",
        verifier=_version(),
        claim=check.claim,
        evidence=evidence,
        why=why,
        confidence=confidence,
        recommended_route="ask",
    )


def _version() -> str:
    return f"{ROLE}@{load(ROLE).sha256[:12]}"
