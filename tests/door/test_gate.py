from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from plangate.graph.payload import Answer
from plangate.nodes.decide import Refused
from plangate.plan.errors import ConfigError, Denied, RunBusy
from plangate.plan.facts import Rights


def say(**said) -> Answer:
    return Answer.model_validate({"by": "ann", **said})


APPROVE = {"decision": "approve"}
REFUSED = [
    ("another plan", {**APPROVE, "plan_hash": "0" * 64}, "another version"),
    ("another question", {**APPROVE, "question_id": "run_x-q9"}, "is asked"),
    ("a word of another question", {"decision": "stop"}, "is not one of"),
    ("an answer to a question", {"decision": "answer", "answer": {"a": 1}}, "is not one of"),
    ("a step that is not there", {**APPROVE, "steps": {"S9": "approve"}}, "no step S9"),
    ("a review that leaves one out", {**APPROVE, "steps": {"S7": "deny"}}, "missing: S6"),
    ("a review that denies all", {**APPROVE, "steps": {"S6": "deny"}}, "reject"),
    ("steps beside a no", {"decision": "reject", "steps": {"S6": "deny"}}, "no single steps"),
    ("an edit beside a yes", {**APPROVE, "edits": ({"step": "S6", "args": {}},)}, "no edits"),
    ("an empty edit", {"decision": "edit"}, "without a change"),
    ("an edit of nothing known", {"decision": "edit", "edits": ({},)}, "an operation is one of"),
    ("a comment for a template", {"decision": "changes", "comment": "less"}, "cannot use comments"),
    ("a hand-over to nobody", {"decision": "escalate"}, "no answer object"),
    ("a read that acts", {"decision": "request_more_info", "answer": {"tool": "create_refund"}},
     "acts"),
]  # fmt: skip


def test_an_answer_that_does_not_fit_changes_nothing_and_says_why(shop):
    run_id = shop.start("straightforward")
    before = shop.runtime.view(run_id).seq

    for name, said, why in REFUSED:
        got = shop.runtime.answer(run_id, say(**said))

        assert isinstance(got, Refused), name
        assert why in got.why, name
    assert shop.runtime.journal.decisions.of_run(run_id) == []
    assert shop.runtime.view(run_id).seq == before


def test_an_answer_in_the_wrong_order_is_for_a_question_that_is_not_asked_yet(shop):
    run_id = shop.start("straightforward")

    with pytest.raises(ConfigError, match="names no single question"):
        shop.runtime.answer(f"{run_id}-q2", say(decision="answer", answer={"confirmed": True}))


def test_of_twenty_answers_at_once_one_counts_and_all_others_learn_which(shop):
    run_id = shop.start("straightforward")
    ready, got = threading.Barrier(20), list[object]()

    def decide(n: int) -> None:
        decision = "approve" if n % 2 else "reject"
        ready.wait()
        got.append(shop.runtime.answer(f"{run_id}-q1", say(decision=decision, by=f"p{n}")))

    threads = [threading.Thread(target=decide, args=(n,)) for n in range(20)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    refused = [each for each in got if isinstance(each, Refused)]
    winner = next(each for each in got if not isinstance(each, Refused))
    assert len(refused) == 19
    assert all(f"{winner.decision} by {winner.by}" in each.why for each in refused)


def test_a_late_answer_is_refused_and_the_question_is_asked_again_under_a_new_id(shop):
    run_id = shop.start("straightforward")
    question = shop.runtime.question(run_id)[1]
    late = question.expires_at + timedelta(seconds=1)
    later = shop.another()
    object.__setattr__(later.kit, "now", lambda: late)

    got = later.answer(run_id, say(**APPROVE))
    for _ in later.advance(run_id):
        pass

    assert isinstance(got, Refused)
    view = shop.runtime.view(run_id)
    assert view.decisions[f"{run_id}-q1"].decision == "expired"
    assert [each.question_id for each in view.pending_questions] == [f"{run_id}-q2"]
    later.close()


def test_an_approval_that_expired_before_the_effect_is_asked_for_again(shop):
    run_id = shop.start("straightforward")
    shop.answer(run_id)
    for _ in shop.runtime.advance(run_id):
        pass
    shop.answer(run_id)  # the customer's confirmation; the approval was an hour's
    later = shop.another()
    now = shop.runtime.kit.now() + timedelta(hours=2)
    object.__setattr__(later.kit, "now", lambda: now)

    for _ in later.advance(run_id):
        pass

    view = shop.runtime.view(run_id)
    assert [each.kind for each in view.pending_questions] == ["approval"]
    assert shop.world.payments() == []
    later.close()


def test_a_rejected_plan_never_acts(shop):
    run_id = shop.start("straightforward")
    shop.runtime.answer(run_id, say(decision="reject", comment="wrong order"))

    for _ in shop.runtime.advance(run_id):
        pass

    ended = shop.runtime.view(run_id).ended
    assert (ended.ending, ended.why) == ("rejected", "rejected by ann: wrong order")
    assert shop.world.payments() == []


def test_a_plan_over_the_limit_shows_every_step(shop):
    run_id = shop.start("over-automatic-limit")
    question = shop.runtime.question(run_id)[1]
    payload = shop.runtime.journal.artifacts.get(question.payload)

    assert payload["tier"] == "full"
    assert [step["id"] for step in payload["steps"]] == ["S1", "S2", "S3", "S4", "S5", "S6", "S7"]


def test_four_resumes_at_once_do_the_work_once(shop):
    run_id = shop.start("straightforward")
    shop.answer(run_id)
    others = [shop.another() for _ in range(4)]
    ready, ends = threading.Barrier(4), list[str]()

    def resume(n: int) -> None:
        ready.wait()
        try:
            for _ in others[n].advance(run_id):
                pass
            ends.append("ran")
        except RunBusy:
            ends.append("busy")

    threads = [threading.Thread(target=resume, args=(n,)) for n in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert sorted(ends) == ["busy", "busy", "busy", "ran"]
    started = [
        e for e in shop.runtime.journal.log.read(run_id) if e.event.type == "attempt_started"
    ]
    assert len(started) == len({each.event.attempt_id for each in started}) == 4
    for each in others:
        each.close()


def test_another_principal_cannot_go_on_with_a_run(shop):
    eve = Rights(principal="eve", roles=("support",), scopes=shop.agent.rights.scopes)
    run_id = shop.start("straightforward", rights=eve)

    with pytest.raises(Denied, match="acts for 'eve', not for 'support-1'"):
        shop.runtime.graph.invoke(None, {"configurable": {"thread_id": run_id}})


@pytest.mark.parametrize("name", ["run_nobody", "run_nobody-q1"])
def test_an_unknown_run_or_question_is_a_clear_error(shop, name):
    with pytest.raises(ConfigError, match="run_nobody"):
        shop.runtime.question(name)


def test_a_principal_without_the_right_gets_a_plan_refused_before_anything_runs(shop, events):
    run_id = shop.start("straightforward", rights=Rights(principal="eve", roles=("support",)))

    issues = events(run_id, "plan_validated")[0].issues

    assert "forbidden_tool" in {each.code for each in issues}
    assert events(run_id, "attempt_started") == []
