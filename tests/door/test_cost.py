from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa
from langchain_core.messages import AIMessage
from langgraph.types import Command

from plangate import build_preview, tool
from plangate.agent import Agent, load_agent
from plangate.budget.history import tool_subject
from plangate.budget.prices import PriceBook
from plangate.graph.payload import Answer
from plangate.journal.journal import Journal
from plangate.journal.samples import Sample, Used
from plangate.journal.usage import note_usage
from plangate.nodes.cost import cost_of, held
from plangate.plan.facts import Rights
from plangate.plan.preview import unforeseen
from plangate.plan.templates import Template
from plangate.plan.value.frozen import parse
from plangate.runtime import Options, Runtime, new_run_id
from tests.door.holds import POLICY, WORLD, Seat, desk, hold, look, note, release
from tests.door.test_history import SHORT

SUBJECT = tool_subject("hold", "1")


@pytest.fixture
def trips(tmp_path):
    with desk(tmp_path, templates=(SHORT,)) as made:
        yield made


def remember(journal: Journal, seconds: float, count: int = 12, at: datetime | None = None) -> None:
    samples = (Sample(seconds=seconds),) * count
    with journal.store.write() as tx:
        used = [Used(subject=SUBJECT, calls=count, samples=samples)]
        note_usage(tx, new_run_id(), used, at or datetime.now(UTC))


def estimate_of(trips, run_id):
    return trips.runtime.view(run_id).validated[1].estimate


def test_a_run_leaves_what_its_calls_took_and_the_next_estimate_learns_from_it(trips):
    first = trips.start()
    trips.go(first, "approve")
    ended = trips.runtime.view(first).ended
    remember(trips.runtime.journal, 0.004, count=9)

    second = estimate_of(trips, trips.start()).steps[0]

    assert {each.subject.partition(":")[0] for each in ended.used} == {"tool", "repair"}
    assert second.source == "history (n=10) + contract", "and its check, by contract"


def test_calls_of_long_ago_and_of_too_few_teach_nothing(trips):
    old = datetime.now(UTC) - timedelta(days=trips.runtime.kit.policy.tiers.history_days + 1)
    remember(trips.runtime.journal, 9.0, at=old)
    remember(trips.runtime.journal, 9.0, count=9)

    assert estimate_of(trips, trips.start()).steps[0].source == "contract"


def test_an_estimate_asks_the_journal_once_and_reads_no_event_of_another_run(trips):
    for _ in range(3):
        remember(trips.runtime.journal, 0.1)
    plan, asked = plan_of(SHORT, holder="Ann"), list[str]()
    kit, engine = trips.runtime.kit, trips.runtime.journal.store.engine
    sa.event.listen(engine, "before_cursor_execute", lambda *a: asked.append(a[2]))

    known = kit.known(plan, kit.registry.catalog())

    said = [each for each in asked if "SELECT" in each]
    assert len(known.past[SUBJECT].samples) == 36
    assert len(said) == 1
    assert "events" not in said[0]


def test_a_deleted_run_takes_what_its_calls_took_with_it(trips):
    run_id = trips.start()
    trips.go(run_id, "approve")
    journal = trips.runtime.journal
    lease = journal.runs.acquire(run_id, "elsewhere.0:1:1:abc", 30)

    journal.retention.remove(lease)

    assert not journal.store.rows(sa.text("SELECT * FROM usage").columns())


def plan_of(template: str, **inputs):
    return Template.from_yaml(template).fill("Hold it", inputs, "g")


# -- over budget ---------------------------------------------------------------------------------


@contextmanager
def waiting(tmp_path, budget: str, **options):
    """A run that waits for approval, its clock, and its graph."""
    WORLD.__init__()
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    agent = Agent(
        name="trips",
        tools=(look, hold, release, note),
        policy=POLICY,
        templates=(SHORT + budget,),
        connect=lambda _: WORLD,
        rights=Rights(principal="ann"),
    )
    url = f"sqlite:///{tmp_path}/journal.db"
    runtime = Runtime(agent, url, Options(**options), clock=lambda: now[0])
    run_id = new_run_id()
    for _ in runtime.start({"goal": "Hold it", "inputs": {"holder": "Ann"}}, run_id=run_id):
        pass
    yield runtime, run_id, now
    runtime.close()


DEADLINE = 'budget: {deadline: "2026-01-01T01:00:00Z"}\n'
INBOX = [{"type": "accept", "args": None}]


def test_every_door_refuses_to_approve_a_plan_that_is_over_its_budget_by_now(tmp_path):
    with waiting(tmp_path, DEADLINE) as (runtime, run_id, now):
        now[0] += timedelta(minutes=59, seconds=59)

        by_python = runtime.answer(run_id, parse(Answer, {"decision": "approve", "by": "ann"}))
        thread = {"configurable": {"thread_id": runtime.journal.runs.get(run_id).thread_id}}
        for said in (INBOX, True, {"decisions": [{"type": "approve"}]}, {"decision": "approve"}):
            runtime.graph.invoke(Command(resume=said), thread)
            why = list(runtime.view(run_id).answered.values())[-1].why
            assert "over_deadline" in why

    assert by_python.why.startswith("the plan is over budget and cannot be approved: over_deadline")
    assert WORLD.done == []


def test_a_plan_over_budget_can_still_be_rejected_and_edited(tmp_path):
    with waiting(tmp_path, DEADLINE) as (runtime, run_id, now):
        now[0] += timedelta(minutes=59, seconds=59)
        edit = {"op": "add", "path": "/budget/max_seconds", "value": 5.0}
        said = {"decision": "edit", "edits": [edit], "by": "ann"}
        edited = runtime.answer(run_id, parse(Answer, said))
        rejected = runtime.answer(run_id, parse(Answer, {"decision": "reject", "by": "ann"}))

    assert "over_deadline" in edited.why, "an edit has to bring it back into its budget"
    assert rejected.decision == "reject"


class Critic:
    """Finds nothing, at a price."""

    model_name = "dear-critic"
    max_retries = 0

    async def ainvoke(self, messages):
        usage = {"input_tokens": 60_000, "output_tokens": 100, "total_tokens": 60_100}
        return AIMessage(content='{"findings": []}', usage_metadata=usage)


@pytest.mark.parametrize(("limit", "can"), [("0.90", True), ("0.20", False)])
def test_what_planning_cost_since_the_check_counts_and_disables_the_button(tmp_path, limit, can):
    budget = f'budget: {{max_usd: "{limit}"}}\n'
    prices = PriceBook({"dear-critic": {"input": "5", "output": "10"}})
    with waiting(tmp_path, budget, critic=Critic(), prices=prices) as (runtime, run_id, _):
        question = runtime.view(run_id).pending_questions[0]
        payload = runtime.journal.artifacts.get(question.payload)

    assert ("approve" in question.allowed) is can
    assert payload["config"]["allow_accept"] is can
    assert payload["preview"]["approvable"] is can
    assert payload["preview"]["fits"][0]["says"] == ("yes" if can else "no")
    assert bool(payload["preview"]["cuts"]) is not can
    assert payload["estimate"]["spent_usd"] == "0.301"


# -- preview -------------------------------------------------------------------------------------


def touched(*_args, **_more):
    raise AssertionError("a preview touched the world")


@pytest.fixture
def agent_of_glass():
    """An agent that breaks when anything of it is called."""
    tools = tuple(replace(each, body=touched) for each in (look, hold, release, note))
    return Agent(
        name="glass", tools=tools, policy=POLICY, connect=touched, rights=Rights(principal="ann")
    )


def test_a_preview_calls_writes_and_touches_nothing_and_is_the_same_each_time(
    agent_of_glass, monkeypatch
):
    class Model:
        model_name = "gpt-5-mini"
        ainvoke = invoke = touched

    monkeypatch.setattr(Journal, "open", touched)
    monkeypatch.setattr(sa, "create_engine", touched)
    plan, now = plan_of(SHORT, holder="Ann"), datetime.now(UTC)

    first, second = (
        build_preview(plan, agent_of_glass, model=Model(), critic=Model(), now=now)
        for _ in range(2)
    )

    assert first == second
    assert first.approvable
    assert [each.role for each in first.estimate.overhead] == [
        "goal checks",
        "critic",
        "planner",
        "repair",
    ]


def test_the_gate_shows_the_value_that_a_preview_is(trips):
    run_id = trips.start()
    view = trips.runtime.view(run_id)
    shown = trips.runtime.journal.artifacts.get(view.pending_questions[0].payload)
    plan = parse(
        type(plan_of(SHORT, holder="Ann")), trips.runtime.journal.artifacts.get(view.plans[1].plan)
    )

    preview = build_preview(plan, trips.runtime.agent)

    assert shown["preview"]["fits"] == [
        each.model_dump(mode="json") | {"why": list(each.why)} for each in preview.fits
    ]
    assert shown["preview"]["notes"] == list(preview.notes)
    assert shown["estimate"]["seconds"] == preview.estimate.seconds.model_dump()
    assert shown["steps"][0]["evidence"]["unknown"] == preview.steps[0].evidence.unknown


def seen(args):
    return [f"seat://{args['seat']}", f"book://{args['holder']}"]


@pytest.mark.parametrize(
    ("preview", "refs", "unknown"),
    [
        (seen, ("seat://A1", "book://Ann"), ""),
        (lambda args: [], (), ""),
        (lambda args: ["no reference", "seat://A1"], ("seat://A1",), "1 of 2 are no references"),
        (lambda args: "seat://A1", (), "its preview gave no list of references"),
        (lambda args: args["nothing"], (), "its preview failed: KeyError"),
        (lambda args: [f"tx://{n}" for n in range(999)], None, "and 799 more"),
    ],
)
def test_a_tool_says_which_evidence_to_expect_and_what_is_wrong_with_that_is_said(
    preview, refs, unknown
):
    @tool(effect="write", key="hold:{seat}", scope="goal", preview=preview)
    def hold(seat: str, holder: str) -> Seat:
        """Hold a seat."""
        raise AssertionError

    agent = Agent(name="a", tools=(look, hold), policy=POLICY, rights=Rights(principal="ann"))

    evidence = build_preview(plan_of(SHORT, holder="Ann"), agent).steps[0].evidence

    assert evidence.unknown == unknown
    assert len(evidence.refs) == 200 if refs is None else evidence.refs == refs
    assert evidence.source == ("preview" if refs or unknown in ("", "and 799 more") else "none")


def test_what_a_run_shows_was_foreseen(shop):
    run_id = shop.start("straightforward")
    plan = shop.runtime.kit.plan
    view = shop.finish(run_id)
    plan = parse(
        type(plan_of(SHORT, holder="Ann")), shop.runtime.journal.artifacts.get(view.plans[1].plan)
    )

    preview = build_preview(plan, load_agent("refund"))
    cited = [ref for each in view.attempts.values() for ref in each.ended.observed]

    assert len(cited) > 5
    assert unforeseen(preview.evidence, cited) == ()
    assert unforeseen(preview.evidence, [*cited, "memo://x"]) == ("memo://x",)


# -- estimate against actual ---------------------------------------------------------------------


def test_the_cost_of_a_run_is_told_per_step_and_in_all(shop):
    run_id = shop.start("no-logistics-record")
    view = shop.finish(run_id)

    cost = cost_of(view)
    steps = {each["step"]: each for each in cost["steps"]}
    roles = {each["role"]: each for each in cost["roles"]}

    assert cost["version"] == 1
    assert steps["S1"]["actual"]["calls"] == 1
    assert steps["S6"]["estimate"]["calls"] == {"p50": 2, "p95": 2}
    assert steps["S6"]["actual"]["calls"] == 2, "the payment, and the look at it"
    later = [each for each in steps.values() if each["estimate"] is None]
    assert later
    assert {each["source"] for each in later} == {"not in the plan that was estimated"}
    assert roles["goal checks"]["actual"]["calls"] == 2
    assert roles["reread"]["actual"]["calls"] > 0
    whole = sum(
        each["actual"]["calls"] for each in [*steps.values(), *roles.values()] if each["actual"]
    )
    assert whole == cost["actual"]["calls"]
    assert held(cost)["usd"] is True
    assert shop.report(run_id)["actual"] == {**cost["actual"]}


def test_an_unknown_price_is_neither_within_nor_over():
    said = {"p50": None, "p95": None}
    cost = {
        "estimate": dict.fromkeys(
            ("usd", "seconds", "tokens", "tokens_in", "tokens_out", "calls"), said
        )
    }

    assert set(
        held(
            {
                **cost,
                "actual": {"usd": "1"}
                | dict.fromkeys(("seconds", "tokens", "tokens_in", "tokens_out", "calls"), 1),
            }
        ).values()
    ) == {None}
