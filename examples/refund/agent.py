"""The refund agent as one value: tools, policy, template, repairs and scenarios, but no world."""

from __future__ import annotations

from importlib import resources

from plangate.agent import Agent, load_scenarios
from plangate.examples.refund.tools import TOOLS
from plangate.plan.facts import Rights

_PACKAGE = "plangate.examples.refund"


def _text(name: str) -> str:
    return resources.files(_PACKAGE).joinpath(name).read_text(encoding="utf-8")


agent = Agent(
    name="refund",
    tools=TOOLS,
    policy=_text("policy.toml"),
    templates=(_text("templates/refund.yaml"),),
    repairs=_text("repairs.yaml"),
    connect=f"{_PACKAGE}.world:connect",
    world_url="sqlite:///.plangate/refund-world.db",
    rights=Rights(
        principal="support-1",
        roles=("support",),
        scopes=("orders:read", "logistics:read", "policy:read", "refund:read", "refund:create"),
    ),
    scenarios=load_scenarios(_PACKAGE),
)
