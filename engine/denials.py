"""What a run was denied so far, read off its journal, for validation and for the last look.

Counted are refusals of rights and policy, of tools that answer "denied", and of people. A plan that
was merely not approved yet, or not validated, was not denied anything.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from plangate.engine.outputs import Outputs
from plangate.journal.plans import read_plan
from plangate.journal.progress import newest
from plangate.plan.flow.denial import denial_of, denied_before
from plangate.plan.value.refs import resolve_all

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from plangate.engine.bench import Bench
    from plangate.journal.events import StepEnded
    from plangate.journal.recorded import Recorded
    from plangate.plan.flow.denial import Denial
    from plangate.plan.value.frozen import Json
    from plangate.plan.value.plan import Plan
    from plangate.plan.value.step import Step
    from plangate.tools.tool import Tool

_REFUSED_PLANS = frozenset({"policy_denied", "missing_scope", "forbidden_tool", "wrong_tenant"})
"""Issues that are denials; all others are faults that a planner may mend."""

_NO_DENIALS = frozenset(
    {"not_validated", "approval_missing", "approval_expired", "denied_before", "rights_unknown"}
)
_PERSONS_WORD = frozenset({"rejected", "step_not_approved"})


def refusal_of_denial(bench: Bench, step: Step, args: Mapping[str, Json]) -> str | None:
    """Return why a call would only repeat by another tool what was denied, or None.

    Args:
        bench: The run.
        step: A tool step that is about to start.
        args: Its resolved arguments.
    """
    tool = bench.tools.get(step.tool or "")
    denials = bench.denials.now()
    return denied_before(denials, step.id, tool.spec, args) if denials and tool else None


@dataclass(slots=True)
class Denials:
    """The denials of one run; folded again only when there can be new ones.

    Args:
        record: The run.
        tools: All tools, those that the principal does not see among them.
    """

    record: Recorded
    tools: Mapping[str, Tool]
    _plans: dict[int, Plan] = field(default_factory=dict)
    _seen: tuple[int, ...] = ()
    _found: tuple[Denial, ...] = ()

    def now(self) -> tuple[Denial, ...]:
        """Return what was denied so far."""
        view = self.record.view
        seen = (len(view.denied), len(view.validated), len(view.decisions))
        if seen != self._seen:
            self._seen, self._found = seen, tuple(dict.fromkeys(self._all()))
        return self._found

    def _all(self) -> Iterator[Denial]:
        yield from self._refused_plans()
        for ended in self.record.view.denied:
            if ended.error_code not in _NO_DENIALS:
                yield from self._ended(ended)
        yield from self._persons_words()

    def _refused_plans(self) -> Iterator[Denial]:
        for version, checked in self.record.view.validated.items():
            for each in checked.issues if not checked.valid else ():
                if each.code in _REFUSED_PLANS and each.field == "tool" and each.step is not None:
                    yield from self._of(version, each.step, each.says)

    def _persons_words(self) -> Iterator[Denial]:
        view = self.record.view
        for key, decision in view.decisions.items():
            asked = view.questions.get(key)
            if asked is None or asked.kind != "approval":
                continue
            version = asked.plan_version
            denied = dict(decision.denied)
            if decision.decision == "reject":
                named = decision.steps or tuple(self._plan(version).by_id)
                denied |= dict.fromkeys(named, f"{decision.by} rejected it")
            for step, why in denied.items():
                yield from self._of(version, step, why, by_person=True)

    def _ended(self, ended: StepEnded) -> Iterator[Denial]:
        by_person = ended.error_code in _PERSONS_WORD
        for known in self._args(ended):
            yield from self._of(
                ended.plan_version, ended.step, ended.why, known=known, by_person=by_person
            )

    def _of(
        self,
        version: int,
        step_id: str,
        why: str,
        *,
        known: Mapping[str, Json] | None = None,
        by_person: bool = False,
    ) -> Iterator[Denial]:
        plan = self._plan(version)
        step = plan.by_id.get(step_id)
        tool = self.tools.get(step.tool or "") if step is not None else None
        if step is None or tool is None or (by_person and not tool.spec.effect.acts):
            return  # a person rejects what a plan does, not that it looks
        said = denial_of(step, plan, tool.spec, why, known=known)
        yield said.model_copy(update={"by_person": by_person})

    def _args(self, ended: StepEnded) -> list[Mapping[str, Json] | None]:
        """Return the values that the step ran with, or would have run with; of a list, of each."""
        view = self.record.view
        seen = {
            name: each
            for name, each in view.attempts.items()
            if each.started.step == ended.step and each.started.plan_version == ended.plan_version
        }
        tried = newest(seen, seen)
        denied = [each for each in tried if each.ended and each.ended.outcome == "denied"]
        meant = denied or [each for each in tried if each.started.element is None]
        if not meant:
            return [self._planned(ended)]
        return [cast("Mapping[str, Json]", self.record.load(each.started.args)) for each in meant]

    def _planned(self, ended: StepEnded) -> Mapping[str, Json] | None:
        view = self.record.view
        if ended.plan_version != view.version:
            return None
        plan = self._plan(ended.plan_version)
        step = plan.by_id.get(ended.step)
        outputs = Outputs(plan, lambda: self.record.view, self.record.load)
        try:
            resolved = resolve_all(step.args, outputs.read_by(step)) if step is not None else {}
        except KeyError:
            return None
        return cast("Mapping[str, Json]", resolved)

    def _plan(self, version: int) -> Plan:
        if version not in self._plans:
            self._plans[version] = read_plan(self.record.view, self.record.load, version)
        return self._plans[version]
