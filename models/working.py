"""One piece of work for a model: an instruction, data it may not be led by, a form of the answer.

The call is quarantined: no tools, nothing of the conversation or of the rest of the plan, and what
others wrote stands only where it cannot pass for an instruction.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Unpack

from plangate.models.call import question
from plangate.models.form import form_of_schema
from plangate.prompts.loader import load

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plangate.models.asking import Asking, Metered
    from plangate.plan.value.frozen import Json

PROMPT: Final = "work"
ROLE: Final = "step"
AGENT: Final = "agent"
"""Prompt and role of an agent's turns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a model is given."""

    task: str
    """The instruction: the objective of the step, as it was approved."""

    data: Mapping[str, Json]
    """Named values, whoever wrote them."""

    output: Mapping[str, Json]
    """JSON Schema of the answer."""

    prompt: str = PROMPT
    role: str = ROLE
    told: Mapping[str, Json] = field(default_factory=dict)
    """Further values that the prompt takes: words of ours or of the plan, no data."""

    findings: str = ""
    """What was wrong with the last answer; empty: there was none."""


async def work_question(
    chat: Any, work: Work, **metered: Unpack[Metered]
) -> Asking[Mapping[str, Json]]:
    """Make the question ready: rendered and counted, not yet asked.

    Args:
        chat: Any LangChain chat model.
        work: What it is given.
        **metered: How the call is recorded, priced and limited.

    Raises:
        ConfigError: The model repeats calls by itself.
    """
    values: dict[str, Json] = {
        **work.told,
        "task": work.task,
        "data": work.data,
        "findings": work.findings,
    }
    form = form_of_schema(work.output, name=work.role)
    return await question(chat, load(work.prompt), values, role=work.role, schema=form, **metered)
