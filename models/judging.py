"""What a judge is asked and may say: a claim and its evidence, never the producer's own case."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias, Unpack

from pydantic import Field

from plangate.models.call import question
from plangate.models.form import form_of
from plangate.plan.outcome import Says
from plangate.plan.value.frozen import Frozen
from plangate.prompts.loader import load

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plangate.models.asking import Asking, Metered
    from plangate.plan.value.frozen import Json
    from plangate.plan.verdict import EvidenceRef

ROLE: Final = "judge"
"""Of the prompt file too."""

_Name: TypeAlias = Annotated[str, Field(max_length=320)]
_Why: TypeAlias = Annotated[str, Field(max_length=500)]


class Judgement(Frozen):
    """What a judge says of one claim."""

    says: Says
    confidence: Annotated[float, Field(ge=0, le=1)]
    cites: Annotated[tuple[_Name, ...], Field(max_length=20)]
    """Names of the evidence that it rests on."""

    failed: Annotated[tuple[_Why, ...], Field(max_length=10)]
    """What is not met."""

    why: _Why


@dataclass(frozen=True, slots=True, kw_only=True)
class Matter:
    """What there is to judge."""

    claim: str
    rule: str = ""
    evidence: Mapping[str, Json]
    """Named values: what the work was given, what it gave, what the world shows."""

    references: tuple[EvidenceRef, ...] = ()
    """Evidence references that belong to them."""

    def knows(self, name: str) -> bool:
        """True if a judge can have seen something under this name."""
        is_reference = any(name == each.ref for each in self.references)
        return is_reference or name.partition(".")[0] in self.evidence


async def judge_question(
    chat: Any, matter: Matter, **metered: Unpack[Metered]
) -> Asking[Judgement]:
    """Make the question ready: rendered and counted, not yet asked.

    Args:
        chat: Any LangChain chat model.
        matter: What there is to judge.
        **metered: How the call is recorded, priced and limited.

    Raises:
        ConfigError: The model repeats calls by itself.
    """
    shown: dict[str, Json] = {
        **matter.evidence,
        "references": [each.ref for each in matter.references],
    }
    values: dict[str, Json] = {"claim": matter.claim, "rule": matter.rule, "evidence": shown}
    return await question(chat, load(ROLE), values, role=ROLE, schema=form_of(Judgement), **metered)
