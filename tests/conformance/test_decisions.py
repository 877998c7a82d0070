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
