"""What is said to be sure, held against the queue that runs plans, whatever is skipped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from plangate.engine.queue import Limits, Needs, ReadyQueue
from plangate.plan.flow.sure import Sure
from plangate.plan.joins import stand_ins
from plangate.plan.schedule import ancestors, order
from plangate.plan.value.plan import Author, Plan
from plangate.plan.value.step import Join, Route, Step


def plan_of(*steps: Step) -> Plan:
    author = Author(kind="template", name="t")
    return Plan(goal_id="g", goal="x", task_type="t", steps=steps, author=author)


def step(step_id: str, *, reads: tuple[str, ...] = (), after: tuple[str, ...] = (), **more: str):
    args = {f"a{n}": f"${{{each}.x}}" for n, each in enumerate(reads)}
    return Step(id=step_id, objective="x", tool="t", args=args, after=after, **more)


def is_sure(plan: Plan, guard: str, before: str) -> bool:
    sure = Sure(plan, order(plan), [guard])
    return sure.holds(before, sure.bits([guard]))


@pytest.mark.parametrize(
    ("last", "sure"),
    [
        (step("S3", reads=("S2",)), True),
        (step("S3", after=("S2",)), False),
        (step("S3", reads=("S1",), after=("S2",)), False),
    ],
)
def test_a_guard_that_can_be_skipped_protects_who_reads_it_and_not_who_waits_for_it(last, sure):
    guard = step("S2", reads=("S1",), when="inputs.x == 1")

    assert is_sure(plan_of(step("S1"), guard, last), "S2", "S3") is sure


def test_what_had_to_be_done_for_what_is_read_is_sure_as_well():
    plan = plan_of(
        step("S1"),
        step("S2", reads=("S1",), when="inputs.x == 1"),
        step("S3", reads=("S2",)),
        step("S4", reads=("S3",)),
        step("S5", after=("S4",)),
    )

    assert [is_sure(plan, "S1", each) for each in ("S3", "S4", "S5")] == [True, True, False]
    assert [is_sure(plan, "S2", each) for each in ("S3", "S4", "S5")] == [True, True, False]


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    count = draw(st.integers(2, 7))
    ids = [f"S{n}" for n in range(count)]
    made: list[Step] = []
    for n, name in enumerate(ids):
        some = st.lists(st.sampled_from(ids[:n]), unique=True, max_size=3) if n else st.just([])
        reads, after = draw(some), draw(some)
        routes = [Route(on="transient", action="skip")] if draw(st.integers(0, 3)) == 0 else []
        for on in ("permanent", "denied"):
            if draw(st.booleans()):
                later = draw(st.integers(n + 1, count))
                if later < count:
                    routes.append(Route(on=on, action="fallback", step=ids[later]))
        modes = st.sampled_from(["all", "all", "any", "at_least", "when"] if n else ["all"])
        join = Join(
            mode=draw(modes),
            n=draw(st.integers(1, max(1, len({*reads, *after})))),
            rule="true",
            on_failure=draw(st.sampled_from(["fail", "fail", "partial"])),
        )
        made.append(
            Step(
                id=name,
                objective="x",
                tool=draw(st.sampled_from(["t", "u"])),
                args={f"a{at}": f"${{{each}.x}}" for at, each in enumerate(reads)},
                after=tuple(after),
                when="inputs.x == 1" if draw(st.integers(0, 3)) == 0 else None,
                routes=tuple(routes),
                join=join,
            )
        )
    plan = plan_of(*made)
    assume(len(order(plan)) == count and not any(layer_two(plan)))
    return plan


def layer_two(plan: Plan) -> Iterator[str]:
    """What layer 2 would refuse: shared stand-ins, and those that wait for a failure."""
    principals = stand_ins(plan)
    before = ancestors(plan, {step.id: step.needs for step in plan.steps})
    for step in plan.steps:
        yield from (each for each in stood_in(step) if principals.get(each) != step.id)
        yield from (each for each in stood_in(step) if step.id in before[each])


def stood_in(step: Step) -> list[str]:
    return [route.step or "" for route in step.routes if route.action == "fallback"]


@dataclass
class Walk:
    """One way through a plan: whatever may end a step ends it, in any order."""

    plan: Plan
    data: st.DataObject
    ended: dict[str, str] = field(default_factory=dict)
    called: dict[str, str] = field(default_factory=dict)
    running: list[str] = field(default_factory=list)

    def go(self) -> None:
        self.sure = Sure(self.plan, order(self.plan), tuple(self.plan.by_id))
        any_way = st.booleans()
        self.queue = ReadyQueue(self.plan, {}, Limits(), lambda _: self.data.draw(any_way))
        self.start()
        while self.running:
            at = self.data.draw(st.integers(0, len(self.running) - 1))
            self.end(self.running.pop(at), ("done", "done", "cancelled", "skipped"))
            self.start()

    def start(self) -> None:
        for now in self.queue.take(lambda _: Needs()):
            for guard in self.plan.by_id:
                is_sure = self.sure.holds(now, self.sure.bits([guard]))
                assert not is_sure or self.is_done(guard), (guard, now)
            principal = stand_ins(self.plan).get(now)
            assert principal is None or self.called[principal] == now
            self.running.append(now)

    def end(self, name: str, ways: tuple[str, ...]) -> None:
        assert name not in self.ended, "it ended before"
        step = self.plan.by_id[name]
        skips = step.when is not None or any(route.action == "skip" for route in step.routes)
        can = [way for way in (*ways, "failed") if way != "skipped" or skips]
        how = self.data.draw(st.sampled_from([*can, *(["handed_over"] if stood_in(step) else [])]))
        if how == "handed_over":
            self.called[name] = self.data.draw(st.sampled_from(stood_in(step)))
        self.settle(name, how)

    def settle(self, name: str, how: str) -> None:
        self.ended[name] = how
        for gone in self.queue.settle(name, how, self.called.get(name, "")):
            assert gone.step not in self.running, "it was started"
            if gone.why == "join_not_met":
                self.end(gone.step, ())
            else:
                assert gone.step not in self.ended, "it ended before"
                self.settle(gone.step, "skipped")

    def is_done(self, guard: str) -> bool:
        """True if it was done, or what it handed over to: the same by another step."""
        if self.ended.get(guard) != "handed_over":
            return self.ended.get(guard) == "done"
        other = self.called[guard]
        return self.plan.by_id[other].tool == self.plan.by_id[guard].tool and self.is_done(other)


@given(plan=plans(), data=st.data())
@settings(
    max_examples=4000, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow]
)
def test_nothing_that_is_sure_is_missing_when_a_step_starts(plan: Plan, data: st.DataObject):
    Walk(plan, data).go()
