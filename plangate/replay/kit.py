"""What the nodes of a replay are given: the agent's own kit, with the record for an outside."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from plangate.engine.brake import Brake
from plangate.nodes.kit import Kit, Models
from plangate.nodes.worked import worked_before_s
from plangate.plan.contract import MODEL
from plangate.replay.chats import RecordedJudge, RecordedStepModel
from plangate.replay.outside import NoWorld, Outside
from plangate.tools.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable

    from plangate.engine.bench import Bench
    from plangate.journal.journal import Journal
    from plangate.journal.session import Session
    from plangate.plan.value.plan import Plan
    from plangate.replay.record import Record


@dataclass(frozen=True, kw_only=True)
class ReplayKit(Kit):
    """A kit whose outside, clock and pauses are those of a tape."""

    outside: Outside

    @classmethod
    def over(cls, kit: Kit, outside: Outside, journal: Journal) -> ReplayKit:
        """Put a record under a kit; what had succeeded before is still in its journal."""
        given: dict[str, Any] = {each.name: getattr(kit, each.name) for each in fields(Kit)}
        given |= {
            "registry": Registry(outside.tools(tuple(kit.registry.values()))),
            "world": NoWorld(connect=lambda: None, opened=outside.opened),
            "now": outside.tape.now,
            "authorizer": outside,
            "jitter": lambda: 0.0,
            "verified": journal.verified.counts,
            "recall": journal.usage.of,
            "step_model": _named(kit, outside.tape.record),
        }
        return cls(**given, outside=outside)

    async def acting_for(self, session: Session) -> Kit:
        """Have each event of the run pass the tape."""
        session.before_event = self.outside.tape.emitting
        self.outside.tape.stop = session.stop.ask
        return await Kit.acting_for(self, session)

    def models(self) -> Models:
        """Return models that only say what is on the record."""
        step, judge = Kit.models(self)
        tape = self.outside.tape
        return Models(
            None if step is None else RecordedStepModel(step.chat, step.book, self.outside),
            None if judge is None else RecordedJudge(judge.chat, judge.book, tape),
        )

    def bench(
        self, session: Session, plan: Plan, report: Callable[[Any], None] | None = None
    ) -> Bench:
        """Put the plan on a bench whose time is recorded time."""
        del report
        tape, made = self.outside.tape, Kit.bench(self, session, plan, self.outside.told)
        worked = worked_before_s(session, plan, self.limits(session, plan.budget))
        return replace(
            made,
            monotonic=tape.monotonic,
            started_s=tape.monotonic() - worked,
            brake=NoPause(),
        )


def _named(kit: Kit, record: Record) -> Any:
    """Name the model of model steps: as it is recorded, unless the agent has its own."""
    prints = [each.tools[MODEL].version for each in record.prints if MODEL in each.tools]
    if kit.step_model is kit.model and prints:
        return SimpleNamespace(model_name=prints[-1])
    return kit.step_model


class NoPause(Brake):
    """A brake between whose attempts no time passes."""

    async def pause(self, seconds: float) -> None:
        """Do not wait: the recorded attempt has waited."""
