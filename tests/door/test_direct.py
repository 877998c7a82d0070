"""A trivial question is not taxed: one read is planned, checked and verified, and no more."""

from __future__ import annotations

import json

import pytest
from typing_extensions import TypedDict

from plangate import build_preview, tool
from plangate.agent import Agent
from plangate.budget.prices import PriceBook
from plangate.plan.mode import is_direct
from plangate.plan.templates import Template
from plangate.plan.value.frozen import parse
from plangate.plan.value.plan import Plan
from plangate.runtime import Options, Runtime
from plangate.tools.registry import Registry
from tests.engine.models import Scripted

POLICY = 'schema = 1\n[[allow]]\ntool = "*"\n'
ONE = """
template: hour
goal: Tell the time
parameters: [{name: zone, type: string}]
steps:
  - {id: S1, objective: Look at the clock, tool: clock, args: {zone: "${inputs.zone}", form: long},
     success: [{id: hour, level: L1, claim: It is an hour, rule: result.hour < 24}]}
success_criteria: [{id: told, level: L1, claim: It is told, rule: steps.S1.output.hour < 24}]
abort_conditions: [{id: a, text: Failures, rule: run.failures >= 2}]
"""
SECOND = """
  - {id: S2, objective: Look again, tool: clock, after: [S1],
     args: {zone: "${inputs.zone}", form: short},
     success: [{id: again, level: L1, claim: It is one too, rule: result.hour < 24}]}
success_criteria"""
TWO = ONE.replace("\nsuccess_criteria", SECOND)


class Hour(TypedDict):
    hour: int


def agent(template, **contract):
    @tool(effect="read", **contract)
    def clock(zone: str, form: str) -> Hour:
        """Look at the clock."""
        return {"hour": 12}

    policy = POLICY.replace("[[", 'constants = ["long", "short"]\n[[', 1)
    return Agent(name="clock", tools=(clock,), policy=policy, templates=(template,))


@pytest.mark.parametrize(("template", "critic_calls"), [(ONE, 0), (TWO, 1)])
def test_no_second_model_reads_a_plan_of_one_read_and_nobody_is_asked(
    tmp_path, template, critic_calls
):
    critic = Scripted([json.dumps({"findings": []})])
    made = agent(template)
    runtime = Runtime(made, f"sqlite:///{tmp_path}/journal.db", Options(critic=critic))

    list(runtime.start({"goal": "Time?", "inputs": {"zone": "Oslo"}}, run_id="r"))

    view = runtime.view("r")
    assert (view.ended.verdict, view.questions) == ("pass", {})
    assert (len(critic.asked), view.model_calls) == (critic_calls, critic_calls)
    assert view.criticized[1].skipped == ("" if critic_calls else "one read, nothing to doubt")
    plan = parse(Plan, runtime.journal.artifacts.get(view.plans[1].plan))
    prices = PriceBook({"scripted": {"input": "1", "output": "2"}})
    roles = [
        each.role
        for each in build_preview(plan, made, critic=critic, prices=prices).estimate.overhead
    ]
    assert ("critic" in roles) == bool(critic_calls)
    runtime.close()


def plan_of(template):
    made = agent(template)
    return Template.from_yaml(template).fill("Time?", {"zone": "Oslo"}, "g"), made


def test_what_leaves_the_house_acts_or_is_unknown_is_never_direct():
    plan, made = plan_of(ONE)
    catalog = Registry(made.tools).catalog()
    [step] = plan.steps

    def with_step(**change):
        return plan.model_copy(update={"steps": (step.model_copy(update=change),)})

    assert is_direct(plan, catalog)
    assert not is_direct(plan_of(TWO)[0], catalog)
    assert not is_direct(plan, Registry(agent(ONE, external=True).tools).catalog())
    assert not is_direct(with_step(tool="nobody"), catalog)
    assert not is_direct(with_step(for_each="${inputs.zones}", max_items=3), catalog)
    assert not is_direct(with_step(kind="model", tool=None, output={}), catalog)
