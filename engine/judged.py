"""A result that no single attempt gave, a person's or an agent's, held against its checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plangate.engine.attempt import Tried
from plangate.engine.by_person import word_of
from plangate.engine.checks import run_check
from plangate.engine.ended import Ended, verified
from plangate.journal.events import VerdictReached

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plangate.engine.bench import Bench
    from plangate.plan.value.frozen import Json
    from plangate.plan.value.step import Step
    from plangate.plan.verdict import EvidenceRef, Verdict


async def judged(
    bench: Bench, step: Step, output: Mapping[str, Json], evidence: tuple[EvidenceRef, ...]
) -> Ended:
    """Run the checks of a step over its result, and return its end.

    Raises:
        BudgetExceeded: A look at the world would pass a limit.
    """
    verdicts: list[Verdict] = []
    result = bench.session.put(output)
    for check in step.success:
        got = await run_check(bench, check, step=step.id, result=output, evidence=evidence)
        verdicts.append(word_of(bench, step, got))
        said = VerdictReached(step=step.id, attempt_id="", verdict=verdicts[-1], result=result)
        bench.session.emit(said)
    return verified(step, Tried("success", output=result, verdicts=tuple(verdicts)))
