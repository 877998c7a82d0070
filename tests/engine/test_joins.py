from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import TypedDict

from plangate.engine.asked import details_of
from plangate.engine.dataflow import run_plan
from plangate.engine.ended import IN_FLIGHT, handed_over, routed
from plangate.engine.queue import Gone, Limits, Needs, ReadyQueue
from plangate.journal.events import PlanProposed, StepEnded, StepReleased
from plangate.plan.value.plan import Author, Plan
from plangate.plan.value.step import Check, Join, Question, Route, Step
from plangate.tools.answers import ToolFailed
from plangate.tools.tool import Tool, tool


class Seen(TypedDict):
    value: int


def look(body: Any) -> Tool:
    @tool(effect="read", errors={"gone": "permanent"})
    async def look(n: int, extra: int | None = None) -> Seen:
        """Look."""
        return await body(n, extra)

    return look


def pay(body: Any) -> Tool:
    @tool(effect="write", key="pay:{n}", scope="goal", errors={"gone": "permanent"})
    async def pay(n: int) -> Seen:
        """Pay."""
        return await body(n)

    return pay


def failing(*bad: int) -> Any:
    async def body(n: int, extra: int | None = None) -> Seen:
        if n in bad:
            raise ToolFailed("gone")
        return {"value": n if extra is None else n + extra}

    return body


def step(name: str, n: Any = 0, *after: str, using: str = "look", **more: Any) -> Step:
    args = {"n": n, **more.pop("args", {})}
    return Step(id=name, objective="o", tool=using, args=args, after=after, **more)


def plan_of(*steps: Step) -> Plan:
    author = Author(kind="template")
    return Plan(goal_id="g", goal="goal", task_type="t", steps=steps, author=author)


def statuses(session: Any) -> dict[str, str]:
    return {name: seen.status for name, seen in session.view.steps.items()}


def released(lab: Any, session: Any, name: str) -> StepReleased:
    events = [each.event for each in lab.journal.log.read(session.run.run_id)]
    return next(e for e in events if isinstance(e, StepReleased) and e.step == name)


HANDS_OVER = (Route(on="gone", action="fallback", step="b"),)


async def test_a_stand_in_gives_its_output_in_place_of_the_step_that_failed(lab):
    plan = plan_of(
        step("a", 1, routes=HANDS_OVER),
        step("b", 7),
        step("reads", "${a.value}"),
        step("last", 0, "a"),
    )

    halt, session = await lab.run(plan, [look(failing(1))])

    assert halt.reason == "done"
    assert statuses(session) == {"a": "handed_over", "b": "done", "reads": "done", "last": "done"}
    assert session.load(session.view.steps["reads"].output) == {"value": 7}
    session.close()


async def test_a_stand_in_that_is_not_needed_never_runs_and_holds_nobody_up(lab):
    plan = plan_of(
        step("slow", 3),
        step("a", 1, routes=HANDS_OVER),
        step("b", 7, "slow"),
        step("reads", "${a.value}"),
    )
    ran = []

    async def body(n: int, extra: int | None) -> Seen:
        if n == 3:
            await asyncio.sleep(0.05)
        ran.append(n)
        return {"value": n}

    halt, session = await lab.run(plan, [look(body)])

    assert (halt.reason, statuses(session)["b"]) == ("done", "skipped")
    assert session.view.steps["b"].why == "a needs no stand-in"
    assert ran == [1, 1, 3], "the reader of a did not wait for what only the stand-in waits for"
    session.close()


async def test_only_the_stand_in_that_the_route_names_takes_over(lab):
    """Two ways for two failures: both of them would be a payment too many."""
    routes = (*HANDS_OVER, Route(on="transient", action="fallback", step="c"))
    plan = plan_of(
        step("a", 1, using="pay", routes=routes),
        step("b", 2, using="pay"),
        step("c", 3, using="pay"),
        step("reads", "${a.value}"),
    )
    _, session = await lab.run(plan, [pay(failing(1, 2)), look(failing())])
    assert statuses(session) == {"a": "handed_over", "b": "failed", "c": "skipped"}
    session.close()

    _, session = await lab.run(plan, [pay(failing(1)), look(failing())])

    assert statuses(session) == {"a": "handed_over", "b": "done", "c": "skipped", "reads": "done"}
    assert session.load(session.view.steps["reads"].output) == {"value": 2}
    session.close()


async def test_a_stand_in_that_a_repair_put_in_place_of_another_is_the_one_that_is_read(
    lab,
):
    routes = (*HANDS_OVER, Route(on="transient", action="fallback", step="c"))
    plan = plan_of(step("a", 1, routes=routes), step("b", 1), step("c", 3), step("r", "${a.value}"))
    _, session = await lab.run(plan, [look(failing(1))])
    routes = (Route(on="gone", action="fallback", step="b2"), routes[1])
    new = plan_of(step("a", 1, routes=routes), step("b2", 5), step("c", 3), step("r", "${a.value}"))
    session.emit(
        PlanProposed(
            version=2,
            plan=session.put(new.model_dump(mode="json")),
            content_hash=new.content_hash,
            author=new.author,
            carried=("a", "c"),
        )
    )
    run_id = session.run.run_id
    session.close()

    halt, again = await lab.run(new.model_copy(update={"version": 2}), [look(failing(1))], run_id)

    assert halt.reason == "done"
    assert again.load(again.view.steps["r"].output) == {"value": 5}
    assert again.view.attempts["r-A1"].started.inputs == ("obs://b2-A1",)
    again.close()


async def test_a_question_shows_what_the_stand_in_gave(lab):
    asked = Question(audience="customer", type="confirm", text="?", details={"v": "${a.value}"})
    human = Step(id="h", objective="o", kind="human", question=asked)
    plan = plan_of(step("a", 1, routes=HANDS_OVER), step("b", 7), human)

    halt, session = await lab.run(plan, [look(failing(1))])

    assert (halt.reason, details_of(session, plan, human)) == ("question", {"v": 7})
    session.close()


async def test_where_the_stand_in_fails_too_its_failure_is_the_one_to_think_about(lab):
    plan = plan_of(step("a", 1, routes=HANDS_OVER), step("b", 1), step("reads", "${a.value}"))

    halt, session = await lab.run(plan, [look(failing(1))])

    assert (halt.reason, halt.step, halt.code) == ("trigger", "b", "gone")
    assert statuses(session) == {"a": "handed_over", "b": "failed"}
    session.close()


async def test_stand_ins_can_have_stand_ins(lab):
    then = (Route(on="permanent", action="fallback", step="c"),)
    plan = plan_of(
        step("a", 1, routes=HANDS_OVER),
        step("b", 1, routes=then),
        step("c", 9),
        step("r", "${a.value}"),
    )

    halt, session = await lab.run(plan, [look(failing(1))])

    assert halt.reason == "done"
    assert session.load(session.view.steps["r"].output) == {"value": 9}
    session.close()


@pytest.mark.parametrize("on", ["unexpected_state", "unknown"])
async def test_what_may_have_been_done_is_never_done_in_another_way(lab, on):
    """A payment that was made and does not look as expected: its stand-in would pay again."""
    check = Check(id="right", level="L1", claim="The amount is right", rule="result.value == 5")
    route = (Route(on=on, action="fallback", step="b"),)
    plan = plan_of(
        step("a", 1, using="pay", success=(check,), routes=route), step("b", 7, using="pay")
    )
    paid = []

    async def body(n: int) -> Seen:
        paid.append(n)
        return {"value": n}

    halt, session = await lab.run(plan, [pay(body)])

    assert (halt.reason, halt.step) == ("trigger", "a")
    assert paid == [1]
    session.close()


async def test_what_somebody_else_is_doing_now_is_not_done_in_another_way_beside_it(lab):
    routes = (Route(on="transient", action="fallback", step="b"),)
    plan = plan_of(step("a", 1, using="pay", routes=routes), step("b", 7, using="pay"))
    session = await asyncio.to_thread(lab.session)
    bench, ends = lab.bench(session, plan, [pay(failing())]), []
    for code in (IN_FLIGHT, "busy"):
        failed = routed(plan.by_id["a"], "failed", "transient", code, "")
        ends.append(handed_over(bench, plan.by_id["a"], failed).status)

    assert ends == ["failed", "handed_over"]
    session.close()


async def test_an_act_that_surely_did_not_happen_is_handed_over(lab):
    plan = plan_of(step("a", 1, using="pay", routes=HANDS_OVER), step("b", 7, using="pay"))

    halt, session = await lab.run(plan, [pay(failing(1))])

    assert (halt.reason, statuses(session)) == ("done", {"a": "handed_over", "b": "done"})
    session.close()


async def test_a_hand_over_survives_the_owner_that_made_it(lab):
    plan = plan_of(step("a", 1, routes=HANDS_OVER), step("b", 7), step("reads", "${a.value}"))
    _, session = await lab.run(plan, [look(failing(1, 7))])
    run_id = session.run.run_id
    session.close()

    halt, again = await lab.run(plan, [look(failing())], run_id)

    assert (halt.reason, halt.step) == ("trigger", "b")
    assert statuses(again) == {"a": "handed_over", "b": "failed"}
    again.close()


@pytest.mark.parametrize(
    ("join", "bad", "ends"),
    [
        (Join(mode="any"), (1, 2), {"join": "done"}),
        (Join(mode="any"), (1, 2, 3), {"join": "failed"}),
        (Join(mode="at_least", n=2), (1,), {"join": "done"}),
        (Join(mode="at_least", n=2), (1, 2), {"join": "failed"}),
        (Join(mode="at_least", n=2, on_failure="partial"), (1, 2), {"join": "done"}),
        (Join(mode="all", on_failure="partial"), (1, 2), {"join": "done"}),
        (Join(mode="when", rule="steps.c.status == 'done'"), (1, 2), {"join": "done"}),
        (Join(mode="when", rule="steps.c.status == 'done'"), (3,), {"join": "failed"}),
    ],
)
async def test_a_join_starts_with_what_it_declares_to_be_enough(lab, join, bad, ends):
    plan = plan_of(
        step("a", 1), step("b", 2), step("c", 3), step("join", 4, "a", "b", "c", join=join)
    )

    halt, session = await lab.run(plan, [look(failing(*bad))])

    assert statuses(session)["join"] == ends["join"]
    expected = ("done", "") if ends["join"] == "done" else ("trigger", "join_not_met")
    assert (halt.reason, halt.code) == expected
    session.close()


async def test_gaps_are_named_and_leave_optional_arguments_out(lab):
    plan = plan_of(
        step("a", 1),
        step("b", 2),
        step(
            "join",
            4,
            args={"extra": "${a.value}"},
            join=Join(on_failure="partial"),
        ).model_copy(update={"after": ("b",)}),
    )

    _, session = await lab.run(plan, [look(failing(1))])

    assert released(lab, session, "join").gaps == ("a",)
    assert session.view.steps["join"].gaps == ("a",)
    assert session.load(session.view.steps["join"].output) == {"value": 4}
    session.close()


async def test_the_reads_that_lost_are_cancelled_and_said_to_be(lab):
    cancelled = []

    async def body(n: int, extra: int | None) -> Seen:
        try:
            await asyncio.sleep(30 if n == 2 else 0)
        except asyncio.CancelledError:
            cancelled.append(n)
            raise
        return {"value": n}

    join = Join(mode="any", cancel_rest=True)
    plan = plan_of(
        step("quick", 1), step("slow", 2), step("behind", 3, "slow"),
        step("join", 4, "quick", "behind", join=join),
    )  # fmt: skip

    halt, session = await asyncio.wait_for(lab.run(plan, [look(body)]), 10)

    assert halt.reason == "done"
    assert cancelled == [2]
    assert statuses(session) == {
        "quick": "done", "join": "done", "slow": "cancelled", "behind": "cancelled"
    }  # fmt: skip
    assert session.view.steps["slow"].error_code == "not_needed"
    session.close()


async def test_what_an_act_waits_for_is_no_loser(lab):
    """The act goes on, so what it needs goes on: else the run would be stranded before it."""
    plan = plan_of(
        step("quick", 1), step("slow", 2), step("act", 3, "slow", using="pay"),
        step("join", 4, "quick", "act", join=Join(mode="any", cancel_rest=True)),
    )  # fmt: skip

    async def body(n: int, extra: int | None = None) -> Seen:
        await asyncio.sleep(0.05 if n == 2 else 0)
        return {"value": n}

    halt, session = await lab.run(plan, [look(body), pay(body)])

    assert (halt.reason, set(statuses(session).values())) == ("done", {"done"})
    session.close()


async def test_an_act_that_started_goes_on_and_ends_once_if_its_rule_holds_no_more(lab):
    paying, failed = asyncio.Event(), asyncio.Event()

    def report(said: Any) -> None:
        if said["type"] == "step_ended" and said["step"] == "b":
            asyncio.get_running_loop().call_later(0.01, failed.set)

    async def looks(n: int, extra: int | None) -> Seen:
        if n == 2:
            await paying.wait()
            raise ToolFailed("gone")
        return {"value": n}

    async def pays(n: int) -> Seen:
        paying.set()
        await failed.wait()
        return {"value": n}

    rule = "steps.a.status == 'done' && steps.b.status != 'failed'"
    join = Join(mode="when", rule=rule)
    plan = plan_of(step("a", 1), step("b", 2), step("act", 3, "a", "b", using="pay", join=join))
    session = await asyncio.to_thread(lab.session)

    bench = lab.bench(session, plan, [look(looks), pay(pays)])
    await run_plan(replace(bench, report=report))
    await session.aflush()

    ends = [each.event for each in lab.journal.log.read(session.run.run_id)]
    mine = [each.status for each in ends if isinstance(each, StepEnded) and each.step == "act"]
    assert mine == ["done"]
    session.close()


def test_what_an_owner_started_under_a_rule_is_taken_up_whatever_the_rule_says_by_then():
    join = Join(mode="when", rule="false")
    plan = plan_of(step("a", 1), step("act", 3, "a", using="pay", join=join))
    ready = ReadyQueue(plan, {}, Limits(), lambda _: False)

    assert ready.restore({"a": "done", "act": "running"}) == []
    assert ready.take(lambda _: Needs()) == ["act"]


async def test_what_somebody_else_still_needs_is_no_loser(lab):
    join = Join(mode="any", cancel_rest=True)
    plan = plan_of(
        step("quick", 1), step("slow", 2), step("join", 4, "quick", "slow", join=join),
        step("needs", "${slow.value}"),
    )  # fmt: skip

    async def body(n: int, extra: int | None) -> Seen:
        await asyncio.sleep(0.05 if n == 2 else 0)
        return {"value": n}

    halt, session = await lab.run(plan, [look(body)])

    assert (halt.reason, statuses(session)["slow"]) == ("done", "done")
    session.close()


@st.composite
def joined_plans(draw: st.DrawFn) -> Plan:
    steps: list[Step] = []
    for n in range(draw(st.integers(2, 8))):
        before = [each.id for each in steps if draw(st.booleans())]
        mode = draw(st.sampled_from(["all", "any", "at_least"])) if before else "all"
        failure = draw(st.sampled_from(["fail", "partial"]))
        join = Join(
            mode=mode, n=draw(st.integers(1, len(before))) if before else None, on_failure=failure
        )
        steps.append(step(f"s{n}", 0, *before, join=join))
    free = [each.id for each in steps if not any(each.id in other.needs for other in steps)]
    if len(free) > 1 and draw(st.booleans()):
        routes = (Route(on="permanent", action="fallback", step=free[-1]),)
        at = next(n for n, each in enumerate(steps) if each.id == free[0])
        steps[at] = steps[at].model_copy(update={"routes": routes})
    return plan_of(*steps)


@given(joined_plans(), st.randoms(use_true_random=False))
def test_each_step_starts_at_most_once_and_every_one_is_accounted_for(plan, random):
    ready = ReadyQueue(plan, {}, Limits())
    running, started, ends = ready.take(lambda _: Needs()), [], {}
    started += running

    def end(name: str, status: str) -> None:
        assert name not in ends
        ends[name] = status
        called = plan.by_id[name].routes[0].step if status == "handed_over" else ""
        for gone in ready.settle(name, status, called):
            assert isinstance(gone, Gone)
            assert gone.step not in started
            end(gone.step, "failed" if gone.why == "join_not_met" else "skipped")

    while running:
        name = running.pop(random.randrange(len(running)))
        has_route = bool(plan.by_id[name].routes)
        end(name, random.choice(["done", "done", "handed_over" if has_route else "failed"]))
        new = ready.take(lambda _: Needs())
        started += new
        running += new

    assert len(started) == len(set(started))
    blocked = {name for name in plan.by_id if name not in ends}
    for name in blocked:
        assert any(ends.get(need) == "failed" or need in blocked for need in ready._needs[name])
