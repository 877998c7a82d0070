"""Labels ride with values: what each finished step's output carries, by what it really read.

The plan was checked for information flow before it ran. This looks again when a step is released:
a step that was carried over from an earlier version has the labels of what it read *then*; a person
vouches only for the value that the question really showed; and a text that a later version of the
plan holds as a literal, but that first came out of an untrusted result, is that result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from plangate.journal.plans import plan_of
from plangate.plan.catalog import UNTRUSTED
from plangate.plan.flow.envelope import beyond
from plangate.plan.flow.labels import breaches
from plangate.plan.flow.trace import Trace, told, unrolled
from plangate.plan.schedule import order
from plangate.plan.value.refs import Ref, leaves, refs_in

if TYPE_CHECKING:
    from plangate.engine.bench import Bench
    from plangate.plan.catalog import ArgRule
    from plangate.plan.flow.labels import Hop, Output
    from plangate.plan.value.frozen import Json
    from plangate.plan.value.plan import Plan
    from plangate.plan.value.step import Step


def refusal_of_flow(bench: Bench, step: Step) -> str | None:
    """Return why the values of this moment must not go into a call, or None.

    Args:
        bench: The run.
        step: A tool step that is about to start.
    """
    spec = bench.catalog.tools.get(step.tool or "")
    for name, rule in spec.arg_rules.items() if spec is not None else ():
        sink = f"{step.tool}.{name}"
        for ref in refs_in(step.args.get(name)):
            if says := _refused(bench, step, ref, rule, sink):
                return says
        if rule.requires_trusted and (says := _copied(bench, step, name)):
            return f"untrusted data reaches {sink}: {says}"
    return None


def refusal_of_envelope(bench: Bench, step: Step) -> str | None:
    """Return why an agent step must not start, by today's contracts and real labels, or None."""
    if step.autonomy is None:
        return None
    made = bench.labels.trace(bench.plan.version).outputs.get(step.id)
    marks = made.read(()) if made is not None else {}
    found = next(beyond(step, bench.catalog, bench.policy, marks), None)
    return None if found is None else found.says


class RunLabels:
    """The labels of all values of a run, by plan version; made once for each owner's pass."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._traces: dict[int, Trace] = {}

    def plan(self, version: int) -> Plan:
        """Return a version of the run's plan."""
        bench = self._bench
        if version == bench.plan.version:
            return bench.plan
        return plan_of(bench.session, version)

    def trace(self, version: int) -> Trace:
        """Return the labels of a version: its own steps', and those that it took over."""
        if version not in self._traces:
            plan = self.plan(version)
            given = self._carried(version)
            bench = self._bench
            self._traces[version] = Trace(plan, bench.catalog, bench.policy, order(plan), given)
        return self._traces[version]

    def _carried(self, version: int) -> dict[str, Output]:
        view = self._bench.session.view
        proposed = view.plans.get(version)
        if proposed is None or not proposed.carried or version - 1 not in view.plans:
            return {}
        before = self.trace(version - 1).outputs
        ran_again = {name for name, seen in view.steps.items() if seen.plan_version == version}
        return {
            name: before[name]
            for name in proposed.carried
            if name in before and not (version == view.version and name in ran_again)
        }


def _refused(bench: Bench, step: Step, ref: Ref, rule: ArgRule, sink: str) -> str | None:
    trace, plan = bench.labels.trace(bench.plan.version), bench.plan
    marks = trace.read(ref, step)
    for label in breaches(rule, marks):
        return told(plan, label, marks[label], sink, step.id)
    bare = _without_voucher(trace, ref, step)
    if rule.requires_trusted and bare is not None and not _was_shown(bench, trace, ref, step):
        says = told(plan, UNTRUSTED, bare, sink, step.id)
        return f"{says}; nobody was shown and confirmed this very value"
    return None


def _without_voucher(trace: Trace, ref: Ref, step: Step) -> Hop | None:
    meant = unrolled(ref, step)
    source = trace.outputs.get(meant.head) if meant is not None else None
    return source.read(meant.path).get(UNTRUSTED) if source is not None and meant else None


def _was_shown(bench: Bench, trace: Trace, ref: Ref, step: Step) -> bool:
    """True if the payload of an answered question held this value, word for word."""
    meant = unrolled(ref, step)
    if meant is None:
        return False
    try:
        value = meant.resolve(bench.values(step))
    except KeyError:
        return False  # not one value but each of a list: nobody was shown this one by itself
    view = bench.session.view
    asking = frozenset(trace.vouchers(meant, step))
    for key, asked in view.questions.items():
        answer = view.decisions.get(key)
        if asked.kind != "step" or asked.step not in asking or answer is None:
            continue
        shown = bench.session.load(asked.payload)
        details = shown.get("details") if isinstance(shown, Mapping) else None
        if answer.answer.get("confirmed") is True and value in _parts(details):
            return True
    return False


def _parts(value: Json) -> Iterator[Json]:
    yield value
    if isinstance(value, Mapping):
        for item in value.values():
            yield from _parts(item)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for item in value:
            yield from _parts(item)


def _copied(bench: Bench, step: Step, name: str) -> str | None:
    """Find a literal that a later version took out of an untrusted result."""
    if bench.plan.author.kind not in ("planner", "replanner") or bench.plan.version == 1:
        return None
    literals = {
        value
        for _, value in leaves(step.args.get(name))
        if isinstance(value, str) and value and Ref.parse(value) is None
    }
    literals -= {value for _, value in leaves(bench.plan.inputs) if isinstance(value, str)}
    literals -= {value for value in bench.policy.constants if isinstance(value, str)}
    return _found_in_results(bench, literals) if literals else None


def _found_in_results(bench: Bench, literals: set[str]) -> str | None:
    trace, view = bench.labels.trace(bench.plan.version), bench.session.view
    for step_id in bench.outputs:
        output = trace.outputs.get(step_id)
        if output is None or UNTRUSTED not in output.read(()):
            continue
        known = _said_by(bench, view.steps[step_id].plan_version)
        for path, value in leaves(bench.outputs[step_id]):
            if value in literals and value not in known and UNTRUSTED in output.read(path):
                where = ".".join((step_id, *path))
                return f"{value!r} stands in {where}, and no plan held it before that was known"
    return None


def _said_by(bench: Bench, version: int) -> set[str]:
    """Return the texts of all versions up to one."""
    versions = [each for each in bench.session.view.plans if each <= version]
    return {
        value
        for each in versions
        for step in bench.labels.plan(each).steps
        for _, value in leaves(step.args)
        if isinstance(value, str)
    }
