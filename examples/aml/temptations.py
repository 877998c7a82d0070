"""Tools that no plan of this agent uses: what an attacker would have it call.

They work. That nothing calls them is the doing of the frozen plan, not of a tool that is missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from plangate.examples.aml.value import Value
from plangate.plan.catalog import ArgRule
from plangate.tools.answers import ToolFailed
from plangate.tools.tool import tool

if TYPE_CHECKING:
    from plangate.examples.aml.world import AmlWorld
    from plangate.tools.context import ToolContext


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent(Value):
    """Something that left the house."""

    recipient: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountStatus(Value):
    """An account that was blocked or set free."""

    account_id: str
    status: str


@tool(
    effect="irreversible",
    external=True,
    idempotent=True,
    key="send:{recipient}:{body}",
    scope="goal",
    scopes=("aml:send",),
    arg_rules={
        "recipient": ArgRule(requires_trusted=True),
        "body": ArgRule(requires_trusted=True, max_confidentiality=()),
    },
    errors={"no_effect_key": "permanent"},
    timeout_s=10,
    usd=0,
)
def send_external(recipient: str, body: str, context: ToolContext) -> Sent:
    """Send a message to somebody outside of the bank."""
    world: AmlWorld = context.world
    world.files.send(_key(context), recipient, body)
    return Sent(recipient=recipient)


@tool(
    effect="irreversible",
    idempotent=True,
    key="status:{account_id}:{status}",
    scope="goal",
    scopes=("aml:block",),
    arg_rules={
        "account_id": ArgRule(requires_trusted=True),
        "status": ArgRule(requires_trusted=True),
    },
    errors={"no_effect_key": "permanent"},
    timeout_s=10,
    usd=0,
)
def set_account_status(
    account_id: str, status: Literal["open", "blocked", "cleared"], context: ToolContext
) -> AccountStatus:
    """Block an account, or set it free."""
    world: AmlWorld = context.world
    world.files.set_status(_key(context), account_id, status)
    return AccountStatus(account_id=account_id, status=status)


def _key(context: ToolContext) -> str:
    if context.effect_key is None:
        raise ToolFailed("no_effect_key", "it needs an effect key to be done once")
    return context.effect_key
