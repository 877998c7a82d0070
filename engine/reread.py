"""Between a yes and the effect the world is read again: what the yes rested on must still stand.

Looked at are the reads that feed the effect and ended before the approval, or before a person
answered on the way to it. Where an object shows another version now, or none, the approval is void
and the gate asks again with the difference.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from plangate.engine.asked import answer_to
from plangate.engine.call import Returned
from plangate.engine.charge import hold, look
from plangate.engine.release import Held, Ready
from plangate.journal.progress import newest
from plangate.journal.questions import (
    Moved,
    WorldMoved,
)
from plangate.plan.catalog import Effect
from plangate.plan.effects import evidence_of
from plangate.plan.joins import waits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from plangate.engine.bench import Bench
    from plangate.journal.progress import AttemptView
    from plangate.plan.value.step import Step


async def reread(bench: Bench, step: Step, ready: Ready | Held) -> Ready | Held:
    """Hold an approved effect back if the world is not as it was when it was approved.

    Args:
        bench: The run.
        step: A step that `prepare` looked at.
        ready: What `prepare` said; a step that is held, reads, or needs no approval stays as it is.
    """
    if isinstance(ready, Held) or ready.approval is None or not _wanted(bench, step):
        return ready
    moved = await _moved(bench, step, ready.approval)
    if not moved:
        return ready
    bench.session.emit(
        WorldMoved(step=step.id, content_hash=bench.plan.content_hash, objects=moved)
    )
    says = "; ".join(f"{m.object} was {m.was}, is {m.now or 'not readable'}" for m in moved)
    return Held("waiting", "denied", "world_moved", f"changed since it was approved: {says}")


async def _moved(bench: Bench, step: Step, approval: str) -> tuple[Moved, ...]:
    was: dict[str, str] = {}
    now: dict[str, set[str | None]] = {}
    for attempt in _rested_on(bench, step, approval):
        shown = dict(_split(attempt.ended.observed if attempt.ended else ()))
        if not shown or await _is_fresh(bench, attempt):
            continue
        was |= shown
        for name, version in _split(await _read(bench, attempt)):
            now.setdefault(name, set()).add(version)
    known = _known(bench, was)
    return tuple(
        Moved(
            object=name, was=was[name], now=max((v for v in seen - known[name] if v), default=None)
        )
        for name in was
        if not (seen := now.get(name, {None})) <= known[name]
    )


def _wanted(bench: Bench, step: Step) -> bool:
    spec = bench.catalog.tools.get(step.tool or "")
    return bench.policy.reread and spec is not None and spec.effect is Effect.IRREVERSIBLE


def _rested_on(bench: Bench, step: Step, approval: str) -> Iterator[AttemptView]:
    """Yield the attempts of reads before the step whose result a person's yes could rest on."""
    view, plan = bench.session.view, bench.plan
    before = _ancestors(bench, step)
    said = [view.decided.get(approval, 0)]
    for name in before:
        asks = plan.by_id[name]
        answer = answer_to(bench.session, plan, asks) if asks.kind == "human" else None
        if answer is not None:
            said.append(view.decided.get(answer.question_id, 0))
    for name in before:
        seen, spec = view.steps.get(name), bench.catalog.tools.get(plan.by_id[name].tool or "")
        if seen is None or seen.status != "done" or spec is None or spec.effect.acts:
            continue
        for tried in newest(view.attempts, seen.attempts):
            if tried.ended is not None and tried.ended_seq < max(said):
                yield tried


def _ancestors(bench: Bench, step: Step) -> list[str]:
    """Return what stands before a step, the stand-ins that took over among it."""
    found: dict[str, None] = {}
    needs = waits(bench.plan)
    waiting = sorted(needs[step.id])
    while waiting:
        name = waiting.pop()
        if name not in found and name in needs:
            found[name] = None
            waiting += sorted(needs[name])
    return [each.id for each in bench.plan.steps if each.id in found]


def _known(bench: Bench, was: Mapping[str, str]) -> dict[str, set[str | None]]:
    """Return what a person who approved knew of: the first version, and each change shown since."""
    known: dict[str, set[str | None]] = {name: {version} for name, version in was.items()}
    for event in bench.session.view.moved:
        for each in event.objects:
            known.get(each.object, set()).add(each.now)
    return known


def _split(observed: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield object and version of each evidence reference that has one."""
    for ref in observed:
        name, _, rest = ref.partition("?version=")
        if rest:
            yield name, rest.partition("#")[0]


async def _is_fresh(bench: Bench, attempt: AttemptView) -> bool:
    """True while the tool itself says that its result may still be used."""
    spec = bench.tools[attempt.started.capability.partition("@")[0]].spec
    if spec.validity_s is None:
        return False
    session = bench.session
    await session.aflush()
    entries = await asyncio.to_thread(
        session.journal.log.read, session.run.run_id, attempt.ended_seq - 1, 1
    )
    age_s = (bench.now() - entries[0].at).total_seconds() if entries else spec.validity_s
    return 0 <= age_s < spec.validity_s


async def _read(bench: Bench, attempt: AttemptView) -> tuple[str, ...]:
    """Read once more with the arguments of then; what cannot be read shows nothing."""
    started = attempt.started
    tool = bench.tools.get(started.capability.partition("@")[0])
    args = bench.session.load(started.args)
    if tool is None or tool.spec.effect.acts or not isinstance(args, dict):
        return ()
    by = f"{started.attempt_id}-again"
    got = await look(tool, args, await hold(bench, tool.spec, by, started.step))
    return evidence_of(tool.spec, args, got.output) if isinstance(got, Returned) else ()
