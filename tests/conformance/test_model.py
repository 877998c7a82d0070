"""Two workers, any interleaving, crashes and clocks: the journal against a reference of a page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from plangate.journal.decisions import Decision
from plangate.journal.events import TriggerFired
from plangate.journal.journal import Journal
from plangate.journal.lease import Lease
from plangate.journal.ledger import Intent
from plangate.journal.runs import Run
from plangate.plan.errors import Conflict, JournalError, LeaseLost, RunBusy
from plangate.plan.facts import Rights

WORKERS = ("north", "south")
RUNS = ("r1", "r2")
ANY = st.integers(min_value=0, max_value=9)
"""Which of the hands there are, by its number."""

KEYS = ("k1", "k2")
TTL_S = 30
FOLLOWS = {
    "accepted": {"intended", "unknown"},
    "done": {"intended", "accepted", "unknown"},
    "failed": {"intended", "accepted", "unknown"},
    "unknown": {"intended", "accepted", "unknown"},
    "compensated": {"done"},
}


@dataclass
class Held:
    """What the reference knows of a run."""

    owner: str = ""
    epoch: int = 0
    until: datetime | None = None
    events: list[str] = field(default_factory=list)


@dataclass
class Effect:
    owner: str
    args: str
    state: str = "intended"


@dataclass
class Hand:
    """What a worker believes: its lease, and the number of the newest event it knows."""

    lease: Lease
    seq: int


@contextmanager
def refused(*kinds: type[Exception]) -> Iterator[None]:
    """The block is refused in one of the given ways; with none given it succeeds."""
    if not kinds:
        yield
        return
    with pytest.raises(kinds):
        yield


class Workers(RuleBasedStateMachine):
    def __init__(self, url: str) -> None:
        super().__init__()
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.names = (f"elsewhere:{number}:1:x" for number in count())
        self.journal = Journal.open(url, clock=lambda: self.now)
        self.runs = {name: Held() for name in RUNS}
        self.effects: dict[str, Effect] = {}
        self.answers: dict[str, str] = {}
        self.hands: dict[tuple[str, str], Hand] = {}
        for name in RUNS:
            plain = {"goal_id": "g", "goal": "do", "thread_id": name, "agent": "a"}
            self.journal.runs.create(Run(run_id=name, principal=Rights(principal="p"), **plain))

    @initialize()
    def both_are_at_work(self) -> None:
        for worker, run in zip(WORKERS, RUNS, strict=True):
            self.take(worker, run)

    def teardown(self) -> None:
        self.the_log_is_what_was_accepted()
        self.the_ledger_is_what_was_settled()
        self.journal.close()

    def is_live(self, run: str) -> bool:
        held = self.runs[run]
        return bool(held.owner) and held.until is not None and held.until > self.now

    def is_at_work(self, owner: str) -> bool:
        return any(held.owner == owner and self.is_live(run) for run, held in self.runs.items())

    def is_mine(self, hand: Hand) -> bool:
        held = self.runs[hand.lease.run_id]
        return (held.owner, held.epoch) == (hand.lease.owner, hand.lease.epoch)

    def hand(self, which: int) -> tuple[tuple[str, str], Hand]:
        return list(self.hands.items())[which % len(self.hands)]

    @rule(worker=st.sampled_from(WORKERS), run=st.sampled_from(RUNS))
    def take(self, worker: str, run: str) -> None:
        owner = next(self.names)
        if self.is_live(run):
            with refused(RunBusy):
                self.journal.runs.acquire(run, owner, TTL_S)
            return
        lease = self.journal.runs.acquire(run, owner, TTL_S)
        held = self.runs[run]
        assert lease.epoch == held.epoch + 1
        held.owner, held.epoch = owner, lease.epoch
        held.until = self.now + timedelta(seconds=TTL_S)
        self.hands[worker, run] = Hand(lease, len(held.events))

    @precondition(lambda self: self.hands)
    @rule(which=ANY, keeps=st.booleans())
    def let_go(self, which: int, *, keeps: bool) -> None:
        place, hand = self.hand(which)
        run = hand.lease.run_id
        self.journal.runs.release(hand.lease)
        if self.is_mine(hand):
            self.runs[run].owner, self.runs[run].until = "", None
        if not keeps:  # else it believes to hold it still: all it does must be refused
            del self.hands[place]

    @precondition(lambda self: self.hands)
    @rule(which=ANY)
    def renew(self, which: int) -> None:
        _, hand = self.hand(which)
        with refused(*() if self.is_mine(hand) else (LeaseLost,)):
            hand.lease = self.journal.runs.renew(hand.lease, TTL_S)
            held, until = self.runs[hand.lease.run_id], self.now + timedelta(seconds=TTL_S)
            held.until = max(until, held.until or until)

    @rule(worker=st.sampled_from(WORKERS))
    def die(self, worker: str) -> None:
        for run in RUNS:
            self.hands.pop((worker, run), None)

    @rule(seconds=st.integers(min_value=-20, max_value=40))
    def time_passes(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)

    @rule()
    def open_again(self) -> None:
        self.the_log_is_what_was_accepted()
        self.the_ledger_is_what_was_settled()
        where = self.journal.url
        self.journal.close()
        self.journal = Journal.open(where, clock=lambda: self.now)

    @precondition(lambda self: self.hands)
    @rule(
        which=ANY,
        texts=st.lists(st.sampled_from("abc"), min_size=1, max_size=3),
        knows=st.booleans(),
    )
    def append(self, which: int, texts: list[str], *, knows: bool) -> None:
        _, hand = self.hand(which)
        seq = hand.seq if knows else hand.seq + 1
        events = [TriggerFired(kind=text) for text in texts]
        fault = () if knows else (Conflict,)
        with refused(*fault if self.is_mine(hand) else (LeaseLost,)):
            hand.seq = self.journal.log.append(hand.lease, seq, events)
            self.runs[hand.lease.run_id].events += texts

    @precondition(lambda self: self.hands)
    @rule(
        which=ANY,
        key=st.sampled_from(KEYS),
        args=st.sampled_from("xxxy"),
        state=st.sampled_from(["", "", *FOLLOWS]),
    )
    def act(self, which: int, key: str, args: str, state: Any) -> None:
        _, hand = self.hand(which)
        if state:
            self.settle(hand, key, state)
        else:
            self.intend(hand, key, args)

    @precondition(lambda self: self.hands)
    @rule(which=ANY, key=st.sampled_from(KEYS))
    def take_up(self, which: int, key: str) -> None:
        _, hand = self.hand(which)
        known = self.effects.get(key)
        with refused(*self.no_hand_on(hand, known)):
            owner = self.journal.ledger.take(hand.lease, key).owner
            assert known is not None
            if known.state in FOLLOWS["unknown"]:
                known.owner = hand.lease.owner
            assert owner == known.owner

    @precondition(lambda self: self.hands)
    @rule(which=ANY, key=st.sampled_from(KEYS))
    def let_go_of(self, which: int, key: str) -> None:
        _, hand = self.hand(which)
        known = self.effects.get(key)
        self.journal.ledger.let_go(key, hand.lease.owner)
        if known is not None and known.owner == hand.lease.owner:
            known.owner = ""

    def intend(self, hand: Hand, key: str, args: str) -> None:
        known = self.effects.get(key)
        again = known is not None and known.state != "failed"
        fault: tuple[type[Exception], ...] = ()
        if again and known is not None and known.args != args:
            fault = (Conflict,)
        with refused(*fault if self.is_mine(hand) else (LeaseLost,)):
            run = hand.lease.run_id
            claim = self.journal.ledger.intend(hand.lease, _intent(run, key, args))
            assert claim.fresh is not again
            if not again:
                self.effects[key] = Effect(hand.lease.owner, args)

    def settle(self, hand: Hand, key: str, state: Any) -> None:
        known = self.effects.get(key)
        with refused(*self.fault(hand, known, state)):
            if state == "accepted":
                self.journal.ledger.accept(hand.lease, key, "op")
            else:
                self.journal.ledger.settle(hand.lease, key, state)
            assert known is not None
            known.state = state
            if state != "unknown":
                known.owner = hand.lease.owner if state == "accepted" else ""

    def fault(self, hand: Hand, known: Effect | None, state: str) -> tuple[type[Exception], ...]:
        if fault := self.no_hand_on(hand, known):
            return fault
        assert known is not None
        return () if known.state in FOLLOWS[state] else (Conflict,)

    def no_hand_on(self, hand: Hand, known: Effect | None) -> tuple[type[Exception], ...]:
        if not self.is_mine(hand):
            return (LeaseLost,)
        if known is None:
            return (JournalError,)
        if known.owner != hand.lease.owner and self.is_at_work(known.owner):
            return (RunBusy,)
        return ()

    @rule(question=st.sampled_from("qz"), by=st.sampled_from(WORKERS))
    def answer(self, question: str, by: str) -> None:
        said = Decision(question_id=question, run_id="r1", decision="approve", by=by, at=self.now)
        recorded = self.journal.decisions.record(said)
        assert recorded.won is (question not in self.answers)
        self.answers.setdefault(question, by)
        assert recorded.decision.by == self.answers[question]

    def the_log_is_what_was_accepted(self) -> None:
        for run, held in self.runs.items():
            entries = self.journal.log.read(run)
            assert [entry.event.kind for entry in entries] == held.events
            assert [entry.seq for entry in entries] == list(range(1, len(held.events) + 1))
            epochs = [entry.epoch for entry in entries]
            assert epochs == sorted(epochs), "a former owner wrote after a later one"

    def the_ledger_is_what_was_settled(self) -> None:
        rows = {row.effect_key: row for row in self.journal.ledger.list()}
        assert {key: (row.state, row.owner) for key, row in rows.items()} == {
            key: (each.state, each.owner) for key, each in self.effects.items()
        }


def _intent(run: str, key: str, args: str) -> Intent:
    return Intent(
        effect_key=key,
        business_key=key,
        run_id=run,
        goal_id="g",
        step="S1",
        plan_version=1,
        attempt_id="S1-A1",
        tool="pay",
        tool_version="1",
        args_sha256=args,
    )


@pytest.mark.slow
def test_any_interleaving_of_two_workers_is_what_the_reference_says(fresh_url):
    run_state_machine_as_test(
        lambda: Workers(fresh_url()),
        settings=settings(
            max_examples=30,
            phases=[Phase.generate],  # shrinking fifty steps over a disk takes minutes
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
