from __future__ import annotations

import json

import pytest
import yaml

from plangate.cli.options import _inputs


def write(here, plan, name="plan.json"):
    (here / name).write_text(json.dumps(plan), encoding="utf-8")
    return name


def test_a_made_plan_is_valid_and_starts_no_run(call, here, plan):
    checked = call("plan", "check", write(here, plan), "--agent", "refund", "--json")

    report = json.loads(checked.stdout)
    assert report["valid"]
    assert report["issues"] == []
    assert len(report["content_hash"]) == 64
    assert not (here / ".plangate").exists()


def test_an_invented_tool_is_an_unknown_tool_and_exits_3(call, here, plan):
    plan["steps"][1]["tool"] = "query_logistic"

    checked = call("plan", "check", write(here, plan), "--agent", "refund", "--json", code=3)

    report = json.loads(checked.stdout)
    found = next(each for each in report["issues"] if each["code"] == "unknown_tool")
    assert (found["layer"], found["step"], found["field"]) == (3, "S2", "tool")
    assert "query_logistics" in found["hint"]


def test_all_issues_are_listed_for_a_person_too(call, here, plan):
    plan["steps"][1]["tool"] = "invented"

    checked = call("plan", "check", write(here, plan), "--agent", "refund", code=3)

    assert "unknown_tool" in checked.stdout
    assert "not valid" in checked.stdout


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", 3),
        ("{", 3),
        ("[1]", 3),
        ("null", 3),
        ("steps: 1", 3),
        ('{"a": 1}', 3),
        ("nonsense", 2),
        ("a: [", 2),
        ("a: 1\na: 2", 2),
    ],
)
def test_what_is_no_plan_is_refused_in_words(call, here, text, code):
    (here / "p").write_text(text)

    result = call("plan", "check", "p", "--agent", "refund", "--json", code=code)

    assert ("issues" in result.stdout) == (code == 3)


def test_a_plan_can_be_yaml_and_come_from_stdin(call, here, plan):
    said = call(
        "plan", "check", "-", "--agent", "refund", "--json", stdin=yaml.safe_dump(plan)
    ).stdout

    file = write(here, plan)
    same = json.loads(call("plan", "check", file, "--agent", "refund", "--json").stdout)
    assert json.loads(said)["content_hash"] == same["content_hash"]


def test_a_missing_file_is_named(call):
    result = call("plan", "show", "nowhere.json", code=2)

    assert "error[config]: plan file 'nowhere.json' cannot be read" in result.stderr


def test_a_file_that_is_no_text_is_refused(call, here):
    (here / "p").write_bytes(b"\xff\xfe\x00")

    result = call("plan", "show", "p", code=2)

    assert "is not UTF-8 at byte 0" in result.stderr


def test_a_shown_plan_names_tools_arguments_and_their_sources(call, here, plan):
    shown = call("plan", "show", write(here, plan), "--agent", "refund").stdout

    assert "create_refund [irreversible]" in shown
    assert 'order_id = "ORD-B7K2M9Q4" (user: ${inputs.order_id})' in shown
    assert "(output of S1)" in shown
    assert 'policy_id = "refund" (constant)' in shown
    assert "tier" in shown


def test_an_unchanged_plan_does_not_grow(call, here, plan):
    file = write(here, plan)

    said = call("plan", "diff", file, file, "--agent", "refund", "--json").stdout

    assert json.loads(said)["boundary"] == []
    assert json.loads(said)["kept"] == [step["id"] for step in plan["steps"]]


def test_a_larger_amount_grows_the_boundary_and_exits_4(call, here, plan):
    old = write(here, plan, "old.json")
    plan["inputs"]["amount_cents"] += 1
    new = write(here, plan, "new.json")

    said = call("plan", "diff", old, new, "--agent", "refund", code=4).stdout

    assert "may do more" in said
    assert "amount_cents" in said


def test_wrong_inputs_are_all_named_at_once(call):
    result = call(
        "plan", "make", "--agent", "refund", "--goal", "x", "--input", "order_id=1", code=2
    )

    assert "'amount_cents' is missing" in result.stderr
    assert "'order_id'" in result.stderr
    assert "hint:" in result.stderr


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("a=1", 1),
        ("a=ORD-1", "ORD-1"),
        ('a="1"', "1"),
        ("a=[1]", [1]),
        ("a=b=c", "b=c"),
        ("a=NaN", "NaN"),
        ("a=", ""),
    ],
)
def test_an_input_is_json_where_it_parses_as_json(given, meant):
    assert _inputs(None, None, (given,)) == {"a": meant}


@pytest.mark.parametrize("given", [("novalue",), ("=1",), ("a=1", "a=2")])
def test_an_input_that_is_no_pair_is_a_usage_error(call, given):
    flags = [word for each in given for word in ("--input", each)]

    result = call("plan", "make", "--agent", "refund", "--goal", "x", *flags, code=2)

    assert "error[usage]" in result.stderr


def test_out_writes_the_plan_and_keeps_stdout_free(call, here, plan):
    flags = ("--input", "order_id=ORD-B7K2M9Q4", "--input", "amount_cents=6450")
    made = call(
        "plan", "make", "--agent", "refund", "--goal", "Refund it", *flags, "--out", "out.json"
    )

    assert made.stdout == ""
    assert json.loads((here / "out.json").read_text())["steps"] == plan["steps"]


def test_control_characters_of_a_plan_are_made_visible(call, here, plan):
    plan["goal"] = "Refund\x1b[2K\u202e it"

    shown = call("plan", "show", write(here, plan)).stdout

    assert "\x1b[2K" not in shown
    assert "\\x1b[2K\\u202e" in shown


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1" + "0" * 400, "9007199254740993"])
@pytest.mark.parametrize("command", ["check", "show", "estimate", "preview"])
def test_a_number_that_json_does_not_have_is_an_issue_of_layer_one(call, here, command, number):
    output = f'{{"maxItems": {number}}}'
    step = {"id": "S1", "objective": "Write", "kind": "model", "output": {}}
    said = {"goal_id": "g", "goal": "Write", "task_type": "t", "author": {"kind": "human"}}
    (here / "plan.json").write_text(json.dumps({**said, "steps": [step]}).replace("{}", output))

    agent = () if command == "show" else ("--agent", "refund")
    result = call("plan", command, "plan.json", *agent, code=3)

    assert "exact JSON form" in result.output or "not a plan" in result.output


def test_the_plan_of_a_run_that_reached_its_goal_becomes_a_template(call, here):
    flags = ("--scenario", "no-logistics-record", "--yes", "--json")
    run_id = json.loads(call("demo", "refund", *flags).stdout)["run_id"]
    named = ("plan", "promote", run_id, "--agent", "refund", "--name")

    made = yaml.safe_load(call(*named, "unshipped").stdout)
    written = call(*named, "unshipped", "--out", "unshipped.yaml")

    ids = [step["id"] for step in made["steps"]]
    assert ids == ["S1", "S2a", "S2b", "S3", "S4", "S5", "S6", "S7"]
    assert yaml.safe_load((here / "unshipped.yaml").read_text()) == made
    assert "add it to the agent's templates" in written.stderr
    assert "has a template 'refund'" in call(*named, "refund", code=2).stderr


def test_a_run_that_reached_nothing_proves_nothing(call):
    flags = ("--scenario", "policy-refuses", "--yes", "--json")
    run_id = json.loads(call("demo", "refund", *flags).stdout)["run_id"]

    refused = call("plan", "promote", run_id, "--agent", "refund", "--name", "x", code=2)

    assert "has not reached its goal (declined, fail)" in refused.stderr
