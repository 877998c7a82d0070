from __future__ import annotations

from dataclasses import replace

import pytest

from plangate.given import LONGEST
from plangate.graph.fenced import LONGEST_ID
from plangate.plan.errors import ConfigError
from plangate.plan.value.plan import Plan
from plangate.runtime import Runtime

GOOD = {"order_id": "ORD-B7K2M9Q4", "line": 1, "amount_cents": 6450}
WRONG = [
    ("a missing input", {"inputs": {"line": 1}}, "'order_id' is missing"),
    ("an unknown input", {"inputs": {**GOOD, "colour": "red"}}, "'colour' is not a parameter"),
    ("an ill-typed input", {"inputs": {**GOOD, "amount_cents": "12"}}, "'amount_cents'"),
    ("a goal that no plan has room for", {"goal": "g" * 4001, "inputs": GOOD}, "room for 4000"),
    ("such a goal id", {"goal_id": "g" * 201, "inputs": GOOD}, "room for 200"),
    ("such a run id", {"run_id": "r" * 201, "inputs": GOOD}, "room for 200"),
    ("an unknown task", {"inputs": GOOD, "task": "refnud"}, "no template named 'refnud'"),
]


def test_what_a_caller_may_say_is_as_long_as_a_plan_has_room_for():
    fields = Plan.model_json_schema()["properties"]

    most = {name: fields[name]["maxLength"] for name in ("goal", "goal_id")}

    assert (most, most["goal_id"]) == (LONGEST, LONGEST_ID)


@pytest.mark.parametrize(("name", "given", "says"), WRONG, ids=[each[0] for each in WRONG])
def test_a_wrong_start_is_refused_and_leaves_the_thread_free(shop, name, given, says):
    config = {"configurable": {"thread_id": "t"}}

    with pytest.raises(ConfigError, match=says):
        shop.runtime.graph.invoke({"goal": "Refund it", **given}, config)

    assert shop.runtime.journal.runs.list() == ()
    asked = shop.runtime.graph.invoke({"goal": "Refund it", "inputs": GOOD}, config)
    assert asked["__interrupt__"]


def test_two_templates_of_one_name_are_refused_when_the_agent_is_built(shop, tmp_path):
    agent = replace(shop.agent, templates=shop.agent.templates * 2)

    with pytest.raises(ConfigError, match="two templates are named 'refund'"):
        Runtime(agent, f"sqlite:///{tmp_path}/other.db")
