"""What nothing else can decide, a person does: of a step, of the goal, through each door."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from typing_extensions import TypedDict

from plangate import tool
from plangate.agent import Agent
from plangate.graph.payload import Answer, read_answer
from plangate.journal.points import watch
from plangate.nodes.decide import Refused
from plangate.plan.errors import ConfigError
from plangate.replay.drive import replay as replay_run
from plangate.runtime import Options, Runtime
from tests.engine.models import GOOD, Scripted

POLICY = 'schema = 1\n[[allow]]\ntool = "*"\n'
TEMPLATE = """
template: claim
goal: Keep the claim of {who}
parameters: [{name: who, type: string}]
steps:
  - {id: S1, objective: Read the mail, tool: mail, args: {who: "${inputs.who}"}}
  - id: S2
    kind: model
    objective: Find who asks, and for how much, in cents
    args: {mail: "${S1.body}"}
    output:
      type: object
      properties:
        who: {type: string, maxLength: 40}
        cents: {type: integer, minimum: 0}
      required: [who, cents]
    success: [{id: fair, level: L4, claim: The amount is fair, rule: result.cents < 100}]
  - {id: S3, objective: Keep it, tool: keep, args: {who: "${S2.who}", cents: "${S2.cents}"},
     success: [{id: kept, level: L2, claim: It is in the book, tool: book,
                args: {who: "${inputs.who}"}, rule: observed.cents == result.cents}]}
success_criteria: [{id: content, level: L4, claim: Ann is content, rule: steps.S2.output.cents > 0}]
abort_conditions: [{id: a, text: Failures, rule: run.failures >= 3}]
"""
GOAL = {"goal": "Keep what Ann claims", "inputs": {"who": "Ann"}}
YES = Answer(decision="approve", by="ann")


class Mail(TypedDict):
    body: str


class Kept(TypedDict):
    cents: int


class Claims:
    """The agent, its book, and a model that finds the claim."""

    def __init__(self, folder, policy="", judge=None, template=TEMPLATE):
        self.book: dict[str, int] = {}
        self.calls: list[str] = []
        self.model = Scripted([GOOD])

        @tool(effect="read")
        def mail(who: str) -> Mail:
            """Read the newest mail of somebody."""
            self.calls.append("mail")
            return {"body": f"{who} wants 5 cents back"}

        @tool(effect="read")
        def book(who: str) -> Kept:
            """Look into the book."""
            return {"cents": self.book.get(who, -1)}

        @tool(effect="write", key="keep:{who}", scope="goal", idempotent=True)
        def keep(who: str, cents: int) -> Kept:
            """Keep a claim."""
            self.calls.append("keep")
            self.book[who] = cents
            return {"cents": cents}

        self.agent = Agent(
            name="claims",
            tools=(mail, book, keep),
            policy=POLICY + policy,
            templates=(template,),
            step_model=self.model,
        )
        self.url = f"sqlite:///{folder}/journal.db"
        self.runtime = Runtime(self.agent, self.url, Options(judge=judge))

    def start(self):
        list(self.runtime.start(GOAL, run_id="r"))
        self.runtime.answer("r", YES)
        return self.go_on()

    def go_on(self):
        list(self.runtime.advance("r"))
        return self.view

    @property
    def view(self):
        return self.runtime.view("r")

    def judge(self, says, evidence="I looked", **more):
        said = {"decision": "judge", "by": "bob", "answer": {"says": says, "evidence": evidence}}
        got = self.runtime.answer("r", Answer.model_validate({**said, **more}))
        return got if isinstance(got, Refused) else self.go_on()

    def payload(self):
        [asked] = self.view.pending_questions
        return self.runtime.journal.artifacts.get(asked.payload)


@pytest.fixture
def claims(tmp_path):
    made = []

    def build(**given):
        made.append(Claims(tmp_path, **given))
        return made[-1]

    yield build
    for each in made:
        each.runtime.close()


def test_a_check_of_a_step_and_one_of_the_goal_wait_for_a_person_and_nothing_is_done_twice(claims):
    desk = claims()

    view = desk.start()
    [asked] = view.pending_questions
    assert (asked.kind, asked.step, asked.check) == ("verdict", "S2", "fair")
    shown = desk.payload()
    assert shown["details"]["result"] == {"who": "Ann", "cents": 5}
    assert shown["details"]["given"] == {"mail": "Ann wants 5 cents back"}
    assert "judge" in shown["allowed_decisions"]
    assert desk.book == {}

    view = desk.judge("pass", "5 cents is what the price list says")
    [asked] = view.pending_questions
    assert (asked.kind, asked.step, asked.check, desk.book) == (
        "verdict",
        None,
        "content",
        {"Ann": 5},
    )
    assert desk.payload()["details"]["steps"] == {"S2": {"who": "Ann", "cents": 5}}

    view = desk.judge("pass", "she said so on the phone")
    assert (view.ended.ending, view.ended.verdict) == ("completed", "pass")
    assert (desk.calls, len(desk.model.asked)) == (["mail", "keep"], 1)
    [word] = view.verdicts["S2"]
    assert (word.says, word.level, word.verifier, word.why) == (
        "pass", "L4", "person:bob", "5 cents is what the price list says",
    )  # fmt: skip
    assert [each.ref for each in word.evidence] == ["decision://r-q2"]
    [goal] = view.goal_verified.verdicts
    assert (goal.verifier, goal.why) == ("person:bob", "she said so on the phone")


def test_a_person_who_says_fail_fails_the_step_and_what_waits_for_it_does_not_run(claims):
    desk = claims()
    desk.start()

    view = desk.judge("fail", "the price list says 4")

    assert view.steps["S2"].status == "failed"
    assert view.steps["S2"].error_code == "check_failed:fair"
    assert desk.book == {}


def test_what_a_person_failed_is_done_anew_when_they_ask_for_it(claims):
    desk = claims()
    desk.start()
    desk.judge("fail", "the price list says 4")
    desk.model.script[:] = [json.dumps({"who": "Ann", "cents": 4})]

    desk.runtime.answer("r", Answer(decision="retry", by="bob"))
    view = desk.go_on()

    assert len(desk.model.asked) == 2
    assert (view.pending_questions[0].kind, desk.payload()["details"]["result"]["cents"]) == (
        "verdict", 4,
    )  # fmt: skip
    assert desk.judge("pass", "that is what it says").steps["S2"].status == "done"


def test_a_goal_that_a_person_failed_is_asked_about_again_when_they_look_again(claims):
    desk = claims()
    desk.start()
    desk.judge("pass")
    desk.judge("fail", "she was not on the phone yet")

    desk.runtime.answer("r", Answer(decision="retry", by="bob"))
    view = desk.go_on()

    assert (view.pending_questions[0].kind, view.pending_questions[0].check) == (
        "verdict", "content",
    )  # fmt: skip
    assert desk.judge("pass", "now she was").ended.verdict == "pass"
    assert desk.calls == ["mail", "keep"]


def test_what_a_rule_refutes_is_no_question_for_a_person(claims):
    desk = claims(template=TEMPLATE.replace("result.cents < 100", "result.cents < 5"))

    view = desk.start()

    assert view.verdicts["S2"][0].says == "fail"
    assert [each.kind for each in view.questions.values()] != ["approval", "verdict"]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"answer": {"says": "pass"}}, "does not say what it rests on"),
        ({"answer": {"says": "pass", "evidence": "  "}}, "does not say what it rests on"),
        ({"answer": {"says": "unknown", "evidence": "x"}}, "decided as"),
        ({"answer": None, "comment": "x"}, "decided as"),
        ({"decision": "approve"}, "is not one of judge, retry, stop"),
        ({"decision": "settle", "answer": {"state": "done"}}, "is not one of judge, retry, stop"),
    ],
)
def test_a_word_without_ground_or_of_another_kind_decides_nothing(claims, answer, why):
    desk = claims()
    desk.start()

    got = desk.judge("pass", **answer)

    assert isinstance(got, Refused)
    assert why in got.why
    assert desk.view.pending_questions[0].kind == "verdict"


def test_only_the_roles_of_the_policy_decide_a_check(claims):
    desk = claims(policy='[verifier]\nroles = ["auditor"]\n')
    desk.start()

    assert "auditor" in desk.judge("pass").why
    assert desk.judge("pass", role="auditor").steps["S2"].status == "done"


def test_a_judge_that_is_not_sure_leaves_it_to_a_person(claims):
    unsure = json.dumps(
        {"says": "pass", "confidence": 0.6, "cites": ["result"], "failed": [], "why": "perhaps"}
    )
    template = TEMPLATE.replace("id: fair, level: L4", "id: fair, level: L3")
    desk = claims(
        judge=Scripted([unsure], model_name="other"),
        template=template,
    )

    view = desk.start()

    assert view.verdicts["S2"][0].confidence == 0.6
    assert "perhaps" in desk.payload()["text"]
    assert desk.judge("pass").steps["S2"].status == "done"


def test_the_judge_of_an_agent_decides_wherever_it_runs(claims):
    sure = json.dumps(
        {"says": "pass", "confidence": 1, "cites": ["result"], "failed": [], "why": "it is"}
    )
    desk = claims(template=TEMPLATE.replace("id: fair, level: L4", "id: fair, level: L3"))
    own = replace(desk.agent, judge=Scripted([sure], model_name="other"))
    desk.runtime = Runtime(own, desk.url, Options())

    view = desk.start()

    assert view.verdicts["S2"][0].verifier.startswith("judge@")
    assert desk.book == {"Ann": 5}
    with pytest.raises(ConfigError, match="judge= is of type str"):
        replace(desk.agent, judge="openai:x")


def test_to_look_again_asks_the_model_again_and_its_other_answer_is_another_question(claims):
    desk = claims()
    desk.start()
    desk.model.script[:] = [json.dumps({"who": "Ann", "cents": 6})]

    desk.runtime.answer("r", Answer(decision="retry", by="bob"))
    desk.go_on()

    assert desk.payload()["details"]["result"]["cents"] == 6


def test_a_run_that_a_person_judged_is_driven_alike(claims):
    desk = claims()
    desk.start()
    desk.judge("pass")
    desk.judge("pass")

    again = replay_run(desk.runtime.journal, "r", desk.agent)

    assert [str(each) for each in again.differences] == []


ASKS = """
  - {id: S0, objective: Ask, kind: human,
     question: {audience: customer, type: text, text: "How much is it?"},
     success: [{id: clear, level: L4, claim: The answer is clear}]}
  - {id: S1,"""


def test_a_check_of_what_a_person_answered_shows_the_answer_and_asks_nobody_twice(claims):
    template = TEMPLATE.replace("\n  - {id: S1,", ASKS).replace(
        "tool: mail,", "tool: mail, after: [S0],"
    )
    desk = claims(template=template)
    desk.start()
    said = Answer(decision="answer", answer={"answer": "five"}, by="ann")

    desk.runtime.answer("r", said)
    desk.go_on()
    assert desk.payload()["details"]["result"] == {"answer": "five", "by": "ann"}
    view = desk.judge("pass", "five is a number")

    assert view.steps["S0"].status == "done"
    assert [each.kind for each in view.questions.values()][:3] == ["approval", "step", "verdict"]
    assert view.verdicts["S0"][0].verifier == "person:bob"


@pytest.mark.parametrize(
    ("typed", "says"), [("pass: on the phone", "pass"), ("fail: she never said so", "fail")]
)
def test_a_line_of_a_chat_client_is_a_word_with_its_ground(claims, typed, says):
    desk = claims()
    desk.start()

    got = read_answer([{"type": "response", "args": typed}], desk.payload())

    assert (got.decision, got.answer["says"]) == ("judge", says)
    assert got.answer["evidence"] == typed.partition(": ")[2]


def test_a_second_word_on_the_same_check_comes_too_late(claims):
    desk = claims()
    desk.start()
    [asked] = desk.view.pending_questions
    desk.judge("pass")

    late = desk.runtime.answer(asked.question_id, Answer(decision="judge", by="eve"))

    assert "decided already: judge by bob" in late.why


class Killed(BaseException):
    """A process dies; nothing after it is done."""


@pytest.mark.parametrize("point", ["decision.read", "decision.followed", "step.ended"])
def test_a_word_is_not_lost_with_the_process_that_took_it_in(claims, point):
    desk = claims()
    desk.start()
    said = {"says": "pass", "evidence": "I looked"}
    desk.runtime.answer("r", Answer(decision="judge", by="bob", answer=said))

    def dies(reached):
        if reached == point:
            watch(None)
            raise Killed

    watch(dies)
    with pytest.raises(Killed):
        desk.go_on()
    watch(None)

    view = desk.go_on()

    assert (view.steps["S2"].status, len(desk.model.asked)) == ("done", 1)
    assert [each.kind for each in view.questions.values()] == ["approval", "verdict", "verdict"]
    assert desk.judge("pass").ended.verdict == "pass"
    assert desk.calls == ["mail", "keep"]
