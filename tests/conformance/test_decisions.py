from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta, timezone

from plangate.journal.decisions import Decision

AT = datetime(2026, 1, 31, 8, 15, 0, 7, tzinfo=UTC)
APPROVED = Decision(
    question_id="q1",
    run_id="r",
    decision="approve",
    by="ann",
    at=AT,
    answer={"limit": 10, "steps": ["S1", {"deep": None}]},
    comment="fine ü go",
    content_hash="h",
    steps=("S1", "S2"),
    expires_at=AT.astimezone(timezone(timedelta(hours=5))) + timedelta(hours=1),
)


def test_a_decision_comes_back_as_it_was_made(journal):
    recorded = journal.decisions.record(APPROVED)

    assert recorded == (True, APPROVED)
    assert journal.decisions.get("q1") == APPROVED


def test_a_later_answer_changes_nothing_and_learns_who_was_first(journal):
    journal.decisions.record(APPROVED)

    second = APPROVED.model_copy(update={"by": "bob", "decision": "reject"})

    assert journal.decisions.record(second) == (False, APPROVED)
    assert journal.decisions.get("q1").by == "ann"


def test_of_twenty_answers_at_once_one_wins_and_all_know_which(journal):
    start = threading.Barrier(20)
    said = []

    def answer(name: str) -> None:
        start.wait()
        said.append(journal.decisions.record(APPROVED.model_copy(update={"by": name})))

    threads = [threading.Thread(target=answer, args=(f"p{n}",)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sum(each.won for each in said) == 1
    assert {each.decision.by for each in said} == {journal.decisions.get("q1").by}


def test_decisions_are_listed_by_run_in_order(journal):
    for number in (3, 1, 2):
        made = {"question_id": f"q{number}", "at": AT + timedelta(seconds=number)}
        journal.decisions.record(APPROVED.model_copy(update=made))
    journal.decisions.record(APPROVED.model_copy(update={"question_id": "q9", "run_id": "other"}))

    assert [each.question_id for each in journal.decisions.of_run("r")] == ["q1", "q2", "q3"]


def test_a_question_without_an_answer_has_none(journal):
    assert journal.decisions.get("q1") is None
    assert journal.decisions.of_run("r") == []


def vote(by: str, *steps: str) -> Decision:
    return APPROVED.model_copy(update={"by": by, "steps": steps, "comment": by})


def test_two_people_decide_together_and_one_person_does_not(journal):
    first = journal.decisions.vote(vote("ann"), needs=2)
    again = journal.decisions.vote(vote(" Ann "), needs=2)
    assert (first.recorded, again.recorded, len(again.votes)) == (None, None, 1)
    assert journal.decisions.get("q1") is None

    last = journal.decisions.vote(vote("bob"), needs=2)

    assert last.recorded is not None
    assert last.recorded.won
    assert last.recorded.decision == journal.decisions.get("q1")
    assert (last.recorded.decision.by, last.recorded.decision.comment) == ("ann, bob", "ann; bob")
    assert [each.by for each in journal.decisions.votes("q1")] == ["ann", "bob"]


def test_a_rejection_stands_against_votes_before_and_after(journal):
    journal.decisions.vote(vote("ann"), needs=2)
    journal.decisions.record(vote("eve").model_copy(update={"decision": "reject"}))

    late = journal.decisions.vote(vote("bob"), needs=2)

    assert late.recorded is not None
    assert (late.recorded.won, late.recorded.decision.decision) == (False, "reject")
    assert [each.by for each in late.votes] == ["ann"]


def test_together_they_approve_what_each_of_them_did(journal):
    journal.decisions.vote(vote("ann", "S1", "S2"), needs=3)
    journal.decisions.vote(vote("bob"), needs=3)

    got = journal.decisions.vote(vote("cid", "S2", "S3"), needs=3)

    assert got.recorded is not None
    assert (got.recorded.decision.decision, got.recorded.decision.steps) == ("approve", ("S2",))


def test_approvals_with_no_step_in_common_approve_nothing(journal):
    journal.decisions.vote(vote("ann", "S1"), needs=2)

    got = journal.decisions.vote(vote("bob", "S2"), needs=2)

    assert got.recorded is not None
    assert (got.recorded.decision.decision, got.recorded.decision.steps) == ("reject", ())


def test_of_twenty_votes_at_once_each_counts_once_and_one_decision_is_made(journal):
    start, said = threading.Barrier(20), []

    def answer(n: int) -> None:
        start.wait()
        said.append(journal.decisions.vote(vote(f"p{n // 2}"), needs=10))

    threads = [threading.Thread(target=answer, args=(n,)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sum(each.recorded is not None and each.recorded.won for each in said) == 1
    assert len(journal.decisions.votes("q1")) == 10
    assert len(journal.decisions.get("q1").by.split(", ")) == 10
