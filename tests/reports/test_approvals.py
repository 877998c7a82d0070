"""Reports of theme B: what people said, what it covers, and what runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command
from typing_extensions import TypedDict

from plangate import Found, Undo, tool
from plangate.journal.decisions import Decision
from plangate.nodes.decide import Refused
from plangate.plan.errors import ConfigError, WaitingForPerson
from tests.door import test_model
from tests.door.holds import desk
from tests.door.ledgers import WORLD, Office, office
from tests.door.letters import Post, given, on
from tests.models.fake_openai import Said, serving

YES = Command(resume={"decision": "approve", "by": "ann"})


@pytest.fixture
def post(tmp_path: Path) -> Iterator[Post]:
    made = Post(tmp_path)
    yield made
    made.close()


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Office]:
    with office(tmp_path) as made:
        yield made


# Report 2.
def test_a_model_that_says_something_else_by_now_is_not_asked_after_the_approval(tmp_path):
    test_model.kept.clear()
    url = f"sqlite:///{tmp_path}/journal.db"
    first = test_model.draft()
    other = first.replace('"source": "input"', '"source": "literal"').replace(
        '"value_json": null, "input": "text"', '"value_json": "\\"poison\\"", "input": null'
    )
    with serving(Said(content=first), Said(content=other)) as fake:
        test_model.agent(fake, url).invoke(test_model.GOAL, test_model.CONFIG)
        done = test_model.agent(fake, url).invoke(YES, test_model.CONFIG)

    assert (first != other, len(fake.requests)) == (True, 1)
    assert (done["verdict"], test_model.kept) == ("pass", ["milk"])


class Both(TypedDict, total=False):
    ann: str
    bob: str


def parent(post: Post) -> Any:
    """Two agents side by side in one graph, each with a run of its own."""
    inner = post.open().graph.copy()
    inner.checkpointer = None
    outer = StateGraph(Both)
    for name in ("ann", "bob"):

        def tell(_: Both, name: str = name) -> dict[str, str]:
            return {name: inner.invoke(given(name))["verdict"]}

        outer.add_node(f"tell_{name}", tell)
        outer.add_edge(START, f"tell_{name}")
        outer.add_edge(f"tell_{name}", END)
    return outer.compile(checkpointer=InMemorySaver())


def asked(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the interrupts by whom the letter is for."""
    waiting = state.get("__interrupt__", ())
    return {"ann" if "ann" in each.value["goal"] else "bob": each for each in waiting}


# Report 9.
def test_a_bare_yes_to_two_agents_in_one_graph_is_refused_and_nothing_runs(post):
    graph = parent(post)
    graph.invoke({}, on("t"))

    with pytest.raises(RuntimeError, match="interrupt id"):
        graph.invoke(YES, on("t"))

    assert post.sent == []
    assert {run.status for run in post.opened[0].journal.runs.list()} == {"waiting"}


# Report 8.
@pytest.mark.parametrize(
    "rounds",
    [[["ann"], ["bob"]], [["bob"], ["ann"]], [["ann", "bob"]]],
    ids=["ann first", "bob first", "at once"],
)
def test_two_agents_in_one_graph_are_answered_by_id_in_any_order_or_at_once(post, rounds):
    graph = parent(post)
    state: Mapping[str, Any] = graph.invoke({}, on("t"))
    waiting = asked(state)
    says = {"ann": {"decision": "reject"}, "bob": {"decision": "approve"}}

    for names in rounds:
        before = asked(state).keys()
        answers = {waiting[name].id: {**says[name], "by": "eve"} for name in names}
        state = graph.invoke(Command(resume=answers), on("t"))
        assert asked(state).keys() == before - {*names}

    assert (state["ann"], state["bob"], post.sent) == ("fail", "pass", ["bob"])


# Report 8.
def test_an_answer_that_names_another_question_is_refused_where_it_came_and_says_so(post):
    graph = parent(post)
    waiting = asked(graph.invoke({}, on("t")))
    other = waiting["bob"].value["question_id"]
    crossed = {"decision": "approve", "question_id": other}

    again = asked(graph.invoke(Command(resume={waiting["ann"].id: crossed}), on("t")))

    assert post.sent == []
    assert other in again["ann"].value["last_answer"]["says"]
    assert "last_answer" not in again["bob"].value


REFUSED = [
    ({"decision": "approve", "question_id": "other-q1"}, "it answers other-q1"),
    ({"decisions": [{"type": "approve"}, {"type": "reject"}]}, "one decision is expected, and 2"),
    ({"decision": "approve", "plan_hash": "00"}, "another version of the plan"),
    ("yes", "str is not an answer"),
    ({"decision": "aprove"}, "not understood"),
]


# Reports 8, 9, 39.
@pytest.mark.parametrize(("said", "why"), REFUSED, ids=[why for _, why in REFUSED])
def test_whoever_gave_an_answer_that_does_not_count_is_told_why_with_the_question(post, said, why):
    graph = post.open().graph
    first = graph.invoke(given(), on("t"))["__interrupt__"][0].value

    again = graph.invoke(Command(resume=said), on("t"))["__interrupt__"][0].value

    assert again["last_answer"]["counts"] is False
    assert why in again["last_answer"]["says"]
    for shown in (again, again["action_requests"][0]):
        assert shown["description"].startswith("**The last answer was refused:** ")
    changed = {key for key in again if again[key] != first.get(key)}
    assert changed == {"last_answer", "description", "action_requests"}
    assert graph.invoke(YES, on("t"))["verdict"] == "pass"
    assert post.sent == ["Ann"]


def test_the_first_of_two_who_must_approve_is_told_that_it_counts_and_is_not_enough(post):
    two = '[[quorum]]\ntool = "send"\nn = 2\n'
    graph = post.open(policy=f'schema = 1\n[[allow]]\ntool = "*"\n{two}').graph
    graph.invoke(given(), on("t"))

    again = graph.invoke(YES, on("t"))["__interrupt__"][0].value

    assert again["last_answer"]["counts"] is True
    assert again["last_answer"]["says"].startswith("1 of 2 approvals")
    assert post.sent == []


def test_an_answer_after_another_goal_was_refused_still_counts_and_for_the_first_goal(post):
    graph = post.open().graph
    first = graph.invoke(given(), on("t"))
    with pytest.raises(WaitingForPerson):
        graph.invoke(given("Bob"), on("t"))

    done = graph.invoke(YES, on("t"))

    assert (done["run_id"], done["verdict"], post.sent) == (first["run_id"], "pass", ["Ann"])


@pytest.mark.parametrize("run_id", [5, True, ["r"], {"r": 1}, 1.5], ids=str)
def test_a_run_id_that_is_no_text_is_named_and_leaves_the_thread_free(post, run_id):
    graph = post.open().graph

    with pytest.raises(ConfigError, match="run_id is of type"):
        graph.invoke({**given(), "run_id": run_id}, on("t"))

    assert graph.invoke(given(), on("t"))["__interrupt__"]


# Report 10.
def test_while_a_plan_is_made_anew_nothing_of_the_new_one_runs_before_it_is_approved(tmp_path):
    test_model.kept.clear()
    url = f"sqlite:///{tmp_path}/journal.db"
    shell = test_model.draft("shell")
    with serving(Said(content=test_model.draft()), Said(content=shell),
                 Said(content=test_model.draft())) as fake:  # fmt: skip
        planner = test_model.agent(fake, url)
        planner.invoke(test_model.GOAL, test_model.CONFIG)
        no = {"decision": "changes", "comment": "do not write anything", "by": "ann"}
        state = planner.invoke(Command(resume=no), test_model.CONFIG)

    view = test_model.view_of(url)
    assert [each.code for each in view.validated[2].issues if each.severity == "error"] == [
        "unknown_tool"
    ]
    assert state["__interrupt__"][0].value["plan_version"] == 3
    assert (test_model.kept, view.attempts) == ([], {})


# Report 10.
def test_a_tool_that_does_not_say_what_it_does_to_the_world_cannot_be_made():
    with pytest.raises((TypeError, ConfigError), match="effect"):

        @tool()  # type: ignore[call-arg]
        def shell(command: str) -> Booking:
            """Run a command."""
            return Booking(command, 0)


BOOKED: dict[str, int] = {}


@dataclass
class Booking:
    name: str
    cents: int


@tool(effect="read")
def booking(name: str) -> Booking:
    """Look at a booking."""
    return Booking(name, BOOKED.get(name, 0))


def is_booked(_key: str, args: Mapping[str, Any], _context: object) -> Found:
    return Found(args["name"] in BOOKED)


@tool(effect="write", key="cancel:{name}", scope="goal", reconcile=is_booked)
def cancel(name: str) -> Booking:
    """Cancel a booking."""
    return Booking(name, BOOKED.pop(name, 0))


@tool(effect="write", key="book:{name}", scope="goal", reconcile=is_booked,
      undo=Undo(tool="cancel", look="booking", only_if="result.cents > 0",
                gone="observed.cents == 0"))  # fmt: skip
def book(name: str, cents: int) -> Booking:
    """Book something."""
    BOOKED[name] = cents
    return Booking(name, cents)


BOOK = """
template: booking
goal: Book {name}
parameters: [{name: name, type: string}, {name: cents, type: integer, min: 1, max: 5000}]
steps:
  - {id: S1, objective: Book it, tool: book, args: {name: "${inputs.name}",
     cents: "${inputs.cents}"},
     success: [{id: there, level: L2, claim: It is booked, tool: booking,
                args: {name: "${inputs.name}"}, rule: observed.cents == inputs.cents}]}
success_criteria: [{id: booked, level: L2, claim: It is booked, tool: booking,
                    args: {name: "${inputs.name}"}, rule: observed.cents == inputs.cents}]
"""
LIMIT = """schema = 1
[[allow]]
tool = "*"
[[threshold]]
tool = "book"
arg = "cents"
over = 500
tier = "selective"
"""


# Report 10.
def test_a_plan_in_place_of_one_that_a_person_turned_down_is_shown_even_if_it_could_run_unasked(
    tmp_path,
):
    BOOKED.clear()
    parts = {"tools": (booking, book, cancel), "templates": (BOOK,), "policy": LIMIT}
    with desk(tmp_path, **parts) as made:
        known = made.start(inputs={"name": "a", "cents": 100})
        assert made.go(known, "approve").ended.verdict == "pass"
        unasked = made.start(inputs={"name": "b", "cents": 100})
        assert made.runtime.view(unasked).ended.verdict == "pass"
        run_id = made.start(inputs={"name": "c", "cents": 900})

        view = made.go(run_id, "edit", edits=({"inputs": {"cents": 100}},))

        assert (view.version, view.validated[2].tier) == (2, "selective")
        assert "ann asked for it" in view.validated[2].reasons[0]
        assert "c" not in BOOKED
        assert made.go(run_id, "approve").ended.verdict == "pass"
        assert BOOKED["c"] == 100


# Report 11, and row 13 of the sources; within the run: `tests/engine/test_denials.py`.
def test_what_was_denied_is_denied_for_its_run_and_a_new_goal_may_be_given_it(shop):
    run_id = shop.start()
    others = dict.fromkeys(("S2", "S3", "S5"), "deny")
    shop.say(run_id, steps={**others, "S4": "approve"})
    view = shop.go(run_id)
    assert WORLD.done == ["pay tax 50"]
    assert (view.ended.ending, view.steps["S2"].error_code) == ("declined", "step_not_approved")

    WORLD.done.clear()
    again = shop.start()
    shop.say(again)

    assert shop.go(again).ended.verdict == "pass"
    assert "pay rent 100" in WORLD.done


LESS = {"step": "S2", "args": {"cents": 60}}


# Report 17.
def test_what_a_person_changed_is_said_to_the_reflector_and_in_the_report_and_is_what_ran(shop):
    run_id = shop.start(cents=1000)
    shop.say(run_id, "edit", edits=(LESS,))
    shop.go(run_id)
    WORLD.silent = True
    shop.say(run_id)
    shop.go(run_id)

    [reflected] = shop.events(run_id, "reflected")[:1]
    assert reflected.people == ('ann changed S2.cents: 1000 (from "${inputs.cents}") -> 60',)
    shop.say(run_id, "stop")
    ended = shop.go(run_id).ended
    report = shop.runtime.journal.artifacts.get(ended.report)
    assert report["changed_by_people"] == list(reflected.people)
    keys = {row.business_key for row in shop.runtime.journal.ledger.list(run_id=run_id)}
    assert "pay:rent:60" in keys
    assert "pay:rent:1000" not in keys
    assert "pay rent 1000" not in WORLD.done


# Report 17.
def test_a_plan_that_brings_the_old_amount_back_after_an_edit_needs_a_fresh_approval(tmp_path):
    test_model.kept.clear()
    url = f"sqlite:///{tmp_path}/journal.db"
    with serving(Said(content=test_model.draft())) as fake:
        planner = test_model.agent(fake, url)
        planner.invoke(test_model.GOAL, test_model.CONFIG)
        edit = {"decision": "edit", "edits": [{"step": "S1", "args": {"text": "tea"}}], "by": "ann"}
        planner.invoke(Command(resume=edit), test_model.CONFIG)
        more = {"decision": "changes", "comment": "once more", "by": "ann"}
        state = planner.invoke(Command(resume=more), test_model.CONFIG)

    payload = state["__interrupt__"][0].value
    assert (payload["plan_version"], payload["diff"]["changed_args"]) == (3, ["S1.text"])
    assert payload["steps"][0]["args"] == {"text": "milk"}
    assert test_model.kept == []


# Report 39.
def test_approve_deny_and_edit_in_one_review_are_an_edit_and_then_a_review_of_its_version(shop):
    run_id = shop.start()
    mixed = {"S2": "approve", "S3": "approve", "S4": "deny", "S5": "deny"}
    refused = [
        shop.say(run_id, "approve", steps=mixed, edits=(LESS,)),
        shop.say(run_id, "edit", steps=mixed, edits=(LESS,)),
    ]
    assert all(isinstance(each, Refused) for each in refused)
    assert "an edit is a decision of its own" in refused[0].why
    assert WORLD.done == []

    assert isinstance(shop.say(run_id, "edit", edits=(LESS,)), Decision)
    shop.go(run_id)
    shop.say(run_id, steps=mixed)
    view = shop.go(run_id)

    assert sorted(WORLD.done) == ["mail ann", "pay rent 60"]
    assert {step: seen.why for step, seen in view.steps.items() if seen.status == "cancelled"} == {
        "S4": "denied by ann",
        "S5": "denied by ann",
    }
    assert view.ended.ending == "declined"
    assert shop.asked(shop.start())["kind"] == "approval"
