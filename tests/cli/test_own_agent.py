from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from plangate import Agent, create_plan_agent
from plangate.plan.errors import ConfigError

PAGE = Path(__file__).parents[2] / "docs/howto/first-agent.md"
MODULE = re.search(
    r"^```python\n(# file: seats.py\n.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE
)
GOAL = ("--goal", "A seat", "--input", "seat=12A", "--input", "holder=Bo")


@pytest.fixture
def write(here, monkeypatch):
    """Write a module, with changes to the tutorial's agent; it is forgotten at the end."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    names = []

    def make(name, *changes, text=MODULE[1]):
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        (here / f"{name}.py").write_text(text)
        names.append(name)
        return f"{name}:agent"

    yield make
    for name in names:
        sys.modules.pop(name, None)


def test_the_hint_of_a_run_that_waits_names_the_agent(call, write):
    agent = write("seats_a")

    said = call("run", "start", "--agent", agent, *GOAL, code=11).stderr

    command = re.search(r"answer with: plangate (.*)", said)[1].split()
    assert command[-2:] == ["--agent", agent]
    call(*command, "--yes")


def test_an_answer_through_another_agent_is_refused_and_costs_nothing(call, write):
    agent = write("seats_b")
    call("run", "start", "--agent", agent, *GOAL, code=11)

    wrong = call("approve", "--yes", "--agent", "refund", code=2)

    assert "with other tools" in wrong.stderr
    call("approve", "--yes", "--agent", agent)


def test_an_agent_by_another_name_with_the_same_tools_is_the_same(call, write):
    call("run", "start", "--agent", write("seats_c"), *GOAL, code=11)

    renamed = write("seats_d", ('name="seats"', 'name="chairs"'))

    call("approve", "--yes", "--agent", renamed)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("def (", "SyntaxError"),
        ("\n\n1 / 0", "at line 3: ZeroDivisionError"),
        ("import no_such_package", "No module named 'no_such_package'"),
        ("from plangate import Agent\nagent = Agent(name='x', tools=())", "'policy'"),
        ("agent = 1", "is of type int, not a plangate Agent"),
        ("other = 1", "has no attribute 'agent'"),
    ],
)
def test_a_mistake_in_the_callers_module_is_no_traceback_of_ours(call, write, text, says):
    result = call("plan", "make", "--agent", write("broken", text=text), *GOAL, code=2)

    assert says in result.stderr
    assert "hint:" in result.stderr


@pytest.mark.parametrize("name", ["seats", "seats.py", "./seats.py", "seats:", "seats.py:agent"])
def test_a_file_named_as_an_agent_gets_the_name_that_works(call, name):
    result = call("plan", "make", "--agent", name, *GOAL, code=2)

    assert "as seats:agent." in result.stderr


@pytest.mark.parametrize("name", [":agent", ":", "", "a b:c"])
def test_a_name_that_is_none_is_refused_in_words(call, name):
    call("plan", "make", "--agent", name, *GOAL, code=2)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"policy": "policy.toml"}, 'Path("policy.toml").read_text()'),
        ({"policy": Path("rules.toml")}, 'Path("policy.toml").read_text()'),
        ({"templates": "template: x"}, "templates=[...]"),
        ({"templates": ["refund.yaml"]}, 'Path("refund.yaml").read_text()'),
        ({"tools": print}, "tools=[...]"),
    ],
)
@pytest.mark.parametrize("build", [Agent, create_plan_agent])
def test_a_file_or_a_single_thing_in_the_wrong_place_is_refused_at_once(build, given, says):
    with pytest.raises(ConfigError) as caught:
        build(**{"name": "x", "tools": [], "policy": "schema = 1", **given})

    assert says in caught.value.hint


@pytest.mark.parametrize("role", ["model", "critic"])
@pytest.mark.parametrize("given", ["gpt-5", [print]])
def test_what_is_no_chat_model_is_refused_at_once(role, given):
    with pytest.raises(ConfigError, match="not a chat model"):
        create_plan_agent(policy="schema = 1", **{role: given})
