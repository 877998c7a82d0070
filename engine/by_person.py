"""What was tried and only a person could judge is not tried again: their word ends it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plangate.engine.attempt import Tried
from plangate.journal.progress import unit_of

if TYPE_CHECKING:
    from plangate.engine.bench import Bench
    from plangate.engine.capability import Capability
    from plangate.engine.release import Ready
    from plangate.journal.progress import AttemptView
    from plangate.plan.value.step import Step
    from plangate.plan.verdict import Verdict


def judged_by_person(
    bench: Bench, step: Step, capability: Capability, ready: Ready, element: int | None
) -> Tried | None:
    """Return the last try of this very call, if a person has decided its checks since; None: none.

    An act must still stand in the ledger; without it the try is made anew, and the ledger decides.
    """
    view, unit = bench.session.view, unit_of(step.id, element)
    tried = view.attempts.get(view.judged.get(unit, ""))
    verdicts = tuple(view.verdicts.get(unit, ()))
    if tried is None or not any(each.by_person for each in verdicts):
        return None
    ended = tried.ended
    if ended is None or ended.output is None or not _is_same(bench, capability, ready, tried):
        return None
    by_id = {each.check_id: each for each in verdicts}
    said = tuple(by_id[check.id] for check in step.success if check.id in by_id)
    if len(said) < len(step.success) and all(each.says == "pass" for each in said):
        return None  # not all of it was looked at
    return Tried("success", output=ended.output, verdicts=said)


def _is_same(bench: Bench, capability: Capability, ready: Ready, tried: AttemptView) -> bool:
    started, ended = tried.started, tried.ended
    if (started.capability, started.args_sha256) != (capability.name, ready.args_sha256):
        return False
    if started.plan_version != bench.plan.version or ended is None:
        return False
    if not capability.spec.effect.acts:
        return True
    row = bench.session.journal.ledger.get(ended.effect_key) if ended.effect_key else None
    return row is not None and row.state == "done"


def word_of(bench: Bench, step: Step, unknown: Verdict) -> Verdict:
    """Return what a person said of this check on this very evidence, in the place of unknown."""
    said = (
        each
        for each in bench.session.view.verdicts.get(step.id, ())
        if (each.check_id, each.by_person) == (unknown.check_id, True)
        and set(unknown.evidence) <= set(each.evidence)
    )
    return next(said, unknown) if unknown.says == "unknown" else unknown
