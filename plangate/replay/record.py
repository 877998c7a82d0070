"""What a journal holds of one run, read whole before a replay begins; nothing is written.

A record has lives: one for each owner that worked on the run. A life may have been cut, by a kill
or a loss of power, and the log then ends wherever the last write got to.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from plangate.journal.attempts import AttemptEnded, AttemptStarted
from plangate.journal.events import EffectMoved, RunStarted
from plangate.journal.grounds import OutsideAsked
from plangate.journal.progress import unit_of
from plangate.journal.view import fold
from plangate.plan.errors import ConfigError
from plangate.plan.fingerprint import Fingerprint
from plangate.plan.value.frozen import parse
from plangate.replay.substance import SILENT, Key, facts_of, key_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pydantic import JsonValue

    from plangate.journal.decisions import Decision
    from plangate.journal.events import Entry
    from plangate.journal.journal import Journal
    from plangate.journal.ledger import EffectRow
    from plangate.journal.runs import Run
    from plangate.journal.view import RunView


_OF_ANOTHER = ("outcome_unknown", "did_not_happen", "still_running", "still_pending")
"""Codes of a try that found an effect begun by one before it."""


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """An event of the record, with the life it belongs to."""

    entry: Entry
    key: Key
    life: int
    repeat: bool
    """True where an earlier life said the very same: a node that was run again after a resume."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One run, as its journal tells it."""

    run: Run
    view: RunView
    items: Sequence[Item]
    started: RunStarted
    inputs: dict[str, Any]
    prints: Sequence[Fingerprint]
    """What the run was made of when it began, and after each change; none in a log that does not
    say."""

    decisions: Mapping[str, Decision]
    """By question, those that count."""

    found: Sequence[EffectRow]
    """Effects of other runs that this one met in the ledger."""

    values: Mapping[str, JsonValue]
    """By reference, what the outside and models said, and what the found effects left."""

    attempts: Mapping[str, Attempt] = field(default_factory=dict)

    @property
    def lives(self) -> int:
        """How many owners worked on the run."""
        return self.items[-1].life + 1

    @property
    def is_open(self) -> bool:
        """True if the log ends in the middle: its owner died, or is at work."""
        view = self.view
        return view.ended is None and not view.pending_questions and view.stopped is None


@dataclass(slots=True)
class Attempt:
    """One try of a step, as far as the log tells it."""

    started: AttemptStarted
    seq: int
    ended: AttemptEnded | None = None
    """None where the log does not tell its end, or it was cancelled: it was cut."""

    states: list[str] = field(default_factory=list)
    """States that its effect moved to."""

    after: Attempt | None = None
    """The next try of the same step."""

    @property
    def begun_outside(self) -> bool:
        """True if a cut try had written its effect down before it was cut.

        The log may lack the last move, so the next try tells: one that could write the effect down
        itself had found nothing.
        """
        if self.states or self.after is None:
            return bool(self.states)
        if self.after.states:
            return self.after.states[0] != "intended"
        if self.after.ended is not None:
            return bool(self.after.ended.reused) or self.after.ended.error_code in _OF_ANOTHER
        return self.after.begun_outside


def read_record(journal: Journal, run_id: str) -> Record:
    """Read a run.

    Raises:
        ConfigError: No such run, or it has no events yet.
        JournalError: An event or a value cannot be read.
    """
    run = journal.runs.get(run_id)
    entries = _under_one_goal(journal.log.read(run_id))
    started = entries[0].event if entries else None
    if not isinstance(started, RunStarted):
        raise ConfigError(f"run {run_id} has not begun", hint="There is nothing to replay yet.")
    if started.cause is not None and started.cause.kind == "compensation":
        raise ConfigError(
            f"run {run_id} undoes what run {started.cause.run_id} did, as the ledger had it then",
            hint="That ledger is not on its record; replay the other run.",
        )
    view, load = fold(entries), journal.artifacts.get
    inputs = load(started.inputs)
    attempts = _attempts(entries)
    found = _found(journal, run_id, attempts)
    return Record(
        run=run,
        view=view,
        items=_items(entries),
        started=started,
        inputs=inputs if isinstance(inputs, dict) else {},
        prints=[
            parse(Fingerprint, load(entry.event.fingerprint))
            for entry in entries
            if entry.event.type == "fingerprinted"
        ],
        decisions={each.question_id: each for each in journal.decisions.of_run(run_id)},
        found=found,
        values={ref: load(ref) for ref in _refs(entries, found)},
        attempts=attempts,
    )


def _under_one_goal(entries: list[Entry]) -> list[Entry]:
    """Leave out what follows a change of goal: a person ended the run, whatever it was at."""
    types = [entry.event.type for entry in entries]
    return entries[: types.index("goal_revised")] if "goal_revised" in types else entries


def _items(entries: Sequence[Entry]) -> list[Item]:
    items: list[Item] = []
    life, known = 0, set[str]()
    for entry in entries:
        life += entry.event.type == "run_resumed"
        key, facts = key_of(entry.event), facts_of(entry.event)
        said = f"{key} {facts}"
        silent = facts is None or entry.event.type in SILENT
        items.append(Item(entry, key, life, repeat=silent or said in known))
        known.add(said)
    return items


def _attempts(entries: Sequence[Entry]) -> dict[str, Attempt]:
    found: dict[str, Attempt] = {}
    last: dict[str, Attempt] = {}
    for entry in entries:
        event = entry.event
        if isinstance(event, AttemptStarted):
            made = found[event.attempt_id] = Attempt(event, entry.seq)
            unit = unit_of(event.step, event.element)
            if unit in last:
                last[unit].after = made
            last[unit] = made
        elif isinstance(event, AttemptEnded) and event.attempt_id in found:
            found[event.attempt_id].ended = None if facts_of(event) is None else event
        elif isinstance(event, EffectMoved):
            moved = found.get(event.attempt_id) or last.get(event.step)
            if moved is not None:
                moved.states.append(event.state)
    return found


def _found(journal: Journal, run_id: str, attempts: Mapping[str, Attempt]) -> tuple[EffectRow, ...]:
    """Return effects that the run met and had not begun itself."""
    tried: dict[str, bool] = {}
    for each in attempts.values():
        if each.ended is not None and each.ended.effect_key is not None:
            key = each.ended.effect_key
            tried[key] = tried.get(key, False) or "intended" in each.states
    rows = [journal.ledger.get(key) for key, ours in tried.items() if not ours]
    return tuple(row for row in rows if row is not None and row.run_id != run_id)


def _refs(entries: Sequence[Entry], found: Sequence[EffectRow]) -> Iterator[str]:
    """Yield what a replay needs, so that it fails before it begins and not in the middle."""
    for entry in entries:
        event = entry.event
        if isinstance(event, (AttemptEnded, OutsideAsked)) or event.type == "info_read":
            ref = event.output
        else:
            ref = event.reply if event.type == "model_called" else None
        if ref:
            yield ref
    yield from (row.output for row in found if row.output is not None)
