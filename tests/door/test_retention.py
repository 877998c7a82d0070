from __future__ import annotations

import sqlite3
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

from plangate.graph.desk import outer_thread
from plangate.graph.saver import checkpoints_path
from plangate.graph.state import State
from plangate.journal.causes import RunFollowed
from plangate.journal.schema import EFFECTS
from plangate.plan.errors import ConfigError, Conflict, RunBusy
from plangate.replay.drive import replay
from plangate.retention import Records, open_records
from plangate.runtime import new_run_id
from tests.door.ledgers import WORLD, office

MARK = "marker-5e1d"
TEMPLATE = """
template: bills
goal: Pay the bills
parameters: [{name: name, type: string}]
steps:
  - {id: S1, objective: Read, tool: look, args: {name: "${inputs.name}"}}
  - {id: S2, objective: Pay, tool: pay, args: {name: "${S1.name}", cents: 100},
     success: [{id: once, level: L2, claim: It was paid once, tool: receipt,
                args: {id: "${S2.id}"}, rule: observed.count == 1}]}
success_criteria: [{id: paid, level: L2, claim: It was paid once, tool: receipt,
                    args: {id: "${S2.id}"}, rule: observed.count == 1}]
budget: {min_level: L0}
"""


@pytest.fixture
def paid(tmp_path):
    """An office, and two runs that ended: one about the mark, one about the rent."""
    with office(tmp_path, template=TEMPLATE) as made:
        WORLD.versions[MARK] = 1
        runs = []
        for name in (MARK, "rent"):
            runs.append(start(made, name))
            made.say(runs[-1], comment=name)
            assert made.go(runs[-1]).ended.verdict == "pass"
        yield made, *runs


def start(made, name: str, **more: str) -> str:
    run_id = new_run_id()
    given = {"goal": f"Pay {name}", "inputs": {"name": name}, **more}
    for _ in made.runtime.start(given, run_id=run_id):
        pass
    return run_id


def files(folder: Path) -> list[str]:
    return [each.name for each in folder.iterdir() if MARK.encode() in each.read_bytes()]


def records(made) -> Records:
    return Records(made.runtime.journal, made.runtime._own_saver)


def test_no_byte_of_a_deleted_run_is_left_in_any_file(paid, tmp_path):
    made, gone, _ = paid
    assert files(tmp_path) != []

    records(made).delete(gone)

    assert records(made).rewrite()
    assert files(tmp_path) == []


def test_the_other_run_shows_and_a_waiting_one_goes_on_after_a_deletion(paid):
    made, gone, left = paid
    waiting = start(made, "tax")

    records(made).delete(gone)
    records(made).rewrite()

    ended = made.runtime.view(left).ended
    assert made.runtime.journal.artifacts.get(ended.report)["ending"] == "completed"
    made.say(waiting)
    assert made.go(waiting).ended.verdict == "pass"


def test_a_deleted_run_is_unknown_and_its_checkpoints_are_gone(paid, tmp_path):
    made, gone, left = paid

    records(made).delete(gone)

    with pytest.raises(ConfigError, match="unknown_run"):
        records(made).delete(gone)
    file = sqlite3.connect(checkpoints_path(made.runtime.journal.url))
    threads = {each for (each,) in file.execute("SELECT thread_id FROM checkpoints")}
    file.close()
    assert threads == {left}


def test_a_run_that_somebody_works_on_is_not_deleted(paid):
    made, gone, _ = paid
    made.runtime.journal.runs.acquire(gone, "elsewhere.0:1:1:x", 60)

    with pytest.raises(RunBusy):
        records(made).delete(gone)

    assert made.runtime.view(gone).ended is not None


def test_a_crash_between_checkpoints_and_journal_is_finished_by_deleting_again(paid):
    made, gone, _ = paid
    made.runtime._own_saver.delete_thread(gone)  # as far as it came

    records(made).delete(gone)

    assert gone not in [each.run_id for each in made.runtime.journal.runs.list()]


def test_a_run_stays_while_its_thread_has_another_one_that_needs_the_checkpoints(paid):
    made, gone, _ = paid
    config = {"configurable": {"thread_id": gone}}
    made.runtime.graph.invoke({"goal": "Pay the bills", "inputs": {"name": "tax"}}, config)

    with pytest.raises(Conflict, match="same thread"):
        records(made).delete(gone)

    assert made.runtime.view(gone).ended is not None


def test_pruning_deletes_what_is_old_and_names_what_it_keeps(paid):
    made, gone, left = paid
    made.runtime.journal.runs.acquire(left, "elsewhere.0:1:1:x", 60)

    pruned = records(made).prune(records(made).idle(timedelta(0)))

    assert list(pruned.removed) == [gone]
    assert [each.run_id for each in pruned.kept] == [left]


@pytest.mark.parametrize("status", ["ended", "waiting"])
def test_pruning_keeps_what_has_moved_on_since_the_listing_and_names_what_is_gone(paid, status):
    made, gone, left = paid
    waiting, other = start(made, "tax"), start(made, "water")
    found = records(made).idle(timedelta(0), status)
    if status == "ended":
        records(made).delete(gone)
        expected = ([left], [], [gone])
    else:
        made.say(waiting)  # nobody has heard it yet
        expected = ([other], [waiting], [])

    pruned = records(made).prune(found)

    kept = [each.run_id for each in pruned.kept]
    assert (list(pruned.removed), kept, list(pruned.gone)) == expected
    assert all("has gone on since it was listed" in each.why for each in pruned.kept)


@pytest.mark.parametrize("kind", ["compensation", "goal_revision"])
def test_a_run_stays_while_one_that_follows_from_it_has_not_ended(paid, kind):
    made, gone, _ = paid
    follower = start(made, "tax")
    with made.runtime.hold(gone) as session:
        session.emit(RunFollowed(kind=kind, run_id=follower))

    with pytest.raises(Conflict, match=f"{follower}.* has not ended") as stopped:
        records(made).delete(gone)
    made.say(follower, "reject", comment="no")
    made.go(follower)
    records(made).delete(gone)

    assert f"plangate run cancel {follower}" in stopped.value.hint


SHARING = TEMPLATE.replace(
    "success_criteria",
    """  - id: S3
    objective: Ask whether all is well
    kind: human
    after: [S2]
    question: {audience: customer, type: confirm, text: Is all well}
success_criteria""",
)


@pytest.mark.parametrize(
    ("change", "ending"),
    [
        ({}, ("completed", "pass")),
        ({"output": None}, ("completed", "pass")),  # it was deleted before the other one wrote
        ({"state": "compensated"}, ("failed", "fail")),
        ({"output": "sha256:0"}, ("failed", "fail")),
    ],
)
def test_a_run_that_met_an_effect_ends_as_the_ledger_says_after_the_other_run_is_gone(
    tmp_path, change, ending
):
    with office(tmp_path, template=SHARING) as made:
        first, second = (start(made, "rent", goal_id="one") for _ in range(2))
        for run_id in (first, second):
            made.say(run_id)
            made.go(run_id)
        made.say(first, "answer", answer={"confirmed": True})
        made.go(first)

        records(made).delete(first)
        if change:
            with made.runtime.journal.store.write() as tx:
                tx.execute(sa.update(EFFECTS).values(**change))
        made.say(second, "answer", answer={"confirmed": True})
        ended = made.go(second).ended

        assert (ended.ending, ended.verdict) == ending
        assert WORLD.done == ["pay rent 100"]


def test_a_run_that_met_an_effect_is_replayed_after_the_other_run_is_gone(tmp_path):
    with office(tmp_path, template=SHARING) as made:
        first, second = (start(made, "rent", goal_id="one") for _ in range(2))
        for run_id in (first, second):
            made.say(run_id)
            made.go(run_id)
            made.say(run_id, "answer", answer={"confirmed": True})
            made.go(run_id)

        records(made).delete(first)

        assert replay(made.runtime.journal, second, made.runtime.agent).differences == ()


def test_a_run_inside_another_graph_leaves_that_graphs_thread_alone(paid):
    made, *_ = paid
    parent = StateGraph(State)
    parent.add_node("agent", made.runtime.graph)
    parent.add_edge(START, "agent")
    saver, on = InMemorySaver(), {"configurable": {"thread_id": "talk"}}
    given = {"goal": "Pay tax", "inputs": {"name": "tax"}}
    parent.compile(checkpointer=saver).invoke(given, on)
    run = made.runtime.journal.runs.list("waiting")[0]

    Records(made.runtime.journal, saver).delete(run.run_id)

    assert outer_thread(run.thread_id) == "talk"
    assert saver.get_tuple(on) is not None


@pytest.mark.parametrize("thread", ["", "t", "a|b", "a|b:c", "|x:1", "run_1"])
def test_a_thread_of_its_own_is_in_no_other_graph(thread):
    assert outer_thread(thread) == ""


def test_a_payment_is_not_made_again_after_its_run_was_deleted(paid, tmp_path):
    made, gone, _ = paid
    key = made.runtime.journal.ledger.list(run_id=gone)[0].effect_key

    with open_records(made.runtime.journal.url) as opened:
        opened.delete(gone)

    row = made.runtime.journal.ledger.get(key)
    assert (row.state, row.output, row.business_key) == ("done", None, f"deleted:{key[:12]}")
