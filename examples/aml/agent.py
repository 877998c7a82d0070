"""The AML agent as one value: tools, policy, templates, repairs and scenarios, but no world."""

from __future__ import annotations

from importlib import resources

from plangate.agent import Agent, load_scenarios
from plangate.examples.aml.tools import TOOLS
from plangate.plan.facts import Rights

_PACKAGE = "plangate.examples.aml"


def _text(name: str) -> str:
    return resources.files(_PACKAGE).joinpath(name).read_text(encoding="utf-8")


agent = Agent(
    name="aml",
    tools=TOOLS,
    policy=_text("policy.toml"),
    templates=(_text("templates/aml.yaml"), _text("templates/aml_model.yaml")),
    repairs=_text("repairs.yaml"),
    connect=f"{_PACKAGE}.world:connect",
    world_url="sqlite:///.plangate/aml-world.db",
    rights=Rights(
        principal="investigator-1",
        roles=("investigator",),
        scopes=("aml:read", "aml:file", "aml:send", "aml:block"),
    ),
    scenarios=load_scenarios(_PACKAGE),
)
