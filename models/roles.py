"""What each model of an agent is sent, for the estimate: the same prompt files as the calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plangate.budget.roles import Role, Roles
from plangate.models.chat import MOST_OUTPUT_TOKENS, model_name
from plangate.models.critique import Criticism
from plangate.models.judging import ROLE as JUDGE
from plangate.models.judging import Judgement
from plangate.models.render import render_catalog, render_policy
from plangate.models.working import AGENT, PROMPT
from plangate.prompts.loader import load

if TYPE_CHECKING:
    from plangate.plan.catalog import Catalog
    from plangate.plan.policy import Policy


@dataclass(frozen=True, slots=True)
class Named:
    """Stands for a chat model where only its price matters: nothing is opened, no key is needed."""

    model_name: str

    @classmethod
    def of(cls, name: str) -> Named:
        """Read the name as a command line has it, `openai:gpt-5-mini`: a log has it without."""
        return cls(name.partition(":")[2] or name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chats:
    """The chat models of an agent; None: there is none."""

    planner: Any = None
    critic: Any = None
    judge: Any = None
    step: Any = None
    """Of model steps and agent steps."""


def roles_of(chats: Chats, catalog: Catalog, policy: Policy) -> Roles:
    """Describe the chat models of an agent, as an estimate needs them.

    Args:
        chats: LangChain chat models, or `Named`.
        catalog: What a planner is told of.
        policy: The same.
    """
    told = () if chats.planner is None else (render_catalog(catalog), render_policy(policy))
    return Roles(
        planner=_role(chats.planner, "planner", *told),
        critic=_role(chats.critic, "critic", schema=Criticism.model_json_schema()),
        judge=_role(chats.judge, JUDGE, schema=Judgement.model_json_schema()),
        step=_role(chats.step, PROMPT),
        agent=_role(chats.step, AGENT),
    )


def _role(chat: Any, name: str, *told: str, schema: dict[str, Any] | None = None) -> Role | None:
    if chat is None:
        return None
    prompt = load(name)
    return Role(
        model=model_name(chat),
        prompt="\n".join((prompt.system, prompt.user, *told)),
        sha256=prompt.sha256,
        schema=schema,
        limit=getattr(chat, "max_tokens", None) or MOST_OUTPUT_TOKENS,
    )
