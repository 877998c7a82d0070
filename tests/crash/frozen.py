"""Freezes a process past its lease, has others go on with its run, and wakes the first. Not a test.

python -m tests.crash.frozen FOLDER POINT KIND insist|leave
"""

# ruff: noqa: T201 (a program whose output a test reads)
from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from plangate.effects import reconcile
from plangate.graph.payload import Answer
from plangate.journal.points import watch
from plangate.plan.errors import EffectUnknown, PlangateError, RunBusy
from plangate.runtime import Options, Runtime
from tests.crash.outside import agent_of
from tests.crash.trial import Place, child, forked, run_to_the_end

TTL_S = 1.0
_PATIENCE_S = 20.0
_IDLE_S = 0.2
"""After so long without a commit the writer has nothing to write."""


def opened(place: Place) -> Runtime:
    options = Options(world_url=str(place.outside.path), ttl_s=TTL_S)
    return Runtime(agent_of(place.kind), place.journal_url, options)


def freezing(place: Place, point: str) -> None:
    """Run until the point, stop there as a debugger would, and go on whenever it is woken."""
    left, written = [point], threading.Event()

    def freeze(here: str) -> None:
        if here == "log.written":
            written.set()
        if here in left:
            left.remove(here)
            # Not in the middle of a transaction: whoever stops there keeps SQLite's one write lock.
            written.clear()
            while written.wait(_IDLE_S):
                written.clear()
            os.kill(os.getpid(), signal.SIGSTOP)

    watch(freeze)
    said = ""
    try:
        run_to_the_end(place, opened(place))
    except PlangateError as exc:
        said = type(exc).__name__
    (place.folder / "frozen.txt").write_text(said)


def finishing(place: Place) -> None:
    """Take the run over once its lease is out; stop where a person is asked about the effect."""
    until = time.monotonic() + _PATIENCE_S
    runtime = opened(place)
    while time.monotonic() < until:
        try:
            run_to_the_end(place, runtime, leave="effect")
        except RunBusy:
            time.sleep(0.1)  # what ends is another process's lease
        else:
            break
    runtime.close()


def insisting(place: Place) -> None:
    """Have a person try again and the outside be asked again, each time as another owner."""
    runtime = opened(place)
    for _ in range(2):
        asked = runtime.view(place.run_id).pending_questions[0]
        runtime.answer(asked.question_id, Answer(decision="retry", by="ann"))
        run_to_the_end(place, runtime, leave="effect")
        with suppress(EffectUnknown):
            reconcile(runtime, f"act:{place.run_id}", by="ann")
    runtime.close()


def main(folder: str, point: str, kind: str, then: str) -> None:
    place = Place(Path(folder), f"sqlite:///{folder}/journal.db", "run_frozen", kind)
    first = child(lambda: freezing(place, point))
    _, status = os.waitpid(first, os.WUNTRACED)
    assert os.WIFSTOPPED(status), "it was to stop at the point"
    try:
        assert forked(lambda: finishing(place)) == 0, "the other process did not finish the run"
        if then == "insist":
            assert forked(lambda: insisting(place)) == 0, "asking again did not end well"
    except BaseException:
        os.kill(first, signal.SIGKILL)  # whoever stands still is not left behind
        raise
    os.kill(first, signal.SIGCONT)
    os.waitpid(first, 0)
    assert forked(lambda: print_result(place)) == 0


def print_result(place: Place) -> None:
    runtime = opened(place)
    asked = [each.step for each in runtime.view(place.run_id).pending_questions]
    run_to_the_end(place, runtime)
    ended = runtime.view(place.run_id).ended
    entries = runtime.journal.log.read(place.run_id)
    rows = runtime.journal.ledger.list(run_id=place.run_id)
    print(
        json.dumps(
            {
                "frozen": (place.folder / "frozen.txt").read_text(),
                "asked": asked,
                "effects": place.outside.count()[place.run_id],
                "epochs": [entry.epoch for entry in entries],
                "seqs": [entry.seq for entry in entries],
                "verdict": ended.verdict if ended else "",
                "ledger": [row.state for row in rows],
            }
        )
    )
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
