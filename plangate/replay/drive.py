"""Drives a run again: the same graph, nodes and engine, over a journal that is thrown away.

The recorded journal is only read. Nothing outside is called: tools answer from the record, people
decide as they did, models write what they wrote; only a model that is named is really asked.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from plangate.journal.stop import cancel_id
from plangate.nodes.madeof import made_of
from plangate.plan.errors import ConfigError, PlangateError
from plangate.plan.fingerprint import Rest, compare
from plangate.replay.chats import recorded_chat
from plangate.replay.compare import Difference, differences
from plangate.replay.found import bring
from plangate.replay.kit import ReplayKit
from plangate.replay.outside import Outside
from plangate.replay.record import read_record
from plangate.replay.tape import Cut, Tape
from plangate.runtime import Options, Runtime
from plangate.tools.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from plangate.agent import Agent
    from plangate.journal.journal import Journal
    from plangate.journal.questions import QuestionAsked
    from plangate.plan.fingerprint import Change
    from plangate.replay.record import Record

_MEMORY: Final = "/dev/shm"  # noqa: S108 - a folder of its own is made in it, for its owner alone
"""Where a journal that is thrown away need not wait for a disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What came of a replay."""

    run_id: str
    differences: tuple[Difference, ...]
    changes: tuple[Change, ...]
    """What the run is made of today and was not then, whether or not it made a difference."""

    compared: int
    """Events of the record that were held against the replay's."""


def replay(journal: Journal, run_id: str, agent: Agent, *, model: Any = None) -> Replayed:
    """Drive a recorded run again and compare.

    Args:
        journal: Where the run is recorded; nothing is written to it.
        run_id: Which run, at any point of its life.
        agent: Today's agent, or the same one with another policy, template or tool.
        model: A chat model to plan anew with; None: what a model planned stands as it was written.

    Raises:
        ConfigError: No such run, or it is of another agent.
        JournalError: The record cannot be read.
    """
    record = read_record(journal, run_id)
    _need_same(record, agent)
    tape = Tape(record)
    with _opened(journal, agent, tape, model) as runtime:
        fault = _driven(runtime, tape)
        would = [entry.event for entry in runtime.journal.log.read(run_id)]
        changes = _changes(record, runtime)
    gone_on = would and (would[-1].type == "run_ended" or not tape.left)
    last = record.items[-1].entry.seq if gone_on else tape.place
    was = [item.entry.event for item in record.items if item.entry.seq <= last]
    found = [*differences(was, would, changes), *_stops(tape, fault, changes, stopped=not gone_on)]
    if model is not None:
        found = [each for each in found if each.kind != "model"]
    return Replayed(
        run_id=run_id,
        differences=tuple(found),
        changes=changes,
        compared=sum(not item.repeat for item in record.items),
    )


@contextmanager
def _opened(journal: Journal, agent: Agent, tape: Tape, model: Any) -> Iterator[Runtime]:
    outside = Outside(tape)
    planner = recorded_chat(tape, "planner") if model is None else model
    options = Options(
        model=planner, critic=recorded_chat(tape, "critic"), judge=recorded_chat(tape, "judge")
    )
    memory = _MEMORY if os.access(_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="plangate-replay-", dir=memory) as folder:
        runtime = Runtime(
            agent,
            f"sqlite:///{folder}/journal.db",
            options,
            clock=tape.written_at,
            kit=lambda kit: ReplayKit.over(kit, outside, journal),
        )
        try:
            yield runtime
        finally:
            runtime.close()


def _driven(runtime: Runtime, tape: Tape) -> str:
    """Drive to the end of the record or of the run; a text says why it could not go on."""
    record = tape.record
    run_id, started = record.run.run_id, record.started
    bring(runtime.journal, record)
    given = {
        "goal": started.goal,
        "goal_id": started.goal_id,
        "inputs": record.inputs,
        "task": started.task,
    }
    stream = runtime.start(given, run_id=run_id, rights=record.run.principal)
    while True:
        error = _worked(stream)
        if isinstance(error, PlangateError) and tape.next_type:
            return str(error)
        if not _goes_on(runtime, tape, cut=error is not None):
            return ""
        stream = runtime.advance(run_id)


def _worked(stream: Iterator[Any]) -> PlangateError | Cut | None:
    try:
        for _ in stream:
            pass
    except (PlangateError, Cut) as exc:
        return exc
    return None


def _goes_on(runtime: Runtime, tape: Tape, *, cut: bool) -> bool:
    """Do what lets the run go on as it did: the next owner comes, or a person answers."""
    view = runtime.view(tape.record.run.run_id)
    if view.ended is not None:
        return False
    pending = view.pending_questions
    if cut or not pending or tape.record.view.cancelled is not None:
        return _resumed(runtime, tape, pending)
    answered = [_answered(runtime, tape, each) for each in pending]
    if any(answered):
        tape.resume()
    return any(answered)


def _resumed(runtime: Runtime, tape: Tape, pending: Sequence[QuestionAsked]) -> bool:
    """Let the next owner come, who may find the run answered or cancelled."""
    answered = [_answered(runtime, tape, each) for each in pending]
    if not tape.resume() and not any(answered):
        return False
    _raise_limits(runtime, tape)
    cancel = tape.record.decisions.get(cancel_id(tape.record.run.run_id))
    if cancel is not None and tape.next_type == "stop_asked":
        runtime.journal.decisions.record(cancel)
    return True


def _raise_limits(runtime: Runtime, tape: Tape) -> None:
    """Raise the limits that people had raised by then."""
    entries = (each.entry for each in tape.record.items if each.life <= tape.life)
    events = [each.event for each in entries if each.event.type == "limit_raised"]
    with runtime.hold(tape.record.run.run_id) as session:
        for event in events[len(session.view.raised) :]:
            session.emit(event)


def _answered(runtime: Runtime, tape: Tape, question: QuestionAsked) -> bool:
    """Give a question the answer that it got, if it is the question that was answered."""
    key = question.question_id
    asked, said = tape.record.view.questions.get(key), tape.record.decisions.get(key)
    if asked is None or said is None or key not in tape.record.view.decisions:
        return False  # nobody answered, or the run has not taken it in yet
    about = (question.kind, question.step, question.content_hash)
    if (asked.kind, asked.step, asked.content_hash) != about:
        return False
    return runtime.journal.decisions.record(said).won


def _stops(
    tape: Tape, fault: str, changes: tuple[Change, ...], *, stopped: bool
) -> Iterator[Difference]:
    """Yield what stands in no log: calls that nobody ever made, and an end before the end."""
    why = tuple(each.says for each in changes)
    for what in dict.fromkeys(tape.unrecorded):
        yield Difference(kind="call", about=what, was="never made", would="made", why=why)
    if stopped or fault:
        place = f"to event {tape.place} of {tape.record.items[-1].entry.seq}"
        would = fault or "a stop there: no recorded answer fits what would be asked"
        yield Difference(kind="run", about=place, was="more", would=would, why=why)


def _changes(record: Record, runtime: Runtime) -> tuple[Change, ...]:
    """Return what today is not as it was when the run began, or at a later part of it."""
    catalog = runtime.kit.registry.catalog(record.run.principal.scopes)
    now = made_of(runtime.kit, catalog)
    found: dict[str, Change] = {}
    for was in record.prints:
        every = Rest(tools={*was.tools, *now.tools})
        for change in compare(was, now, every).changes:
            found.setdefault(change.part, change)
    return tuple(found.values())


def _need_same(record: Record, agent: Agent) -> None:
    """With another agent everything would differ, and nothing would be learnt."""
    if agent.name == record.run.agent:
        return
    here = Registry(agent.tools).catalog(record.run.principal.scopes).tools
    if not record.prints or set(here) != set(record.prints[0].tools):
        raise ConfigError(
            f"run {record.run.run_id} is of agent {record.run.agent!r}, and this is agent"
            f" {agent.name!r} with other tools",
            hint="Name the agent that the run was started with, or a changed copy of it.",
        )
