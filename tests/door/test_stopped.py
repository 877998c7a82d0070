from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from plangate.graph.payload import Answer
from plangate.journal.attempts import AttemptEnded, AttemptStarted
from plangate.journal.events import Entry, RunResumed
from plangate.nodes.worked import worked_s
from plangate.plan.value.plan import Budget
from tests.door.letters import Post, given

START = datetime(2026, 1, 1, tzinfo=UTC)


def log(*marks: str) -> list[Entry]:
    """Write a log: `3+a` starts attempt a at second 3, `4-a` ends it, `5!` is a new owner."""
    entries = []
    for seq, mark in enumerate(marks, 1):
        second, name = int(mark[0]), mark[2:]
        event = {
            "+": lambda name: AttemptStarted(
                attempt_id=name,
                step=name,
                plan_version=1,
                capability="t@1",
                args="sha256:" + "0" * 64,
                args_sha256="0" * 64,
            ),
            "-": lambda name: AttemptEnded(
                attempt_id=name, step=name, status="succeeded", outcome="success"
            ),
            "!": lambda _: RunResumed(owner="o"),
        }[mark[1]](name)
        at = START + timedelta(seconds=second)
        entries.append(Entry(run_id="r", seq=seq, at=at, epoch=1, event=event))
    return entries


@pytest.mark.parametrize(
    ("marks", "seconds"),
    [
        ([], 0),
        (["0+a", "2-a"], 2),
        (["0+a", "2-a", "8!", "8+b", "9-b"], 3),
        (["0+a", "1+b", "2-a", "3-b"], 3),
        (["0+a", "5!", "6+b", "7-b"], 1),
        (["0+a", "1+b", "3-b", "8!", "8+c", "9-c"], 4),
        (["2+a", "1-a"], 0),
    ],
)
def test_work_is_what_was_under_way_and_not_the_waiting_between(marks, seconds):
    assert worked_s(log(*marks)) == seconds


def test_the_agents_budget_holds_where_a_template_has_none_and_a_larger_one_lets_the_run_go_on(
    tmp_path,
):
    post = Post(tmp_path, busy=1)
    runtime = post.open(budget=Budget(max_tool_calls=4))
    list(runtime.start(given(), run_id="r"))
    runtime.answer("r", Answer(decision="approve", by="ann"))
    list(runtime.advance("r"))
    list(runtime.advance("r"))
    stopped = runtime.journal.runs.get("r").status
    runtime.close()
    assert (stopped, post.sent) == ("stopped", ["Ann"])

    runtime = post.open(budget=Budget(max_tool_calls=9))
    list(runtime.advance("r"))

    assert (runtime.view("r").ended.verdict, post.sent) == ("pass", ["Ann"])
    post.close()
