"""A plan that rests on what proves false is repaired, or stops at a person; it never goes on."""

from __future__ import annotations

import pytest
from typing_extensions import TypedDict

from plangate import tool
from plangate.agent import Agent
from plangate.graph.payload import Answer
from plangate.replay.drive import replay
from plangate.runtime import Options, Runtime

POLICY = 'schema = 1\nconstants = [10]\n[[allow]]\ntool = "*"\n'
TEMPLATE = """
template: copy
goal: Copy {table}
parameters: [{name: table, type: string}]
assumptions:
  - {id: small, statement: The table fits into one go, source: user,
     rule: steps.S1.output.rows < 100, invalidates: [S2]}
steps:
  - {id: S1, objective: Count the rows, tool: count, args: {table: "${inputs.table}"}}
  - {id: S2, objective: Copy them at once, tool: copy, after: [S1],
     args: {table: "${inputs.table}", batch: 100},
     success: [{id: all, level: L1, claim: All are copied, rule: result.rows > 0}]}
success_criteria: [{id: same, level: L2, claim: The copy has all rows, tool: copied,
                    args: {table: "${inputs.table}"}, rule: observed.rows == steps.S1.output.rows}]
abort_conditions: [{id: a, text: Failures, rule: run.failures >= 3}]
"""
REPAIR = """
repairs:
  - code: assumption:small
    tool: copy
    category: too_large
    hypotheses: [The table has grown]
    confidence: 0.9
    lesson: Count before copying
    scope: local
    replace:
      steps:
        - {id: "{step}b", objective: Copy them in batches, tool: copy,
           args: {table: "{args.table}", batch: 10},
           success: [{id: all, level: L1, claim: All are copied, rule: result.rows > 0}]}
"""
GOAL = {"goal": "Copy users", "inputs": {"table": "users"}}


class Rows(TypedDict):
    rows: int


class Desk:
    def __init__(self, folder, rows, repairs=""):
        self.batches: list[int] = []

        @tool(effect="read")
        def count(table: str) -> Rows:
            """Count rows."""
            return {"rows": rows}

        @tool(effect="read")
        def copied(table: str) -> Rows:
            """Count copied rows."""
            return {"rows": rows if self.batches else 0}

        @tool(effect="write", key="copy:{table}", scope="goal", idempotent=True)
        def copy(table: str, batch: int) -> Rows:
            """Copy rows."""
            self.batches.append(batch)
            return {"rows": rows}

        self.agent = Agent(
            name="copy",
            tools=(count, copied, copy),
            policy=POLICY,
            templates=(TEMPLATE,),
            repairs=repairs,
        )
        self.runtime = Runtime(self.agent, f"sqlite:///{folder}/journal.db", Options())

    def run(self):
        """Approve whatever is asked to be approved; stop at any other question."""
        list(self.runtime.start(GOAL, run_id="r"))
        while asked := self.view.pending_questions:
            if asked[0].kind != "approval":
                break
            self.runtime.answer("r", Answer(decision="approve", by="ann"))
            list(self.runtime.advance("r"))
        return self.view

    @property
    def view(self):
        return self.runtime.view("r")


@pytest.fixture
def desk(tmp_path):
    made = []

    def build(rows, **given):
        made.append(Desk(tmp_path, rows, **given))
        return made[-1]

    yield build
    for each in made:
        each.runtime.close()


def test_what_holds_is_verified_and_the_plan_goes_on(desk):
    made = desk(5)

    view = made.run()

    assert (view.ended.verdict, made.batches) == ("pass", [100])
    assert view.assumed["small"].status == "verified"


def test_what_proves_false_is_repaired_by_the_rule_for_it_and_nothing_was_done_on_it(desk):
    made = desk(500, repairs=REPAIR)

    view = made.run()

    assert (view.ended.ending, view.ended.verdict, made.batches) == ("completed", "pass", [10])
    assert [(each.kind, each.code) for each in view.triggers] == [
        ("assumption", "assumption:small")
    ]
    assert view.reflections[-1].failure_category == "too_large"
    assert list(view.plans) == [1, 2]
    again = replay(made.runtime.journal, "r", made.agent)
    assert [str(each) for each in again.differences] == []


def test_without_a_rule_a_person_is_asked_and_nothing_was_done_on_it(desk):
    made = desk(500)

    view = made.run()

    [asked] = view.pending_questions
    assert (asked.kind, asked.step, made.batches) == ("escalation", "S2", [])
    payload = made.runtime.journal.artifacts.get(asked.payload)
    assert "The table fits into one go" in payload["text"]


def test_a_person_who_says_go_on_does_not_make_it_true(desk):
    made = desk(500)
    made.run()

    made.runtime.answer("r", Answer(decision="retry", by="ann"))
    list(made.runtime.advance("r"))

    assert made.batches == []
    assert made.view.steps["S2"].error_code == "assumption:small"
