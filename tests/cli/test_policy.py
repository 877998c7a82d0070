from __future__ import annotations

import json
import textwrap

from plangate.plan import policy as policy_module
from tests.cli.test_plan import write

MORE = """
schema = 1
[[allow]]
tool = "*"
effects = ["none", "read"]
[[allow]]
tool = "create_refund"
[[deny]]
tool = "query_logistics"
reason = "the carrier's system is down"
[[quorum]]
tool = "create_refund"
n = 2
roles = ["finance"]
[[threshold]]
tool = "create_refund"
arg = "amount_cents"
over = 100
tier = "full"
[[require]]
before = "create_refund"
ancestors = ["query_order"]
followed_by = ["query_fulfillment_details"]
[autonomy]
max_steps = 40
"""


def put(here, text, name="policy.toml"):
    (here / name).write_text(text, encoding="utf-8")
    return name


def test_a_good_policy_is_counted_and_hashed(call, here):
    said = policy_module.__doc__ or ""
    example = textwrap.dedent(said[said.index("    schema = 1") :])

    checked = call("policy", "check", put(here, example))

    assert "good (2 allow, 1 deny, 1 require, 1 threshold, 1 quorum, 1 label)" in checked.stderr
    assert len(checked.stdout.strip()) == 64


def test_a_bad_policy_is_refused_with_its_line_and_a_hint(call, here):
    bad = put(here, 'schema = 1\n[[quorum]]\ntool = "pay"\nn = 1\n')

    said = call("policy", "check", bad, code=2).stderr

    assert "line 4" in said
    assert "hint" in said.lower() or "docstring" in said


def test_a_rule_for_a_tool_that_the_agent_does_not_have_is_found(call, here):
    file = put(here, 'schema = 1\n[[deny]]\ntool = "creat_refund"\n')

    assert "creat_refund" in call("policy", "check", file, "--agent", "refund", code=2).stderr
    assert "1 deny" in call("policy", "check", file).stderr


def test_each_step_is_explained_by_the_rule_that_decides(call, here, plan):
    file = write(here, plan)
    how = ("--agent", "refund", "--policy", put(here, MORE), "--json")

    said = json.loads(call("policy", "explain", file, *how, code=9).stdout)

    by = {each["capability"]: each for each in said["steps"]}
    assert by["query_order"]["by"] == "[[allow]] 1: tool = *, effects = ['none', 'read']"
    assert by["query_logistics"]["allowed"] is False
    assert "the carrier's system is down" in by["query_logistics"]["by"]
    assert by["create_refund"]["requires"][0] == "query_order before it: holds"
    assert "missing" in by["create_refund"]["requires"][1]
    assert by["create_refund"]["limits"][0].endswith("→ full")
    assert (said["tier"], said["quorum"], said["quorum_roles"]) == ("full", 2, ["finance"])
    assert said["ceiling"] == "effect irreversible, 40 steps"


def test_the_agents_own_policy_allows_its_own_plan(call, here, plan):
    said = call("policy", "explain", write(here, plan), "--agent", "refund").stdout

    assert "create_refund: allowed" in said
    assert "DENIED" not in said
    assert "tier: " in said
    assert "approvals: 1" in said


def test_a_plan_with_a_cycle_is_explained_as_far_as_it_goes(call, here, plan):
    plan["steps"][0]["after"] = [plan["steps"][-1]["id"]]

    said = call("policy", "explain", write(here, plan), "--agent", "refund", "--json").stdout

    assert len(json.loads(said)["steps"]) == len(plan["steps"])
