"""A run whose plan this code cannot read: said clearly at each door, and it can be ended."""

from __future__ import annotations

import json

import pytest
import sqlalchemy as sa

from plangate import effects
from plangate.cancel import cancel
from plangate.journal.schema import ARTIFACTS, EVENTS
from plangate.nodes.follow import Word
from plangate.plan.errors import Damaged, Unreadable
from plangate.revise import proposed
from tests.door.ledgers import WORLD, office

WAYS = ("newer", "changed", "missing")


def spoil(made, run_id: str, way: str) -> None:
    """Have the run's plan be in another form, or not be what was written, or not be there."""
    journal = made.runtime.journal
    ref = made.runtime.view(run_id).plans[1].plan
    newer = journal.artifacts.put({**journal.artifacts.get(ref), "mood": "glad"})
    with journal.store.write() as tx:
        if way == "newer":
            renamed = sa.func.replace(EVENTS.c.body, ref, newer)
            tx.execute(sa.update(EVENTS).values(body=renamed))
        elif way == "changed":
            said = {"body": json.dumps({"steps": "\x1b[2J"})}
            tx.execute(sa.update(ARTIFACTS).where(ARTIFACTS.c.ref == ref).values(**said))
        else:
            tx.execute(sa.delete(ARTIFACTS).where(ARTIFACTS.c.ref == ref))


@pytest.fixture
def asking(tmp_path):
    with office(tmp_path) as made:
        yield made, made.start()


@pytest.fixture
def unsure(tmp_path):
    """A run of which nobody knows whether it paid."""
    with office(tmp_path) as made:
        run_id = made.start()
        WORLD.silent = True
        made.say(run_id)
        made.go(run_id)
        yield made, run_id


@pytest.mark.parametrize("way", WAYS)
def test_a_waiting_run_is_cancelled_and_everything_else_says_why_not(asking, way):
    made, run_id = asking
    spoil(made, run_id, way)
    kind = Unreadable if way == "newer" else Damaged

    for door in (
        lambda: made.say(run_id, "edit", edits=[{"step": "S2", "args": {"cents": 1}}]),
        lambda: made.say(run_id) and list(made.runtime.advance(run_id)),
        lambda: proposed(made.runtime, run_id, "Pay nothing", {"cents": 1}),
    ):
        with pytest.raises(kind, match=r"plan version 1 of run|artifact 'sha256:"):
            door()
    view = cancel(made.runtime, run_id, by="eve", reason="it is stuck")

    assert (view.ended.ending, view.ended.verdict) == ("cancelled", "fail")
    assert view.ended.why.startswith("cancelled by eve: it is stuck; not held against the ledger:")
    assert WORLD.done == []


@pytest.mark.parametrize("way", WAYS)
def test_what_may_have_happened_is_unknown_when_such_a_run_is_cancelled(unsure, way):
    made, run_id = unsure
    spoil(made, run_id, way)

    view = cancel(made.runtime, run_id, by="eve")

    rows = made.runtime.journal.ledger.list(run_id=run_id)
    open_steps = {row.step for row in rows if row.state == "unknown"}
    assert (view.ended.ending, view.ended.verdict) == ("cancelled", "unknown")
    assert open_steps
    assert {view.steps[step].status for step in open_steps} == {"unknown"}
    left = made.runtime.journal.artifacts.get(view.ended.report)["compensation_candidates"]
    assert {each["step"] for each in left} == {row.step for row in rows}


@pytest.mark.parametrize("way", WAYS)
def test_an_effect_of_such_a_run_is_settled_on_a_persons_word_alone(unsure, way):
    made, run_id = unsure
    spoil(made, run_id, way)
    rows = made.runtime.journal.ledger.list(run_id=run_id, state="unknown")

    with pytest.raises(Unreadable if way == "newer" else Damaged):
        effects.reconcile(made.runtime, rows[0].effect_key, by="eve")
    for row in rows:
        word = Word("done", "eve", "seen at the bank")
        assert effects.settle_effect(made.runtime, row.effect_key, word).state == "done"
    view = cancel(made.runtime, run_id, by="eve")

    assert (view.ended.ending, view.ended.verdict) == ("cancelled", "fail")
