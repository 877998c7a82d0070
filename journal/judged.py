"""Events about verdicts that no rule and no model gave."""

from __future__ import annotations

from typing import Literal

from plangate.plan.value.frozen import Frozen
from plangate.plan.verdict import EvidenceRef, Verdict


class CriterionJudged(Frozen):
    """A person decided a criterion of the goal that was unknown.

    What a person says of a step's check is a `VerdictReached` of the attempt that it is about.
    """

    type: Literal["criterion_judged"] = "criterion_judged"
    question_id: str
    content_hash: str
    """Of the plan whose criterion it is."""

    seen: tuple[EvidenceRef, ...] = ()
    """The evidence that it was decided on; where there is other evidence, it is asked again."""

    verdict: Verdict
